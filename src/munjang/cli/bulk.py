"""`munjang bulk`: files larger than memory → a folder of vectors, by processes or a Dask cluster; or an estimate of what that takes."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from munjang.cli.options import ComputeOption, JsonOption, ModelOption, TextColumnOption, chosen_pooling, examples, new_app
from munjang.cli.show import emit, note, print_facts, print_table, size_text
from munjang.errors import InputError, UsageError
from munjang.wording import count

if TYPE_CHECKING:
    from munjang.bulk.estimate import Estimate
    from munjang.bulk.run import BulkReport
    from munjang.bulk.settings import BulkSettings

app = new_app()


@app.command(
    epilog=examples(
        "munjang bulk news/*.jsonl -o vectors --keep-text",
        "munjang bulk news/*.jsonl -o vectors --keep-text --resume",
        "munjang bulk big.csv -o vectors --dask local",
        "munjang bulk big.csv --estimate --rows 1000000000 --workers 64",
    )
)
def bulk(
    inputs: Annotated[
        list[str],
        typer.Argument(metavar="INPUT…", help="txt, csv, tsv, jsonl (each also .gz), parquet; folders, patterns, fsspec addresses."),
    ],
    output: Annotated[str | None, typer.Option("--output", "-o", help="The folder, or fsspec address, to write to.")] = None,
    model: ModelOption = None,
    format: Annotated[Literal["parquet", "npy"], typer.Option("--output-format", help="The files to write.")] = "parquet",
    text_column: TextColumnOption = None,
    id_column: Annotated[str | None, typer.Option(help="The column that holds ids.")] = None,
    input_format: Annotated[
        Literal["txt", "csv", "tsv", "jsonl", "parquet"] | None, typer.Option(help="The inputs' format, when their names do not say it.")
    ] = None,
    encoding: Annotated[str, typer.Option(help="The inputs' encoding.")] = "utf-8-sig",
    no_quoting: Annotated[bool, typer.Option("--no-quoting", help="Double quotes in CSV are ordinary characters.")] = False,
    keep_text: Annotated[bool, typer.Option("--keep-text", help="Write the texts beside their vectors; `munjang add` needs them.")] = False,
    precision: Annotated[
        Literal["float32", "float16", "int8", "uint8", "binary", "ubinary"], typer.Option(help="Numbers out.")
    ] = "float32",
    dimensions: Annotated[int | None, typer.Option(help="Keep the first so many numbers (Matryoshka models).")] = None,
    normalize: Annotated[bool, typer.Option("--normalize", help="Scale every vector to length one.")] = False,
    prompt_name: Annotated[str | None, typer.Option(help="The model's prompt to put before every text.")] = None,
    long_text: Annotated[
        Literal["truncate", "window", "error"], typer.Option(help="What to do with texts beyond the limit; error rejects them.")
    ] = "truncate",
    compute: ComputeOption = "float32",
    shard_rows: Annotated[int, typer.Option(min=1, help="Rows of one output file, roughly.")] = 16_384,
    workers: Annotated[int | None, typer.Option(min=1, help="Processes; without it, one for each core.")] = None,
    threads: Annotated[int, typer.Option(min=1, help="Threads of one process.")] = 1,
    dask: Annotated[str | None, typer.Option(help="A Dask scheduler's address (tls://…), or local for a cluster on this machine.")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Continue what was begun in the folder.")] = False,
    cache: Annotated[Path | None, typer.Option(help="A file on a local disk that keeps vectors across jobs.")] = None,
    merge: Annotated[Path | None, typer.Option(help="At the end, write all vectors into this one .parquet or .npy file too.")] = None,
    estimate: Annotated[bool, typer.Option("--estimate", help="Measure a sample and say what the job would take.")] = False,
    rows: Annotated[int | None, typer.Option(min=1, help="With --estimate: for so many rows.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Encode files larger than memory into a folder of vectors.

    What is done is on disk and survives kill -9; --resume does the rest. Rows that cannot be read go to rejected.jsonl.
    """
    from munjang.bulk.output import merge as merge_output
    from munjang.bulk.output import open_output
    from munjang.bulk.run import Crew, encode_bulk
    from munjang.bulk.settings import BulkSettings
    from munjang.cli.bulk_progress import bulk_progress

    settings = BulkSettings(
        format=format,
        text_column=text_column,
        id_column=id_column,
        input_format=input_format,
        encoding=encoding,
        quoting=False if no_quoting else None,
        keep_text=keep_text,
        precision=precision,
        dimensions=dimensions,
        normalize=normalize,
        prompt_name=prompt_name,
        long_text=long_text,
        compute=compute,
        pooling=chosen_pooling(),
        shard_rows=shard_rows,
    )
    if estimate:
        _estimate(inputs, model, settings, rows=rows, workers=workers, as_json=as_json)
        return
    if output is None or rows is not None:
        raise UsageError("a folder to write to is missing (-o), or --rows was given without --estimate")
    crew = Crew(workers, threads, dask)
    with bulk_progress() as watch:
        report = encode_bulk(inputs, output, model=model, settings=settings, crew=crew, resume=resume, cache=cache, watch=watch)
    if not report.rows:
        raise InputError(f"{output}: no row could be used, {report.rejected:,} were rejected\n  {output}/rejected.jsonl says why")
    digest = None if merge is None else merge_output(open_output(output), merge)
    _report(report, merge, digest, as_json=as_json)


def _report(report: BulkReport, merged: Path | None, digest: str | None, *, as_json: bool) -> None:
    if report.rejected:
        note(f"{count(report.rejected, 'row')} could not be used; {report.output}/rejected.jsonl says which and why")
    if as_json:
        emit({**asdict(report), "merged": None if merged is None else str(merged), "merged_sha256": digest})
        return
    facts = [
        ("rows", f"{report.rows:,}"),
        ("rejected", f"{report.rejected:,}"),
        ("too long", f"{report.too_long:,}"),
        ("shards", f"{report.shards:,}"),
        ("size", size_text(report.bytes)),
        ("seconds", f"{report.seconds:.1f} ({report.new_rows / max(report.seconds, 1e-9):,.0f} rows/s)"),
        ("written to", report.output),
    ]
    print_facts([*facts, *([] if merged is None else [("merged into", str(merged))])])


def _estimate(
    inputs: list[str], model: str | None, settings: BulkSettings, *, rows: int | None, workers: int | None, as_json: bool
) -> None:
    from munjang.bulk.estimate import estimate
    from munjang.limits import usable_cores

    found = estimate(inputs, model=model, settings=settings, rows=rows, workers=workers or usable_cores())
    if as_json:
        emit(asdict(found))
        return
    _show_estimate(found)


def _show_estimate(found: Estimate) -> None:
    print_facts(
        [
            ("rows", f"{found.rows:,}"),
            ("one worker", f"{found.rows_per_second:,.0f} rows/s (measured on {count(found.sample, 'row')}, one thread)"),
            ("time", f"{found.hours:,.2f} hours on {count(found.workers, 'worker')} ({found.worker_hours:,.1f} worker-hours)"),
            ("shards", f"{found.shards:,}"),
            ("to read", size_text(found.input_bytes)),
            ("to write", size_text(found.output_bytes)),
            ("tokens a text", f"{found.tokens_per_text:,.1f} (time grows with them)"),
            ("too long", f"{found.too_long:.1%} of the texts"),
            ("repeated", f"{found.repeated:.1%} of the texts (encoded once in a shard)"),
            ("reading", f"{found.reading:.1%} of the time"),
        ]
    )
    print_table(["precision", "disk"], ([name, size_text(size)] for name, size in found.bytes_by_precision.items()), right=["disk"])
