"""`munjang encode`: a file of texts → a file of vectors on disk, a block at a time: .npy, .parquet or .jsonl.

Memory is bounded by a block, however many rows there are. The file appears whole or not at all (`atomic_file`). Every writer is handed at
least one block, if an empty one, so that a file without rows still says its dimension.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO, Protocol

import numpy as np
import typer

from munjang.atomic import atomic_file
from munjang.cli.load_model import load_model
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
from munjang.errors import MissingExtra, TextError, UsageError
from munjang.models.batch_encoder import Encoded
from munjang.models.progress import progress_bar
from munjang.models.sentence_encoder import SentenceEncoder
from munjang.text.records import BadLines, Record
from munjang.text.unicode import clean
from munjang.types import DEFAULT_COMPUTE
from munjang.wording import count, plural

if TYPE_CHECKING:
    from munjang.types import Floats

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


class VectorWriter(Protocol):
    """Takes blocks of records with their vectors, in order."""

    def write(self, records: Sequence[Record], vectors: Floats) -> None:
        """Write one block."""
        ...

    def close(self) -> None:
        """Write what belongs at the end."""
        ...


@contextmanager
def vector_file(path: Path, *, keep_text: bool = False) -> Iterator[VectorWriter]:
    """Open the writer that the file's suffix asks for."""
    check_suffix(path)
    with atomic_file(path) as handle:
        writer = _WRITERS[path.suffix.lower()](handle, keep_text)
        yield writer
        writer.close()


def check_suffix(path: Path) -> None:
    """Refuse a file that no writer is for, before any work is done."""
    if path.suffix.lower() not in _WRITERS:
        raise UsageError(f"{path}: expected a name that ends in {', '.join(_WRITERS)}")


class NpyWriter:
    """An array of numpy's own format; numpy leaves room in the header for the number of rows, which is written last."""

    def __init__(self, handle: BinaryIO, keep_text: bool) -> None:
        if keep_text:
            raise UsageError("a .npy file holds numbers only\n  choose .parquet or .jsonl to keep the texts")
        self._handle, self._rows, self._row_shape = handle, 0, (0,)
        self._dtype = np.dtype(np.float32)
        self._start = 0

    def write(self, records: Sequence[Record], vectors: Floats) -> None:  # noqa: ARG002 - the protocol's
        """Append rows."""
        if not self._start:
            self._dtype, self._row_shape = vectors.dtype, vectors.shape[1:]
            self._header()
            self._start = self._handle.tell()
        self._handle.write(np.ascontiguousarray(vectors).data if len(vectors) else b"")
        self._rows += len(vectors)

    def close(self) -> None:
        """Write the header again, now with the number of rows."""
        self._handle.seek(0)
        self._header()
        assert self._handle.tell() == self._start  # else the first row would be overwritten

    def _header(self) -> None:
        description = np.lib.format.dtype_to_descr(self._dtype)
        header = {"descr": description, "fortran_order": False, "shape": (self._rows, *self._row_shape)}
        np.lib.format.write_array_header_1_0(self._handle, header)


class JsonLinesWriter:
    """One JSON object a line: id (if the file has ids), text (if wanted), vector."""

    def __init__(self, handle: BinaryIO, keep_text: bool) -> None:
        self._handle, self._keep_text = handle, keep_text

    def write(self, records: Sequence[Record], vectors: Floats) -> None:
        """Append lines."""
        for line in json_lines(records, vectors, keep_text=self._keep_text):
            self._handle.write(line.encode("utf-8", "backslashreplace") + b"\n")

    def close(self) -> None:
        """Nothing is left to write."""


def json_lines(records: Sequence[Record], vectors: Floats, *, keep_text: bool) -> Iterator[str]:
    """Yield one JSON object per vector."""
    for record, vector in zip(records, vectors, strict=True):
        row: dict[str, Any] = {} if record.id is None else {"id": record.id}
        if keep_text:
            row["text"] = record.text
        row["vector"] = vector.tolist()
        yield json.dumps(row, ensure_ascii=False, allow_nan=False)


class ParquetWriter:
    """A table with the columns id (the row's number where the file has none), text (if wanted) and vector, a list of fixed size."""

    def __init__(self, handle: BinaryIO, keep_text: bool) -> None:
        try:
            import pyarrow
            import pyarrow.parquet
        except ImportError as error:
            raise MissingExtra("writing Parquet", "parquet") from error
        self._arrow, self._parquet = pyarrow, pyarrow.parquet
        self._handle, self._keep_text = handle, keep_text
        self._writer: Any = None
        self._rows = 0

    def write(self, records: Sequence[Record], vectors: Floats) -> None:
        """Append rows."""
        arrow = self._arrow
        numbers = arrow.array(np.ascontiguousarray(vectors).reshape(-1))
        ids = [str(self._rows + place) if record.id is None else record.id for place, record in enumerate(records)]
        columns = {"id": arrow.array(ids, arrow.string())}
        if self._keep_text:
            columns["text"] = arrow.array([record.text for record in records], arrow.string())
        columns["vector"] = arrow.FixedSizeListArray.from_arrays(numbers, vectors.shape[1])
        table = arrow.table(columns)
        if self._writer is None:
            self._writer = self._parquet.ParquetWriter(self._handle, table.schema)
        self._writer.write_table(table)
        self._rows += len(records)

    def close(self) -> None:
        """Write the table of contents."""
        self._writer.close()


_WRITERS: dict[str, Callable[[BinaryIO, bool], VectorWriter]] = {".npy": NpyWriter, ".parquet": ParquetWriter, ".jsonl": JsonLinesWriter}
