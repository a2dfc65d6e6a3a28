"""`munjang encode`: a file of texts → a file of vectors, a block at a time."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from munjang.cli.options import (
    Chosen,
    Columns,
    ComputeOption,
    JsonOption,
    ModelOption,
    OutputOption,
    Takes,
    examples,
    new_app,
)
from munjang.cli.row_files import no_text
from munjang.cli.show import emit, note, print_facts
from munjang.errors import TextError
from munjang.models.sentence_encoder import SentenceEncoder
from munjang.types import DEFAULT_COMPUTE
from munjang.wording import count, plural

if TYPE_CHECKING:
    from munjang.models.batch_encoder import Encoded
    from munjang.text.records import BadLines, Record

BLOCK = 4_096
"""Texts encoded at once: enough to batch by length, few enough that the bar moves."""
_PLACES = 20
"""How many texts that are too long are named."""

app = new_app()


@dataclass(frozen=True)
class Summary:
    """What was done."""

    model: str
    rows: int
    dimension: int
    precision: str
    seconds: float
    texts_per_second: float
    too_long: int
    too_long_at: tuple[str, ...]
    """Where the first of them stand."""
    skipped: int
    output: str | None


@app.command(
    epilog=examples(
        "munjang encode news.csv --text-column title -o news.npy",
        "munjang encode news.jsonl -o news.parquet --keep-text --compute int8",
        "cat lines.txt | munjang encode - --json",
    )
)
def encode(
    file: Annotated[
        str, typer.Argument(metavar="FILE", help='txt, csv, tsv, jsonl, json or parquet, also gzipped; "-" is standard input.')
    ],
    output: OutputOption = None,
    model: ModelOption = None,
    *,
    columns: Columns,
    keep_text: Annotated[bool, typer.Option("--keep-text", help="Write the texts next to their vectors.")] = False,
    options: Annotated[Chosen, Takes(SentenceEncoder.encode)],
    compute: ComputeOption = DEFAULT_COMPUTE,
    skip_bad: Annotated[bool, typer.Option("--skip-bad", help="Skip and count broken lines.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Encode a file of texts as vectors.

    Writes .npy, .parquet or .jsonl; without -o, --json prints one JSON object per text.
    """
    from munjang.cli.load_model import load_model
    from munjang.cli.vector_files import check_suffix
    from munjang.text.records import BadLines

    if output is not None:
        check_suffix(output)
    bad = BadLines() if skip_bad else None
    records = columns.read(file, bad=bad)
    if output is None and not as_json:
        note("nothing is saved: the vectors are only counted\n  -o vectors.npy saves them, --json prints them")
    encoder = load_model(model, compute=compute)
    summary = _encode_all(
        encoder,
        _refuse_unclean(records, bad),
        options,
        output=output,
        lines=as_json and output is None,
        keep_text=keep_text,
        bad=bad,
        source=file,
    )
    _report(summary, encoder.max_length, bad, long_text=options["long_text"], as_json=as_json)


def _encode_all(
    encoder: SentenceEncoder,
    records: Iterator[Record],
    options: Chosen,
    *,
    output: Path | None,
    lines: bool,
    keep_text: bool,
    bad: BadLines | None,
    source: str,
) -> Summary:
    from munjang.cli.vector_files import json_lines, vector_file
    from munjang.models.progress import progress_bar

    rows = too_long = width = 0
    places: list[str] = []
    start = time.perf_counter()
    with ExitStack() as stack:
        writer = None if output is None else stack.enter_context(vector_file(output, keep_text=keep_text))
        advance = stack.enter_context(progress_bar("encode", None, shown=not lines))
        for block, encoded in _blocks(encoder, records, options):
            rows, too_long, width = rows + len(block), too_long + len(encoded.too_long), encoded.vectors.shape[1]
            places += [block[place].where for place in encoded.too_long[: _PLACES - len(places)]]
            if writer is not None:
                writer.write(block, encoded.vectors)
            elif lines:
                for line in json_lines(block, encoded.vectors, keep_text=keep_text):
                    print(line)
            advance(len(block))
        if not rows:
            raise no_text([source], bad)  # so that no file is written
    seconds = time.perf_counter() - start
    return Summary(
        model=encoder.name,
        rows=rows,
        dimension=width,
        precision=options["precision"],
        seconds=round(seconds, 3),
        texts_per_second=round(rows / max(seconds, 1e-9), 1),
        too_long=too_long,
        too_long_at=tuple(places),
        skipped=bad.count if bad else 0,
        output=None if output is None else str(output),
    )


def _blocks(encoder: SentenceEncoder, records: Iterator[Record], options: Chosen) -> Iterator[tuple[list[Record], Encoded]]:
    """Yield blocks with their vectors."""
    cut = options | ({"long_text": "truncate"} if options["long_text"] == "error" else {})
    while block := list(islice(records, BLOCK)):
        encoded = encoder.encode_with_report([record.text for record in block], **cut)
        if options["long_text"] == "error" and encoded.too_long:
            place = encoded.too_long[0]
            raise TextError(
                f"{block[place].where}: {count(encoded.tokens[place], 'token')}, the model's limit is {encoder.max_length:,}\n"
                "  shorten the text, or choose --long-text window or truncate"
            )
        yield block, encoded


def _refuse_unclean(records: Iterator[Record], bad: BadLines | None) -> Iterator[Record]:
    """Refuse texts that no model takes while their line is still known."""
    from munjang.text.unicode import clean

    for record in records:
        try:
            clean(record.text)
        except TextError as error:
            if bad is None:
                raise TextError(f"{record.where}: {error}") from None
            bad.add(record.where, error)
            continue
        yield record


def _report(summary: Summary, limit: int | None, bad: BadLines | None, *, long_text: str, as_json: bool) -> None:
    for message in bad.first if bad else ():
        note(f"skipped {message}")
    if summary.too_long:
        done = "read in windows and averaged" if long_text == "window" else "only the beginning was read (--long-text window reads all)"
        note(f"{summary.too_long:,} of {count(summary.rows, 'text')} {plural(summary.too_long, 'is')} longer than {limit} tokens; {done}")
        note("where: " + ", ".join(summary.too_long_at) + (", …" if summary.too_long > len(summary.too_long_at) else ""))
    if as_json and summary.output is None:
        return
    if as_json:
        emit(asdict(summary))
        return
    facts = [
        ("texts", f"{summary.rows:,}"),
        ("vectors", f"{summary.dimension} x {summary.precision}"),
        ("model", summary.model),
        ("seconds", f"{summary.seconds:.2f} ({summary.texts_per_second:,.0f} texts/s)"),
        ("too long", f"{summary.too_long:,}"),
    ]
    facts += [("skipped", f"{summary.skipped:,}")] if summary.skipped else []
    facts += [("written to", summary.output)] if summary.output else []
    print_facts(facts)
