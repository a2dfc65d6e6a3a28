"""Munjang for KeyBERT: a back end for its `model=`. Needs keybert.

Munjang has keywords of its own: `munjang.extract_keywords`.
"""

from __future__ import annotations

from collections.abc import Sequence

from munjang.adapters.loading import Model, Texts, load_encoder, make_missing_error
from munjang.types import DEFAULT_COMPUTE, Compute, Floats

try:
    from keybert.backend import BaseEmbedder
except ImportError as error:
    raise make_missing_error("keybert", "keybert", error) from error


class MunjangKeyBERTBackend(BaseEmbedder):  # type: ignore[misc]  # KeyBERT has no types
    """Vectors of documents and words for KeyBERT."""

    def __init__(self, model: Model = None, *, compute: Compute = DEFAULT_COMPUTE) -> None:
        super().__init__(embedding_model=load_encoder(model, compute=compute))

    def embed(self, documents: Sequence[str], verbose: bool = False) -> Floats:  # noqa: ARG002
        """Return one row per document or word."""
        return Texts(self.embedding_model).vectors(documents)
