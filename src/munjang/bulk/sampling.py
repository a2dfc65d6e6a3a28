"""Input files → the pieces of them that an estimate measures: many short ones all over the files, so that a sorted input does not mislead.

Where a row can be found from any place of a file, the pieces lie evenly in it. gzip files and CSV with quotes can only be read from their
beginning, and are.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from munjang.bulk.job import InputFile, Job, ShardSpec
from munjang.bulk.plan import can_enter_anywhere, rows_like, text_bytes
from munjang.bulk.read_shard import ShardRows, read_shard

SAMPLE_ROWS = 1_000
_PIECES = 50


@dataclass(frozen=True)
class Piece:
    """A part of a file, and what was read there."""

    spec: ShardSpec
    found: ShardRows


def read_pieces(job: Job) -> list[Piece]:
    """Read about SAMPLE_ROWS rows from all over the input, or all of them if there are no more."""
    return [Piece(spec, read_shard(job.inputs[spec.file], spec, job.settings)) for spec in _pieces(job)]


def total_rows(job: Job, pieces: list[Piece]) -> int:
    """Guess how many rows the input has: from the bytes of the rows that were read, where they lie all over a file."""
    return sum(_rows(file, [piece for piece in pieces if piece.spec.file == number], job) for number, file in enumerate(job.inputs))


def _rows(file: InputFile, pieces: list[Piece], job: Job) -> int:
    read = sum(piece.spec.stop - piece.spec.start for piece in pieces)
    rows = sum(len(piece.found.texts) + len(piece.found.rejected) for piece in pieces)
    if file.format == "parquet" or not rows or not can_enter_anywhere(file, job.settings):
        return rows_like(file)
    return round(text_bytes(file) * rows / read)


def _pieces(job: Job) -> Iterator[ShardSpec]:
    sizes = [rows_like(file) for file in job.inputs]
    total = sum(sizes)
    whole = total <= SAMPLE_ROWS
    starts = [total * piece // _PIECES for piece in range(_PIECES)]
    before = 0
    for number, (file, rows) in enumerate(zip(job.inputs, sizes, strict=True)):
        inside = [start - before for start in starts if before <= start < before + rows]
        before += rows
        if not rows:
            continue
        if whole:
            yield _spec(file, number, 0, rows, rows)
        elif can_enter_anywhere(file, job.settings):
            for start in inside:
                yield _spec(file, number, start, start + SAMPLE_ROWS // _PIECES, rows)
        elif inside:
            yield _spec(file, number, 0, len(inside) * SAMPLE_ROWS // _PIECES, rows)


def _spec(file: InputFile, number: int, start: int, stop: int, rows: int) -> ShardSpec:
    """Return the part between two rows; in all formats but Parquet, the bytes where they should be."""
    if file.format == "parquet":
        return ShardSpec(0, number, start, min(stop, rows))
    first, last = (file.begin + round(text_bytes(file) * min(row, rows) / rows) for row in (start, stop))
    return ShardSpec(0, number, first, max(last, first + 1))
