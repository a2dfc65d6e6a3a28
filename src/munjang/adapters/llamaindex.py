"""Munjang for LlamaIndex: a `BaseEmbedding` and a node postprocessor that re-ranks. Needs llama-index-core.

Both are pydantic models, as LlamaIndex wants them: they are saved by the model's name and loaded again by it.
"""

from __future__ import annotations

import asyncio
from typing import Any

from munjang.adapters.loading import Texts, load_encoder, load_reranker, make_missing_error
from munjang.errors import UsageError
from munjang.types import DEFAULT_COMPUTE, DEFAULT_LONG_TEXT, Compute, LongText

try:
    from llama_index.core.base.embeddings.base import BaseEmbedding
    from llama_index.core.bridge.pydantic import Field, PrivateAttr
    from llama_index.core.postprocessor.types import BaseNodePostprocessor
    from llama_index.core.schema import MetadataMode, NodeWithScore, QueryBundle
except ImportError as error:
    raise make_missing_error("llama_index", "llama-index-core", error) from error

NODES_AT_ONCE = 256
"""LlamaIndex hands over so many texts at a time; its own default, 10, would leave the engine idle."""


class MunjangEmbedding(BaseEmbedding):  # type: ignore[misc]  # LlamaIndex is not there where types are checked
    """Vectors for LlamaIndex: `model_name` is a name or a folder, `model` a loaded SentenceEncoder; neither is the default model."""

    model_name: str = Field(default="", description="The name or folder of the model; empty is the default model.")
    embed_batch_size: int = Field(default=NODES_AT_ONCE, gt=0, le=2048, description="How many texts are handed over at a time.")
    model: Any = Field(default=None, exclude=True, description="A SentenceEncoder that is loaded already.")
    compute: Compute = DEFAULT_COMPUTE
    normalize: bool = False
    dimensions: int | None = None
    long_text: LongText = DEFAULT_LONG_TEXT

    _texts: Texts = PrivateAttr()

    def model_post_init(self, context: Any, /) -> None:
        """Load the model, so that a wrong name is heard at once."""
        super().model_post_init(context)
        encoder = load_encoder(self.model or self.model_name or None, compute=self.compute)
        self.model_name = self.model_name or encoder.name
        self._texts = Texts(encoder, self.normalize, self.dimensions, self.long_text)

    @classmethod
    def class_name(cls) -> str:
        """Return the name under which LlamaIndex saves it."""
        return "MunjangEmbedding"

    def _get_query_embedding(self, query: str) -> list[float]:
        return self._texts.rows([query], "query")[0]

    def _get_text_embedding(self, text: str) -> list[float]:
        return self._texts.rows([text], "document")[0]

    def _get_text_embeddings(self, texts: list[str]) -> list[list[float]]:
        return self._texts.rows(texts, "document")

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return await asyncio.to_thread(self._get_query_embedding, query)

    async def _aget_text_embedding(self, text: str) -> list[float]:
        return await asyncio.to_thread(self._get_text_embedding, text)

    async def _aget_text_embeddings(self, texts: list[str]) -> list[list[float]]:
        return await asyncio.to_thread(self._get_text_embeddings, texts)


class MunjangRerank(BaseNodePostprocessor):  # type: ignore[misc]
    """Keeps the `top_n` nodes that answer the query best; their scores are the cross-encoder's."""

    model_name: str = Field(default="", description="The name or folder of the cross-encoder; empty is the default re-ranker.")
    model: Any = Field(default=None, exclude=True, description="A CrossEncoder that is loaded already.")
    top_n: int = Field(default=3, ge=1, description="How many nodes are kept.")
    compute: Compute = DEFAULT_COMPUTE

    _scorer: Any = PrivateAttr()

    def model_post_init(self, context: Any, /) -> None:
        """Load the model, so that a wrong name is heard at once."""
        super().model_post_init(context)
        self._scorer = load_reranker(self.model or self.model_name or None, compute=self.compute)
        self.model_name = self.model_name or self._scorer.name

    @classmethod
    def class_name(cls) -> str:
        """Return the name under which LlamaIndex saves it."""
        return "MunjangRerank"

    def _postprocess_nodes(self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None) -> list[NodeWithScore]:
        if query_bundle is None:
            raise UsageError("re-ranking needs the query; give query_str or query_bundle")
        texts = [node.node.get_content(metadata_mode=MetadataMode.EMBED) for node in nodes]
        ranking = self._scorer.rank(query_bundle.query_str, texts, k=self.top_n)
        return [NodeWithScore(node=nodes[found.index].node, score=found.score) for found in ranking.documents]
