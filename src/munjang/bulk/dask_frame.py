"""A Dask dataframe with a column of texts → the same dataframe with a column of vectors, computed when Dask asks for it.

Each process loads the model once. The new column has the type of an Arrow list of fixed size, so `to_parquet` writes what other tools read.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from munjang.errors import InputError, MissingExtra, quote
from munjang.models.registry import resolve
from munjang.models.sentence_encoder import SentenceEncoder
from munjang.types import Device


def encode_dask(
    frame: Any,
    column: str,
    *,
    model: str | Path | None = None,
    into: str = "vector",
    normalize: bool = False,
    threads: int = 1,
    device: Device = "auto",
) -> Any:
    """Return the dataframe with the vectors of `column` in the column `into`; nothing is encoded before it is computed.

    The model must be at the same path, or known by the same name, on every worker; `device` is where it computes there.
    """
    try:
        import pandas
        import pyarrow
    except ImportError as error:
        raise MissingExtra("encode_dask", "dask") from error
    if column not in frame.columns:
        raise InputError(f"the dataframe has no column {quote(column)}, found {', '.join(quote(str(name)) for name in frame.columns)}")
    path = str(resolve(model).path.resolve())
    dimension = _load_model(path, threads, device).dimension
    kind = pandas.ArrowDtype(pyarrow.list_(pyarrow.float32(), dimension))
    meta = frame._meta.assign(**{into: pandas.Series([], dtype=kind)})
    return frame.map_partitions(_add_vectors, column, into, path, normalize, threads, device, meta=meta)


def _add_vectors(part: Any, column: str, into: str, path: str, normalize: bool, threads: int, device: Device) -> Any:
    """Add the vectors of one partition."""
    import pandas
    import pyarrow

    texts = part[column].tolist()
    if any(not isinstance(text, str) for text in texts):
        found = next(text for text in texts if not isinstance(text, str))
        raise InputError(f"{quote(column)} holds a {type(found).__name__}, expected texts only\n  fill or drop missing values first")
    vectors_ND = _load_model(path, threads, device).encode_with_report(texts, normalize=normalize).vectors
    numbers = pyarrow.array(np.ascontiguousarray(vectors_ND).reshape(-1))
    lists = pyarrow.FixedSizeListArray.from_arrays(numbers, vectors_ND.shape[1])
    return part.assign(**{into: pandas.Series(pandas.arrays.ArrowExtensionArray(lists), index=part.index)})


@lru_cache(maxsize=2)
def _load_model(path: str, threads: int, device: Device) -> SentenceEncoder:
    return SentenceEncoder.load(path, threads=threads, device=device)
