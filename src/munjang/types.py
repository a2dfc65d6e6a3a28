"""The nouns that several rooms share: array aliases, and the protocols by which rooms know each other without importing each other.

Whoever is handed an Encoder or a Scorer from outside checks it with `check_encoder` or `check_scorer`: a model's name is the usual mistake.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Literal, Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from munjang.errors import UsageError, shown

Vectors: TypeAlias = NDArray[np.float32]
"""One vector per row, shape (n, d); or a single vector, shape (d,)."""

Floats: TypeAlias = NDArray[np.floating]
Ints: TypeAlias = NDArray[np.int64]

Precision: TypeAlias = Literal["float32", "float16", "int8", "uint8", "binary", "ubinary"]
Metric: TypeAlias = Literal["cosine", "dot", "euclidean", "manhattan"]


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


def check_encoder(encoder: object, name: str = "encoder") -> None:
    """Refuse what cannot encode texts, such as the name of a model that is not loaded; `name` is the argument's.

    >>> check_encoder("ko-en-small")
    Traceback (most recent call last):
    munjang.errors.UsageError: encoder is the text 'ko-en-small', expected a loaded model
      load it: SentenceEncoder.load('ko-en-small')
    """
    _check_model(encoder, name, method="encode", loader="SentenceEncoder")


def check_scorer(scorer: object, name: str = "scorer") -> None:
    """Refuse what cannot score pairs, such as the name of a model that is not loaded; `name` is the argument's."""
    _check_model(scorer, name, method="predict", loader="CrossEncoder")


def _check_model(model: object, name: str, *, method: str, loader: str) -> None:
    if isinstance(model, str | Path):  # a text has an `encode` too
        kind = "text" if isinstance(model, str) else "path"
        raise UsageError(
            f"{name} is the {kind} {shown(str(model))}, expected a loaded model\n  load it: {loader}.load({shown(str(model))})"
        )
    if not callable(getattr(model, method, None)):
        what = "None" if model is None else f"a {type(model).__name__}"
        raise UsageError(f"{name} is {what}, which has no {method}(), expected a loaded model such as {loader}.load() gives")
