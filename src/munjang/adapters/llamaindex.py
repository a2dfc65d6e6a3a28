"""Munjang for LlamaIndex: a `BaseEmbedding`, a node postprocessor that re-ranks, and a library as a vector store and a retriever that
returns passages to cite. Needs llama-index-core.

The first two are pydantic models, as LlamaIndex wants them: they are saved by the model's name and loaded again by it. A library encodes
texts itself, with the model that it was opened with, so queries are handed over as texts and the vectors that LlamaIndex may have made are
not used. A node is a document: its text, its metadata, and LlamaIndex's own record of it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from munjang.adapters.library_search import LibrarySearch, list_documents
from munjang.adapters.loading import Texts, load_encoder, load_reranker, make_missing_error
from munjang.errors import UsageError
from munjang.library.library import Library
from munjang.library.old_names import take_hybrid
from munjang.library.ranking import By, Hybrid
from munjang.library.results import Hit
from munjang.library.where import AllOf, AnyOf, Compare, Condition, Contains, IsNull, Not, OneOf
from munjang.types import DEFAULT_COMPUTE, DEFAULT_LONG_TEXT, Compute, LongText, Scorer

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

    model_name: str = Field(default="", description="The name or folder of the cross-encoder; empty: the default model ranks.")
    model: Any = Field(default=None, exclude=True, description="A CrossEncoder or LateReranker that is loaded already.")
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


try:
    from llama_index.core.bridge.pydantic import PrivateAttr
    from llama_index.core.retrievers import BaseRetriever
    from llama_index.core.schema import BaseNode, MetadataMode, NodeWithScore, QueryBundle, TextNode
    from llama_index.core.vector_stores.types import (
        BasePydanticVectorStore,
        FilterCondition,
        FilterOperator,
        MetadataFilter,
        MetadataFilters,
        VectorStoreQuery,
        VectorStoreQueryMode,
        VectorStoreQueryResult,
    )
    from llama_index.core.vector_stores.utils import metadata_dict_to_node, node_to_metadata_dict
except ImportError as error:
    raise make_missing_error("llama_index", "llama-index-core", error) from error

NODE_ID, DOCUMENT_ID = "_node_id", "ref_doc_id"
"""Keys under which a node's own id, and that of the document it was cut from, can be filtered by."""

_SIGNS: dict[Any, Any] = {FilterOperator.GT: ">", FilterOperator.GTE: ">=", FilterOperator.LT: "<", FilterOperator.LTE: "<="}


_MODES: dict[Any, By] = {
    VectorStoreQueryMode.DEFAULT: None,
    VectorStoreQueryMode.HYBRID: Hybrid(),
    VectorStoreQueryMode.SEMANTIC_HYBRID: Hybrid(),
    VectorStoreQueryMode.TEXT_SEARCH: "words",
}


class MunjangLlamaIndexStore(BasePydanticVectorStore):  # type: ignore[misc]  # LlamaIndex is not there where types are checked
    """A library as a vector store: `MunjangLlamaIndexStore(library=…)`; `rerank` is a cross-encoder that reads the best hits again."""

    stores_text: bool = True
    is_embedding_query: bool = False
    by: Any = None

    _search: LibrarySearch = PrivateAttr()

    @take_hybrid
    def __init__(self, library: Library, *, by: By = None, rerank: Scorer | None = None) -> None:
        super().__init__(by=by)
        self._search = LibrarySearch(library, by, rerank)

    @classmethod
    def class_name(cls) -> str:
        """Return the name that LlamaIndex knows it by."""
        return "MunjangLlamaIndexStore"

    @property
    def client(self) -> Library:
        """The library."""
        return self._search.library

    def add(self, nodes: Sequence[BaseNode], **_more: Any) -> list[str]:
        """Add nodes, or replace those whose id is known; all are on disk when this returns."""
        self.client.add(
            [
                {
                    "id": node.node_id,
                    "text": node.get_content(metadata_mode=MetadataMode.NONE),
                    "metadata": {**node_to_metadata_dict(node, remove_text=True), NODE_ID: node.node_id},
                }
                for node in nodes
            ]
        )
        return [node.node_id for node in nodes]

    def delete(self, ref_doc_id: str, **_more: Any) -> None:
        """Remove the nodes that were cut from a document."""
        self.delete_nodes(filters=MetadataFilters(filters=[MetadataFilter(key=DOCUMENT_ID, value=ref_doc_id)]))

    def delete_nodes(self, node_ids: list[str] | None = None, filters: MetadataFilters | None = None, **_more: Any) -> None:
        """Remove nodes by id, by filter, or those that meet both; without either, nothing."""
        if filters is None:
            self.client.remove(node_ids or [])
        else:
            self.client.remove([each.node_id for each in self.get_nodes(node_ids, filters)])

    def get_nodes(self, node_ids: list[str] | None = None, filters: MetadataFilters | None = None) -> list[BaseNode]:
        """Return nodes by id, by filter, or those that meet both; without either, all."""
        if node_ids is not None and filters is None:
            return [make_node(each.id, each.text, each.metadata) for each in self.client.get(node_ids)]
        condition = _join([make_condition(filters), None if node_ids is None else OneOf(NODE_ID, tuple(node_ids))])
        return [make_node(each.id, each.text, each.metadata) for each in list_documents(self.client, condition)]

    def clear(self) -> None:
        """Remove all nodes."""
        self.client.remove([each.id for each in list_documents(self.client, None)])

    def query(self, query: VectorStoreQuery, **_more: Any) -> VectorStoreQueryResult:
        """Answer a query by its text; the mode `text_search` looks at words alone."""
        if query.query_str is None:
            raise UsageError("the query has no text (query_str), expected one\n  the library encodes queries itself")
        if query.mode not in _MODES:
            raise UsageError(f"the query's mode is {query.mode.value}, expected {', '.join(each.value for each in _MODES)}")
        condition = _join(
            [
                make_condition(query.filters),
                OneOf(NODE_ID, tuple(query.node_ids)) if query.node_ids else None,  # LlamaIndex says "all" with an empty list
                OneOf(DOCUMENT_ID, tuple(query.doc_ids)) if query.doc_ids else None,
            ]
        )
        hits = self._search.find_hits(query.query_str, query.similarity_top_k, where=condition, by=_MODES[query.mode])
        return VectorStoreQueryResult(
            nodes=[make_node(hit.id, hit.text, hit.metadata) for hit in hits],
            similarities=[hit.score for hit in hits],
            ids=[hit.id for hit in hits],
        )

    async def aquery(self, query: VectorStoreQuery, **more: Any) -> VectorStoreQueryResult:
        """Answer a query in a thread, so that others are not held up."""
        return await asyncio.to_thread(self.query, query, **more)


class MunjangLlamaIndexRetriever(BaseRetriever):  # type: ignore[misc]
    """Retrieves passages of a library's documents, with the document's id and the passage's place in the metadata, to cite."""

    @take_hybrid
    def __init__(
        self,
        library: Library,
        *,
        k: int = 4,
        filters: MetadataFilters | str | None = None,
        by: By = None,
        rerank: Scorer | None = None,
        **more: Any,
    ) -> None:
        self._search, self._k, self._filters = LibrarySearch(library, by, rerank), k, filters
        super().__init__(**more)

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        where = make_condition(self._filters) if isinstance(self._filters, MetadataFilters) else self._filters
        hits = self._search.find_hits(query_bundle.query_str, self._k, where=where)
        return [NodeWithScore(node=_passage(hit), score=hit.score) for hit in hits]

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return await asyncio.to_thread(self._retrieve, query_bundle)


def make_node(id: str, text: str, metadata: dict[str, Any]) -> BaseNode:
    """Return a document as the node that it was added as; one that was added by other means is a node with its id and metadata."""
    if "_node_content" in metadata:
        return metadata_dict_to_node(metadata, text=text)
    return TextNode(id_=id, text=text, metadata=metadata)


def make_condition(filters: MetadataFilters | None) -> Condition | None:
    """Return LlamaIndex's filters as a library reads them."""
    parts = [] if filters is None else [_part(each) for each in filters.filters]
    made = tuple(part for part in parts if part is not None)
    if filters is None or not made:
        return None
    match filters.condition:
        case FilterCondition.OR:
            return AnyOf(made)
        case FilterCondition.NOT:
            return Not(AnyOf(made))
    return AllOf(made)


def _part(each: MetadataFilter | MetadataFilters) -> Condition | None:
    if isinstance(each, MetadataFilters):
        return make_condition(each)
    key, value, operator = each.key, each.value, each.operator
    match operator:
        case FilterOperator.EQ | FilterOperator.NE:
            same: Condition = IsNull(key) if value is None else Compare(key, "=", value)
            return Not(same) if operator == FilterOperator.NE else same
        case FilterOperator.IN | FilterOperator.NIN:
            one_of = OneOf(key, tuple(value))
            return Not(one_of) if operator == FilterOperator.NIN else one_of
        case FilterOperator.CONTAINS | FilterOperator.TEXT_MATCH:
            return Contains(key, value)
        case FilterOperator.ANY:
            return AnyOf(tuple(Contains(key, one) for one in value))
        case FilterOperator.ALL:
            return AllOf(tuple(Contains(key, one) for one in value))
        case FilterOperator.IS_EMPTY:
            return AnyOf((IsNull(key), Compare(key, "=", "")))
        case _ if operator in _SIGNS:
            return Compare(key, _SIGNS[operator], value)
    raise UsageError(f"the filter's operator is {operator.value}, which a library does not have")


def _join(conditions: Sequence[Condition | None]) -> Condition | None:
    wanted = tuple(each for each in conditions if each is not None)
    return AllOf(wanted) if wanted else None


def _passage(hit: Hit) -> BaseNode:
    own = {key: value for key, value in hit.metadata.items() if not key.startswith("_node")}
    about = {**own, "document_id": hit.id, "start": hit.start, "stop": hit.stop}
    return TextNode(id_=f"{hit.id}#{hit.start}", text=hit.passage, metadata=about)
