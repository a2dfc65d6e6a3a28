"""The nouns that several rooms share: array aliases, and the protocols by which rooms know each other without importing each other."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal, Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import NDArray

Vectors: TypeAlias = NDArray[np.float32]
"""One vector per row, shape (n, d); or a single vector, shape (d,)."""

Floats: TypeAlias = NDArray[np.floating]
Ints: TypeAlias = NDArray[np.int64]

Precision: TypeAlias = Literal["float32", "float16", "int8", "uint8", "binary", "ubinary"]
Metric: TypeAlias = Literal["cosine", "dot", "euclidean", "manhattan"]
Language: TypeAlias = Literal["en", "ko"]
"""What our own words and samples are written in."""


@runtime_checkable
class Encoder(Protocol):
    """Turns texts into vectors; what search, analysis and evaluation are handed."""

    @property
    def dimension(self) -> int:
        """How many numbers one vector has."""
        ...

    @property
    def fingerprint(self) -> str:
        """Changes whenever the vectors would."""
        ...

    def encode(self, texts: Iterable[str], /) -> Vectors:
        """Return one float32 row per text, in the caller's order."""
        ...


@runtime_checkable
class Scorer(Protocol):
    """Turns pairs of texts into scores: a cross-encoder."""

    def predict(self, pairs: Sequence[tuple[str, str]], /) -> Vectors:
        """Return one score per pair, or one row of label scores per pair."""
        ...
