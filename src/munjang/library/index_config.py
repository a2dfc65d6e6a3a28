"""How a library trades memory, disk and time; nothing here changes an exact answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal, TypeAlias

from munjang.options import Option
from munjang.wording import brief_repr

IndexMethod: TypeAlias = Literal["hnsw", "ivfflat"]
IndexPrecision: TypeAlias = Literal["float32", "float16", "binary"]
MethodOption: TypeAlias = Annotated[IndexMethod | None, Option("The index of a library in PostgreSQL. Default: as it is, else hnsw.")]
IndexPrecisionOption: TypeAlias = Annotated[
    IndexPrecision | None,
    Option("The number format of an index in PostgreSQL; its candidates are scored in float32. Default: as it is, else float16."),
]


@brief_repr
@dataclass(frozen=True)
class Tuning:
    """When caches are kept and how wide approximate search looks."""

    cache_from: int = 4_096
    """Passages from which the vectors are kept in a mapped file; below, reading the store is as fast."""

    approximate_from: int = 200_000
    """Passages from which lists are built by `prepare` and used when nothing else is asked for. Below, one exact search takes at most some
    tens of milliseconds, which nobody notices; here it begins to show, and building takes seconds."""

    stale_part: float = 0.1
    """Part of a cache that may be missing or deleted before it is made anew."""

    recall: float = 0.98
    """Part of the ten nearest passages that approximate search finds; what it takes is measured on a sample when the lists are built."""

    exact_filter_part: float = 0.05
    """A filter that keeps less than this part of the passages is answered exactly."""

    batch_documents: int = 512
    batch_characters: int = 2_000_000
    """What is encoded and committed at once."""
