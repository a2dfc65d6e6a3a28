"""An Arrow batch with a column of texts → the same batch with a column of vectors: what data frames of clusters call.

`Dataset.map_batches` of Ray Data, `DataFrame.mapInArrow` of Spark and `map_partitions` of Dask all call one function on workers. A process
loads the model at its first batch and keeps it.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, TypeVar

import numpy as np

from munjang.errors import InputError, MissingExtra, quote
from munjang.models.sentence_encoder import SentenceEncoder
from munjang.options import (
    ComputeOption,
    DeviceOption,
    DimensionsOption,
    EngineOption,
    LongTextOption,
    NormalizeOption,
    Option,
    PoolingOption,
    PrecisionOption,
    PromptNameOption,
)
from munjang.types import DEFAULT_COMPUTE, DEFAULT_DEVICE, DEFAULT_ENGINE, DEFAULT_LONG_TEXT, DEFAULT_PRECISION, Floats

Batch = TypeVar("Batch", bound=Any)
"""A record batch or a table of pyarrow's."""

_load_once = lru_cache(maxsize=2)(SentenceEncoder.load)


def encode_batch(
    batch: Batch,
    column: str,
    *,
    model: str | Path | None = None,
    into: str = "vector",
    precision: PrecisionOption = DEFAULT_PRECISION,
    dimensions: DimensionsOption = None,
    normalize: NormalizeOption = False,
    prompt_name: PromptNameOption = None,
    long_text: LongTextOption = DEFAULT_LONG_TEXT,
    compute: ComputeOption = DEFAULT_COMPUTE,
    pooling: PoolingOption = None,
    threads: Annotated[int, Option("Threads per process.", min=1)] = 1,
    device: DeviceOption = DEFAULT_DEVICE,
    engine: EngineOption = DEFAULT_ENGINE,
) -> Batch:
    """Return a record batch or table with the vectors of the texts in `column` in a new column `into`, an Arrow list of numbers.

    The model must be at the same path, or known by the same name, on every worker; a process loads it once.
    """
    texts = _read_texts(batch, column, into)
    encoder = _load_once(model, compute=compute, pooling=pooling, threads=threads, device=device, engine=engine)
    encoded = encoder.encode_with_report(
        texts,
        precision=precision,
        dimensions=dimensions,
        normalize=normalize,
        prompt_name=prompt_name,
        long_text=long_text,
    )
    return batch.append_column(into, _make_lists(encoded.vectors))  # type: ignore[no-any-return]


def _read_texts(batch: Any, column: str, into: str) -> list[str]:
    names: list[str] = batch.schema.names
    if column not in names:
        raise InputError(f"the batch has no column {quote(column)}, found {', '.join(quote(name) for name in names)}")
    if into in names:
        raise InputError(f"the batch has a column {quote(into)} already\n  choose another name for the vectors")
    texts: list[str] = batch.column(column).to_pylist()
    other = next((text for text in texts if not isinstance(text, str)), "")
    if not isinstance(other, str):
        raise InputError(f"{quote(column)} holds a {type(other).__name__}, expected texts only\n  fill or drop missing values first")
    return texts


def _make_lists(vectors_ND: Floats) -> Any:
    """Return vectors as lists of any length: Spark does not know those of a fixed one."""
    try:
        import pyarrow
    except ImportError as error:
        raise MissingExtra("encode_batch", "parquet") from error
    count, width = vectors_ND.shape
    offsets = pyarrow.array(np.arange(count + 1) * width, pyarrow.int32())
    return pyarrow.ListArray.from_arrays(offsets, pyarrow.array(np.ascontiguousarray(vectors_ND).reshape(-1)))
