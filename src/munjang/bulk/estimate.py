"""How long and how large a job would be: this machine is measured on the first rows of the input, and the rest is arithmetic.

Texts are read and encoded by one thread, as one worker does it; workers on one machine are taken to work side by side at `EFFICIENCY`,
workers on many machines without loss, since they share nothing but the storage.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from munjang.bulk.job import Job, ShardSpec
from munjang.bulk.opening import forget_packed
from munjang.bulk.plan import parquet_rows, rows_like
from munjang.bulk.read_shard import read_shard
from munjang.bulk.run import describe
from munjang.bulk.settings import BulkSettings
from munjang.errors import InputError, UsageError
from munjang.models.sentence_encoder import SentenceEncoder

SAMPLE_ROWS = 1_000
EFFICIENCY = 0.9
_BYTES = {"float32": 4.0, "float16": 2.0, "int8": 1.0, "uint8": 1.0, "binary": 1 / 8, "ubinary": 1 / 8}
_ID_BYTES = 16


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
    inputs: Sequence[str], *, model: str | None = None, settings: BulkSettings | None = None, rows: int | None = None, workers: int = 1
) -> Estimate:
    """Measure a sample and work out the rest; `rows` is guessed from the files' sizes unless given."""
    settings = settings or BulkSettings()
    settings.check()
    if workers < 1 or (rows is not None and rows < 1):
        raise UsageError(f"workers is {workers} and rows is {rows}, expected at least 1 of each")
    job = describe(inputs, model, replace(settings, shard_rows=SAMPLE_ROWS))
    found = sum(rows_like(file) for file in job.inputs)
    sample = _measure(job, SentenceEncoder.load(model, compute=settings.compute, threads=1))
    total = rows or max(found, 1)
    rate = sample.rows / sample.seconds
    seconds = total / (rate * workers * (EFFICIENCY if workers > 1 else 1.0))
    text_bytes = sample.text_bytes / sample.rows if settings.keep_text else 0.0
    beside = _ID_BYTES + text_bytes
    sizes = {name: round(total * (_width(job, settings) * each + beside)) for name, each in _BYTES.items()}
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


def _width(job: Job, settings: BulkSettings) -> int:
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


def _measure(job: Job, encoder: SentenceEncoder) -> _Sample:
    file, index = next(((file, index) for index, file in enumerate(job.inputs) if file.bytes > file.begin), (None, 0))
    if file is None:
        raise InputError("the input has no rows to measure")
    started = time.perf_counter()
    if file.format == "parquet":
        stop = min(parquet_rows(file), SAMPLE_ROWS)
    else:
        stop = file.begin + max(1, round((file.bytes - file.begin) * SAMPLE_ROWS / max(rows_like(file), 1)))
    found = read_shard(file, ShardSpec(0, index, file.begin, stop), job.settings)
    forget_packed()
    if not found.texts:
        reason = f": {found.rejected[0].reason}" if found.rejected else ""
        raise InputError(f"{file.path}: none of the first rows can be used{reason}")
    read = time.perf_counter()
    distinct = list(dict.fromkeys(found.texts))
    long_text = "truncate" if job.settings.long_text == "error" else job.settings.long_text
    encoded = encoder.encode_with_report(distinct, prompt_name=job.settings.prompt_name, long_text=long_text)
    ended = time.perf_counter()
    return _Sample(
        rows=len(found.texts),
        distinct=len(distinct),
        tokens=int(np.sum(encoded.tokens)),
        too_long=len(encoded.too_long),
        text_bytes=sum(len(text.encode()) for text in found.texts),
        reading=read - started,
        seconds=max(ended - started, 1e-9),
    )
