"""Munjang for LangChain: an `Embeddings`, a cross-encoder, and a document compressor that re-ranks. Needs langchain-core.

Queries and documents are read with the model's own prompts for them, where it has some.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from munjang.adapters.loading import Model, Reranker, Texts, load_encoder, load_reranker, make_missing_error
from munjang.errors import UsageError
from munjang.types import DEFAULT_COMPUTE, DEFAULT_LONG_TEXT, Compute, LongText

try:
    from langchain_core.cross_encoders import BaseCrossEncoder
    from langchain_core.documents import BaseDocumentCompressor, Document
    from langchain_core.embeddings import Embeddings
    from pydantic import ConfigDict, Field, PrivateAttr
except ImportError as error:
    raise make_missing_error("langchain_core", "langchain-core", error) from error


class MunjangEmbeddings(Embeddings):  # type: ignore[misc]  # LangChain is not there where types are checked
    """Vectors for LangChain's stores and retrievers."""

    def __init__(
        self,
        model: Model = None,
        *,
        compute: Compute = DEFAULT_COMPUTE,
        normalize: bool = False,
        dimensions: int | None = None,
        long_text: LongText = DEFAULT_LONG_TEXT,
    ) -> None:
        self.encoder = load_encoder(model, compute=compute)
        self._texts = Texts(self.encoder, normalize, dimensions, long_text)

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Return one vector per document."""
        return self._texts.rows(texts, "document")

    def embed_query(self, text: str) -> list[float]:
        """Return the vector of a query."""
        return self._texts.rows([text], "query")[0]


class MunjangCrossEncoder(BaseCrossEncoder):  # type: ignore[misc]
    """Scores of pairs, for LangChain's `CrossEncoderReranker` and its like."""

    def __init__(self, model: Reranker = None, *, compute: Compute = DEFAULT_COMPUTE) -> None:
        self.scorer = load_reranker(model, compute=compute)
        if len(self.scorer.labels) != 1:
            raise UsageError(f"{self.scorer.name}: has {len(self.scorer.labels)} labels; LangChain expects a model with one score")

    def score(self, text_pairs: list[tuple[str, str]]) -> list[float]:
        """Return one score per pair."""
        found: list[float] = self.scorer.predict(text_pairs).tolist()
        return found


class MunjangReranker(BaseDocumentCompressor):  # type: ignore[misc]
    """Keeps the `top_n` documents that answer a query best, best first, each with a `relevance_score` in its metadata."""

    model_config = ConfigDict(arbitrary_types_allowed=True, extra="forbid")

    model: Any = Field(default=None, exclude=True)
    """A name, a folder or a loaded CrossEncoder; None is the default re-ranker."""
    top_n: int | None = Field(default=3, ge=1)
    """None keeps all."""
    compute: Compute = DEFAULT_COMPUTE

    _scorer: Any = PrivateAttr()

    def model_post_init(self, context: Any, /) -> None:
        """Load the model, so that a wrong name is heard at once."""
        super().model_post_init(context)
        self._scorer = load_reranker(self.model, compute=self.compute)

    def compress_documents(self, documents: Sequence[Document], query: str, callbacks: Any = None) -> Sequence[Document]:  # noqa: ARG002
        """Return the best documents as copies; those that came in stay as they are."""
        ranking = self._scorer.rank(query, [document.page_content for document in documents], k=self.top_n)
        return [_score(documents[found.index], found.score) for found in ranking.documents]


def _score(document: Document, score: float) -> Document:
    return document.model_copy(update={"metadata": {**document.metadata, "relevance_score": score}})
