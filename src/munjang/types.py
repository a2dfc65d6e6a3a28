"""The nouns that several rooms share: array aliases, and the protocols by which rooms know each other without importing each other.

Whoever is handed an Encoder or a Scorer from outside checks it with `check_encoder` or `check_scorer`: a model's name is the usual mistake.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias, runtime_checkable

from munjang.errors import UsageError, quote

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vectors: TypeAlias = NDArray[np.float32]
    """One vector per row, shape (n, d); or a single vector, shape (d,)."""

    Floats: TypeAlias = NDArray[np.floating]
    Ints: TypeAlias = NDArray[np.int64]
else:
    _SCALARS = {"Vectors": "float32", "Floats": "floating", "Ints": "int64"}

    def __getattr__(name: str) -> Any:
        """Import numpy when an alias of an array is asked for, not before: the command line starts without it."""
        if name not in _SCALARS:
            raise AttributeError(f"module 'munjang.types' has no attribute {name!r}")
        import numpy as np
        from numpy.typing import NDArray

        return NDArray[getattr(np, _SCALARS[name])]


Compute: TypeAlias = Literal["float32", "float16", "bfloat16", "int8", "auto"]
"""How a model computes: int8 is faster, float32 exact; "auto" is what the device is fastest in at the quality of float32."""

Device: TypeAlias = Literal["auto", "cpu", "cuda", "tensorrt", "rocm", "mps", "directml", "openvino"]
"""Where a model computes; "auto" is the best device that is installed and works. `engine/devices.py` has the table."""

EngineName: TypeAlias = Literal["auto", "fast", "torch"]
"""What runs a model: Munjang's own engine, or torch for families that it does not know; "auto" takes the first that can."""

DEFAULT_COMPUTE: Compute = "float32"
DEFAULT_DEVICE: Device = "auto"
DEFAULT_ENGINE: EngineName = "auto"

Pooling: TypeAlias = Literal["cls", "max", "mean", "mean_sqrt_len", "weightedmean", "lasttoken"]
"""How token vectors become one vector."""

Precision: TypeAlias = Literal["float32", "float16", "int8", "uint8", "binary", "ubinary"]
DEFAULT_PRECISION: Precision = "float32"

LongText: TypeAlias = Literal["truncate", "window", "error"]
"""A text beyond the model's limit: `truncate` keeps the beginning and warns, `window` averages overlapping windows, `error` refuses."""

DEFAULT_LONG_TEXT: LongText = "truncate"

Format: TypeAlias = Literal["txt", "csv", "tsv", "jsonl", "json", "parquet"]
"""How a file holds texts."""

DEFAULT_ENCODING = "utf-8-sig"
"""Of files: UTF-8, with or without a byte order mark."""

Metric: TypeAlias = Literal["cosine", "dot", "euclidean", "manhattan"]


@runtime_checkable
class Encoder(Protocol):
    """Turns texts into vectors; what search, analysis and evaluation are handed."""

    @property
    def dimension(self) -> int:
        """The number of dimensions of a vector."""
        ...

    @property
    def fingerprint(self) -> str:
        """Changes whenever the vectors would."""
        ...

    def encode(self, texts: Iterable[str], /) -> Vectors:
        """Return one float32 row per text, in the caller's order."""
        ...


SkippedTokens: TypeAlias = Literal["special", "prompt", "punctuation"]
"""Tokens that can be left out: [CLS] and its kind, the prompt's, those of punctuation and symbols alone."""


@runtime_checkable
class TokenEncoder(Protocol):
    """An encoder that has a vector for every token as well, from the same pass; a library with token vectors asks for them."""

    def encode_with_tokens(
        self, texts: Iterable[str], /, *, keep: Callable[[Vectors], Any], skip: Collection[SkippedTokens] = ()
    ) -> tuple[Vectors, list[Any]]:
        """Return what `encode` returns, and what `keep` makes of each text's token rows."""
        ...

    def token_places(self, text: str, /, *, skip: Collection[SkippedTokens] = ()) -> list[tuple[int, int]]:
        """Return which characters of a text stand behind each of these rows."""
        ...


@runtime_checkable
class RoleEncoder(Protocol):
    """An encoder that reads queries and documents with different prompts, such as a SentenceEncoder; a library asks for both."""

    def for_queries(self) -> Encoder:
        """Return the encoder of queries."""
        ...

    def for_documents(self) -> Encoder:
        """Return the encoder of documents."""
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
            f"{name} is the {kind} {quote(str(model))}, expected a loaded model\n  load it: {loader}.load({quote(str(model))})"
        )
    if not callable(getattr(model, method, None)):
        what = "None" if model is None else f"a {type(model).__name__}"
        raise UsageError(f"{name} is {what}, which has no {method}(), expected a loaded model such as {loader}.load() gives")
