"""What a caller calls a model (a name, a folder, a loaded model, nothing) → the model, and its vectors for queries and for documents.

Leaves to each adapter what its library wants to see around them. A library that an adapter is for and that is not installed is an error
that names the package to install.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias, Union

from munjang.errors import UsageError
from munjang.models.registry import resolve
from munjang.types import DEFAULT_COMPUTE, DEFAULT_LONG_TEXT, Compute, Floats, LongText

if TYPE_CHECKING:  # loaded with the first model: `llm` imports its plugins for every command
    from munjang.models.prompted_encoder import Role
    from munjang.models.ranking import Ranker
    from munjang.models.sentence_encoder import SentenceEncoder

Model: TypeAlias = Union[str, Path, "SentenceEncoder", None]
"""A name, a folder or a loaded model; None is the default model."""

Reranker: TypeAlias = Union[str, Path, "Ranker", None]

KEPT = 4
"""How many models stay in memory for adapters that know a model by its name only."""


@dataclass(frozen=True)
class Texts:
    """How texts become vectors: a model and the options that every adapter has."""

    encoder: SentenceEncoder
    normalize: bool = False
    dimensions: int | None = None
    long_text: LongText = DEFAULT_LONG_TEXT

    def vectors(self, texts: Sequence[str], role: Role | None = None) -> Floats:
        """Return one row per text, read with the model's prompt for the role, if it has one."""
        from munjang.text.validate_texts import validate_texts

        model = self.encoder
        encoder = model.for_queries() if role == "query" else model.for_documents() if role == "document" else model
        return encoder.encode(validate_texts(texts), normalize=self.normalize, dimensions=self.dimensions, long_text=self.long_text)

    def rows(self, texts: Sequence[str], role: Role | None = None) -> list[list[float]]:
        """Return the vectors as lists of Python numbers."""
        found: list[list[float]] = self.vectors(texts, role).tolist()
        return found


def load_encoder(model: Model, *, compute: Compute = DEFAULT_COMPUTE) -> SentenceEncoder:
    """Load a sentence encoder, unless it is loaded already."""
    from munjang.models.sentence_encoder import SentenceEncoder

    return model if isinstance(model, SentenceEncoder) else SentenceEncoder.load(model, compute=compute)


def load_reranker(model: Reranker, *, compute: Compute = DEFAULT_COMPUTE) -> Ranker:
    """Load a cross-encoder, unless it is loaded already; None is the default model, whose tokens are compared."""
    from munjang.models.cross_encoder import CrossEncoder
    from munjang.models.late_reranker import LateReranker
    from munjang.models.ranking import Ranker

    if isinstance(model, Ranker):
        return model
    return LateReranker(load_encoder(None, compute=compute)) if model is None else CrossEncoder.load(model, compute=compute)


def load_encoder_once(name: str | Path | None, *, compute: Compute = DEFAULT_COMPUTE) -> SentenceEncoder:
    """Return the model of that name; loaded once in a process, and again when its files have changed."""
    folder = resolve(name).path
    changed = max((file.stat().st_mtime_ns for file in folder.rglob("*") if file.is_file()), default=0)
    return _load_once(name, folder, changed, compute)


@lru_cache(maxsize=KEPT)
def _load_once(name: str | Path | None, _folder: Path, _changed: int, compute: Compute) -> SentenceEncoder:
    from munjang.models.sentence_encoder import SentenceEncoder

    return SentenceEncoder.load(name, compute=compute)


class MissingPackage(UsageError, ImportError):
    """An adapter's own library is not installed; also an ImportError, so that who asks with try and except hears no."""

    http_status = 501


def make_missing_error(library: str, package: str, error: ImportError) -> ImportError:
    """Return what to raise when `import library` failed: a hint to install `package`, or the error itself when something else is broken."""
    absent = (error.name or "").partition(".")[0]
    if absent != library.partition(".")[0]:
        return error
    return MissingPackage(f"this adapter needs {package}, which is not installed\n  pip install {package}", name=error.name)
