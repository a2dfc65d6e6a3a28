"""How long and how large a job would be: this machine is measured on rows from all over the input, and the rest is arithmetic.

Texts are read and encoded by one thread, as one worker does it; workers on one machine are taken to work side by side at `EFFICIENCY`,
workers on many machines without loss, since they share nothing but the storage.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from munjang.bulk.input_streams import forget_packed
from munjang.bulk.job import BulkJob, BulkSettings, InputFile, ShardSpec
from munjang.bulk.plan import ShardRows, can_enter_anywhere, count_text_bytes, guess_rows, read_shard
from munjang.bulk.run import describe
from munjang.bulk.shard import load_model
from munjang.errors import InputError, UsageError
from munjang.models.sentence_encoder import SentenceEncoder
from munjang.types import DEFAULT_DEVICE, DEFAULT_ENGINE, Device, EngineName
from munjang.wording import brief_repr

SAMPLE_ROWS = 1_000
_PIECES = 50


@brief_repr
@dataclass(frozen=True)
class InputPiece:
    """A part of a file, and what was read there."""

    spec: ShardSpec
    found: ShardRows


def read_pieces(job: BulkJob) -> list[InputPiece]:
    """Read about SAMPLE_ROWS rows from all over the input, or all of them if there are no more."""
    return [InputPiece(spec, read_shard(job.inputs[spec.file], spec, job.settings)) for spec in _choose_pieces(job)]


def count_rows(job: BulkJob, pieces: list[InputPiece]) -> int:
    """Guess how many rows the input has: from the bytes of the rows that were read, where they lie all over a file."""
    return sum(_read_piece(file, [piece for piece in pieces if piece.spec.file == number], job) for number, file in enumerate(job.inputs))


def _read_piece(file: InputFile, pieces: list[InputPiece], job: BulkJob) -> int:
    read = sum(piece.spec.stop - piece.spec.start for piece in pieces)
    rows = sum(len(piece.found.texts) + len(piece.found.rejected) for piece in pieces)
    if file.format == "parquet" or not rows or not can_enter_anywhere(file, job.settings):
        return guess_rows(file)
    return round(count_text_bytes(file) * rows / read)


def _choose_pieces(job: BulkJob) -> Iterator[ShardSpec]:
    sizes = [guess_rows(file) for file in job.inputs]
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
            yield _make_spec(file, number, 0, rows, rows)
        elif can_enter_anywhere(file, job.settings):
            for start in inside:
                yield _make_spec(file, number, start, start + SAMPLE_ROWS // _PIECES, rows)
        elif inside:
            yield _make_spec(file, number, 0, len(inside) * SAMPLE_ROWS // _PIECES, rows)


def _make_spec(file: InputFile, number: int, start: int, stop: int, rows: int) -> ShardSpec:
    """Return the part between two rows; in all formats but Parquet, the bytes where they should be."""
    if file.format == "parquet":
        return ShardSpec(0, number, start, min(stop, rows))
    first, last = (file.begin + round(count_text_bytes(file) * min(row, rows) / rows) for row in (start, stop))
    return ShardSpec(0, number, first, max(last, first + 1))


EFFICIENCY = 0.9
_BYTES = {"float32": 4.0, "float16": 2.0, "int8": 1.0, "uint8": 1.0, "binary": 1 / 8, "ubinary": 1 / 8}
_ID_BYTES = 16


@brief_repr
@dataclass(frozen=True)
class Estimate:
    """What a job of so many rows would take on so many workers."""

    rows: int
    workers: int
    sample: int
    rows_per_second: float
    """Of one worker."""
    hours: float
    worker_hours: float
    shards: int
    output_bytes: int
    bytes_by_precision: dict[str, int]
    input_bytes: int
    tokens_per_text: float
    too_long: float
    """The part of texts that are longer than the model reads."""
    repeated: float
    """The part of texts that stand in the sample more than once; they are encoded once in each shard."""
    reading: float
    """The part of the time that goes into reading, not encoding."""


def estimate(
    inputs: Sequence[str],
    *,
    model: str | None = None,
    settings: BulkSettings | None = None,
    rows: int | None = None,
    workers: int = 1,
    device: Device = DEFAULT_DEVICE,
    engine: EngineName = DEFAULT_ENGINE,
) -> Estimate:
    """Measure a sample and work out the rest; `rows` is guessed from the files' sizes unless given."""
    settings = settings or BulkSettings()
    settings.check()
    if workers < 1 or (rows is not None and rows < 1):
        raise UsageError(f"workers is {workers} and rows is {rows}, expected at least 1 of each")
    job = describe(inputs, model, replace(settings, shard_rows=SAMPLE_ROWS), device=device, engine=engine)
    encoder = load_model(job.model, job.settings, threads=1, device=device, engine=engine)
    started = time.perf_counter()
    pieces = read_pieces(job)
    forget_packed()
    sample = _measure(job, pieces, time.perf_counter() - started, encoder)
    found = count_rows(job, pieces)
    total = rows or max(found, 1)
    rate = sample.rows / sample.seconds
    seconds = total / (rate * workers * (EFFICIENCY if workers > 1 else 1.0))
    text_bytes = sample.text_bytes / sample.rows if settings.keep_text else 0.0
    beside = _ID_BYTES + text_bytes
    sizes = {name: round(total * (_measure_width(job, settings) * each + beside)) for name, each in _BYTES.items()}
    return Estimate(
        rows=total,
        workers=workers,
        sample=sample.rows,
        rows_per_second=round(rate, 1),
        hours=round(seconds / 3600, 4),
        worker_hours=round(total / rate / 3600, 4),
        shards=math.ceil(total / settings.shard_rows),
        output_bytes=sizes[settings.precision],
        bytes_by_precision=sizes,
        input_bytes=round(sum(file.bytes for file in job.inputs) * total / max(found, 1)),
        tokens_per_text=round(sample.tokens / sample.rows, 1),
        too_long=round(sample.too_long / sample.rows, 4),
        repeated=round(1 - sample.distinct / sample.rows, 4),
        reading=round(sample.reading / sample.seconds, 4),
    )


def _measure_width(job: BulkJob, settings: BulkSettings) -> int:
    """Return how many numbers a vector has before it is packed into bits."""
    return job.model.dimension * 8 if settings.precision in ("binary", "ubinary") else job.model.dimension


@dataclass(frozen=True)
class _Sample:
    rows: int
    distinct: int
    tokens: int
    too_long: int
    text_bytes: int
    reading: float
    seconds: float


def _measure(job: BulkJob, pieces: Sequence[InputPiece], reading: float, encoder: SentenceEncoder) -> _Sample:
    texts = [text for piece in pieces for text in piece.found.texts]
    if not texts:
        first = next((piece for piece in pieces if piece.found.rejected), None)
        if first is None:
            raise InputError("the input has no rows to measure")
        raise InputError(f"{job.inputs[first.spec.file].path}: none of the rows tried can be used: {first.found.rejected[0].reason}")
    started = time.perf_counter()
    distinct = list(dict.fromkeys(texts))
    long_text = "truncate" if job.settings.long_text == "error" else job.settings.long_text
    encoded = encoder.encode_with_report(distinct, prompt_name=job.settings.prompt_name, long_text=long_text)
    return _Sample(
        rows=len(texts),
        distinct=len(distinct),
        tokens=int(np.sum(encoded.tokens)),
        too_long=len(encoded.too_long),
        text_bytes=sum(len(text.encode()) for text in texts),
        reading=reading,
        seconds=max(reading + time.perf_counter() - started, 1e-9),
    )
