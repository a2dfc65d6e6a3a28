"""`munjang bulk`: files larger than memory → a folder of vectors, by processes or on a cluster; or an estimate of what that takes."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from munjang.bulk.estimate import Estimate, estimate
from munjang.bulk.job import BulkJob, BulkSettings, Receipt, ShardSpec
from munjang.bulk.output import merge as merge_output
from munjang.bulk.output import open_output
from munjang.bulk.run import BulkReport, ProgressFactory, finish_bulk, run_job
from munjang.bulk.worker_config import WorkerConfig
from munjang.cli.options import Chosen, JsonOption, ModelOption, NoQuotingOption, Takes, chosen_pooling, examples, new_app
from munjang.cli.show import emit, note, print_facts, print_table, size_text
from munjang.errors import InputError, UsageError
from munjang.limits import usable_cores
from munjang.models.progress import SECONDS_BETWEEN, format_duration
from munjang.wording import count

app = new_app()


@app.command(
    epilog=examples(
        "munjang bulk news/*.jsonl -o vectors --keep-text",
        "munjang bulk news/*.jsonl -o vectors --keep-text --resume",
        "munjang bulk big.csv -o vectors --dask local",
        "munjang bulk big.csv -o vectors --share 3/16",
        "munjang bulk --finish -o vectors",
        "munjang bulk big.csv --estimate --rows 1000000000 --workers 64",
    )
)
def bulk(
    inputs: Annotated[
        list[str] | None,
        typer.Argument(metavar="[INPUT…]", help="txt, csv, tsv, jsonl (each also .gz), parquet; folders, patterns, fsspec addresses."),
    ] = None,
    output: Annotated[str | None, typer.Option("--output", "-o", help="The folder, or fsspec address, to write to.")] = None,
    model: ModelOption = None,
    *,
    options: Annotated[Chosen, Takes(BulkSettings, without=["pooling"])],
    no_quoting: NoQuotingOption = False,
    workers: Annotated[Chosen, Takes(WorkerConfig)],
    resume: Annotated[bool, typer.Option("--resume", help="Resume the job in the folder.")] = False,
    finish: Annotated[bool, typer.Option("--finish", help="End a job that was done in shares, or say what is missing.")] = False,
    cache: Annotated[Path | None, typer.Option(help="A file on a local disk that keeps vectors across jobs.")] = None,
    merge: Annotated[Path | None, typer.Option(help="Also write all vectors to this one .parquet or .npy file.")] = None,
    estimate: Annotated[bool, typer.Option("--estimate", help="Measure a sample and estimate time and disk space.")] = False,
    rows: Annotated[int | None, typer.Option(min=1, help="With --estimate: the number of rows.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Encode files larger than memory into a folder of vectors.

    Finished shards are on disk and survive kill -9; --resume does the rest. Unreadable rows go to rejected.jsonl. Runs with
    --share 1/N to N/N do one job together, and --finish ends it; exit code 1 says that shards are missing.
    """
    if finish:
        _finish(inputs, output, merge, as_json=as_json)
        return
    if not inputs:
        raise UsageError("there is nothing to read, expected files, folders or patterns")
    settings = BulkSettings(**options, quoting=False if no_quoting else None, pooling=chosen_pooling())
    if estimate:
        _estimate(inputs, model, settings, rows=rows, config=WorkerConfig(**workers), as_json=as_json)
        return
    if output is None or rows is not None:
        raise UsageError("a folder to write to is missing (-o), or --rows was given without --estimate")
    config = WorkerConfig(**workers)
    if config.share is not None and merge is not None:
        raise UsageError("--merge needs all shards, and --share does a part of them\n  merge with munjang bulk --finish --merge")
    with bulk_progress() as watch:
        report = run_job(inputs, output, settings, config, model=model, resume=resume, cache=cache, watch=watch)
    if config.share is None:
        _check_rows(report)
    _report(report, merge, as_json=as_json)


def _check_rows(report: BulkReport) -> None:
    if not report.rows:
        place = report.output
        raise InputError(f"{place}: no row could be used, {report.rejected:,} were rejected\n  {place}/rejected.jsonl says why")


def _finish(inputs: list[str] | None, output: str | None, merge: Path | None, *, as_json: bool) -> None:
    if output is None or inputs:
        raise UsageError("--finish takes the folder of the job (-o) and no input")
    report = finish_bulk(output)
    if not report.missing:
        _check_rows(report)
        _report(report, merge, as_json=as_json)
        return
    if as_json:
        emit(asdict(report))
    else:
        shares = [("of the shares", _list_first(report.missing_shares))] if report.missing_shares else []
        print_facts([("done", count(report.shards, "shard")), ("missing", _list_first(report.missing)), *shares])
    note(f"{output}: {count(len(report.missing), 'shard')} missing; run their shares again, or the job with --resume")
    raise typer.Exit(1)


_FIRST = 20


def _list_first(values: Sequence[object]) -> str:
    listed = ", ".join(str(each) for each in values[:_FIRST])
    return f"{listed} … ({len(values):,} in all)" if len(values) > _FIRST else listed


def _report(report: BulkReport, merged: Path | None, *, as_json: bool) -> None:
    digest = None if merged is None else merge_output(open_output(report.output), merged)
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
    inputs: list[str], model: str | None, settings: BulkSettings, *, rows: int | None, config: WorkerConfig, as_json: bool
) -> None:
    found = estimate(
        inputs,
        model=model,
        settings=settings,
        rows=rows,
        workers=config.workers or usable_cores(),
        device=config.device,
        engine=config.engine,
    )
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


@contextmanager
def bulk_progress() -> Iterator[ProgressFactory]:
    """Yield what a job takes to show how far it is."""
    if not sys.stderr.isatty():
        yield _lines
        return

    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[facts]}"),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True, speed_estimate_period=600) as bar:

        def watch(job: BulkJob, specs: Sequence[ShardSpec]) -> Callable[[ShardSpec, Receipt, bool], None]:
            weights = _weights(job, specs)
            total, all_shards = sum(weights.values()), len(specs)
            task = bar.add_task("bulk", total=total, facts=f"0/{all_shards}")
            started, done, read, rows = time.monotonic(), 0, 0, 0

            def advance(spec: ShardSpec, receipt: Receipt, earlier: bool) -> None:
                nonlocal done, read, rows
                done, read = done + 1, read + weights[spec.number]
                rows += 0 if earlier else receipt.rows
                rate = rows / max(time.monotonic() - started, 1e-9)
                bar.update(
                    task, facts=f"{done:,}/{count(all_shards, 'shard')}  {size_text(read)} of {size_text(total)}  {rate:,.0f} rows/s"
                )
                if earlier:  # what is no work now must not count as speed
                    bar.update(task, total=total - read)
                else:
                    bar.advance(task, weights[spec.number])

            return advance

        yield watch


def _lines(job: BulkJob, specs: Sequence[ShardSpec]) -> Callable[[ShardSpec, Receipt, bool], None]:
    """Write a plain line of shards and bytes now and then."""
    weights = _weights(job, specs)
    total = sum(weights.values())
    started = told = time.monotonic()
    done, read, new, rows = 0, 0, 0, 0

    def advance(spec: ShardSpec, receipt: Receipt, earlier: bool) -> None:
        nonlocal told, done, read, new, rows
        done, read = done + 1, read + weights[spec.number]
        new, rows = (new, rows) if earlier else (new + weights[spec.number], rows + receipt.rows)
        now = time.monotonic()
        if now - told < SECONDS_BETWEEN or not new:
            return
        told = now
        left = (total - read) / new * (now - started)  # what was done before is no work now
        facts = f"{done:,} of {count(len(specs), 'shard')}, {size_text(read)} of {size_text(total)}, {rows / (now - started):,.0f} rows/s"
        note(f"bulk: {facts}, {format_duration(left)} left")

    return advance


def _weights(job: BulkJob, specs: Sequence[ShardSpec]) -> dict[int, int]:
    """Return how many bytes of input each shard is, by its number; a Parquet file's bytes are shared out by rows."""
    rows = {spec.file: spec.stop for spec in specs}  # the last shard of a file ends with it; that of a share a little before
    sizes = {}
    for spec in specs:
        file = job.inputs[spec.file]
        part = spec.stop - spec.start
        sizes[spec.number] = file.bytes * part // rows[spec.file] if file.format == "parquet" else part
    return sizes
