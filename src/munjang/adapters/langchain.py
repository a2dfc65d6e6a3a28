"""Munjang for LangChain: an `Embeddings`, a cross-encoder, a document compressor that re-ranks, and a library as a `VectorStore` and a
retriever that returns passages to cite. Needs langchain-core.

Queries and documents are read with the model's own prompts for them, where it has some. A library encodes texts itself, with the model that
it was opened with; `EmbeddingsEncoder` makes such a model of LangChain's `Embeddings`. A filter is written as in `Library.search`
("year >= 2020"), or as LangChain's stores write it: {"year": {"$gte": 2020}}.
"""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from munjang.adapters.library_search import LibrarySearch
from munjang.adapters.loading import Model, Reranker, Texts, load_encoder, load_reranker, make_missing_error
from munjang.errors import UsageError, quote
from munjang.library.library import Library
from munjang.library.old_names import take_hybrid
from munjang.library.ranking import By
from munjang.library.results import Hit
from munjang.library.where import AllOf, AnyOf, Compare, Condition, Contains, IsNull, Like, Not, OneOf
from munjang.text.validate_texts import validate_texts
from munjang.types import DEFAULT_COMPUTE, DEFAULT_LONG_TEXT, Compute, Encoder, Floats, LongText, Scorer

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
    """A name or folder of a cross-encoder, or a loaded ranker; None is the default model, whose tokens are compared."""
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


try:
    from langchain_core.callbacks import CallbackManagerForRetrieverRun
    from langchain_core.documents import Document
    from langchain_core.embeddings import Embeddings
    from langchain_core.retrievers import BaseRetriever
    from langchain_core.vectorstores import VectorStore
    from langchain_core.vectorstores.utils import maximal_marginal_relevance
    from pydantic import ConfigDict, Field
except ImportError as error:
    raise make_missing_error("langchain_core", "langchain-core", error) from error

Filter: TypeAlias = str | Condition | Mapping[str, Any] | None

_SIGNS: dict[str, Any] = {"$gt": ">", "$gte": ">=", "$lt": "<", "$lte": "<="}
_OPERATORS = ("$eq", "$ne", *_SIGNS, "$in", "$nin", "$exists", "$like", "$contains")


class EmbeddingsEncoder:
    """Any `Embeddings` of LangChain as the encoder of a library; `name` says which model it is, since LangChain does not."""

    def __init__(self, embeddings: Embeddings, *, name: str | None = None, queries: bool = False) -> None:
        self.embeddings, self.name, self._queries = embeddings, name or type(embeddings).__name__, queries
        self._dimension: int | None = None

    @property
    def dimension(self) -> int:
        """How many numbers a vector has; asks for the vector of a short text the first time."""
        if self._dimension is None:
            self._dimension = len(self.embeddings.embed_query("a"))
        return self._dimension

    @property
    def fingerprint(self) -> str:
        """Changes with the name and the number of dimensions; what the model behind it computes is not known here."""
        return hashlib.sha256(f"langchain {self.name} {self.dimension}".encode()).hexdigest()[:32]

    def for_queries(self) -> EmbeddingsEncoder:
        """Return the encoder of queries."""
        return self._as(queries=True)

    def for_documents(self) -> EmbeddingsEncoder:
        """Return the encoder of documents."""
        return self._as(queries=False)

    def encode(self, texts: Iterable[str], /) -> Floats:
        """Return one float32 row per text."""
        given = validate_texts(texts)
        rows = [self.embeddings.embed_query(text) for text in given] if self._queries else self.embeddings.embed_documents(given)
        return np.asarray(rows, dtype=np.float32).reshape(len(given), self.dimension)

    def _as(self, *, queries: bool) -> EmbeddingsEncoder:
        made = EmbeddingsEncoder(self.embeddings, name=self.name, queries=queries)
        made._dimension = self.dimension
        return made


class MunjangVectorStore(VectorStore):  # type: ignore[misc]  # LangChain is not there where types are checked
    """A library as a vector store: `by` and `rerank` are how it is searched, unless a call says otherwise."""

    @take_hybrid
    def __init__(self, library: Library, *, by: By = None, rerank: Scorer | None = None) -> None:
        self.library = library
        self._search = LibrarySearch(library, by, rerank)

    @property
    def embeddings(self) -> Embeddings | None:
        """What encodes texts, where it is one of LangChain's."""
        encoder = self.library.encoder
        return encoder.embeddings if isinstance(encoder, EmbeddingsEncoder) else None

    def add_documents(self, documents: list[Document], ids: list[str] | None = None, **_more: Any) -> list[str]:
        """Add documents, or replace those whose id is known; all are on disk when this returns. One without an id gets a new one."""
        if ids is not None and len(ids) != len(documents):
            raise UsageError(f"there are {len(ids):,} ids for {len(documents):,} documents, expected one for each")
        given = ids or [document.id for document in documents]
        chosen = [id or str(uuid.uuid4()) for id in given]
        self.library.add(
            [
                {"id": id, "text": document.page_content, "metadata": document.metadata}
                for id, document in zip(chosen, documents, strict=True)
            ]
        )
        return chosen

    def delete(self, ids: list[str] | None = None, **_more: Any) -> bool:
        """Remove documents; unknown ids are ignored."""
        if ids is None:
            raise UsageError("ids is None, expected the ids of documents\n  to start over, open another library")
        self.library.remove(ids)
        return True

    def get_by_ids(self, ids: Sequence[str], /) -> list[Document]:
        """Return the documents with these ids, without those that do not exist."""
        return [Document(id=each.id, page_content=each.text, metadata=each.metadata) for each in self.library.get(ids)]

    def similarity_search(self, query: str, k: int = 4, **options: Any) -> list[Document]:
        """Return the k best documents; options are `filter`, `by`, `rerank` and `min_score`."""
        return [document for document, _ in self.similarity_search_with_score(query, k, **options)]

    @take_hybrid
    def similarity_search_with_score(
        self,
        query: str,
        k: int = 4,
        *,
        filter: Filter = None,
        by: By = None,
        rerank: Scorer | None = None,
        min_score: float | None = None,
    ) -> list[tuple[Document, float]]:
        """Return the k best documents with their scores, from 0 to 1, or a re-ranker's; higher is better."""
        hits = self._search.find_hits(query, k, where=make_condition(filter), by=by, rerank=rerank, min_score=min_score)
        return [(_document(hit), hit.score) for hit in hits]

    def max_marginal_relevance_search(
        self, query: str, k: int = 4, fetch_k: int = 20, lambda_mult: float = 0.5, *, filter: Filter = None, **options: Any
    ) -> list[Document]:
        """Return k of the best `fetch_k` documents that answer the query and are not all alike."""
        hits = self._search.find_hits(query, max(k, fetch_k), where=make_condition(filter), **options)
        encoder, query_encoder = self.library.encoder, self.library.query_encoder
        if not hits or encoder is None or query_encoder is None:
            return []
        vectors = encoder.encode([hit.passage for hit in hits])
        chosen = maximal_marginal_relevance(query_encoder.encode([query])[0], list(vectors), lambda_mult=lambda_mult, k=k)
        return [_document(hits[place]) for place in chosen]

    @classmethod
    def from_texts(
        cls,
        texts: list[str],
        embedding: Embeddings,
        metadatas: list[dict[str, Any]] | None = None,
        *,
        ids: list[str] | None = None,
        path: str | Path,
        **options: Any,
    ) -> MunjangVectorStore:
        """Return the store of the library at `path`, with these texts added; the embeddings are its model."""
        store = cls(Library.open(path, make_encoder(embedding)), **options)
        store.add_texts(texts, metadatas, ids=ids)
        return store

    def _select_relevance_score_fn(self) -> Callable[[float], float]:
        return lambda score: min(1.0, max(0.0, score))  # a cosine below 0 is as irrelevant as one of 0


class MunjangLibraryRetriever(BaseRetriever):  # type: ignore[misc]
    """Retrieves passages: the stretch of each document that answers best, with the document's id, its place and score to cite."""

    model_config = ConfigDict(arbitrary_types_allowed=True, extra="forbid")

    library: Any = Field(exclude=True)
    """An open Library."""
    k: int = Field(default=4, ge=1)
    filter: Any = None
    """As in MunjangVectorStore."""
    by: Any = None
    """Meaning alone ("meaning"), words alone ("words"), or a Hybrid with other weights; None is both."""
    rerank: Any = Field(default=None, exclude=True)
    """A loaded CrossEncoder."""

    @take_hybrid
    def __init__(self, **given: Any) -> None:
        super().__init__(**given)

    def _get_relevant_documents(
        self,
        query: str,
        *,
        run_manager: CallbackManagerForRetrieverRun,  # noqa: ARG002
        k: int | None = None,
        filter: Filter = None,
    ) -> list[Document]:
        search = LibrarySearch(self.library, self.by, self.rerank)
        hits = search.find_hits(query, self.k if k is None else k, where=make_condition(self.filter if filter is None else filter))
        return [
            Document(
                id=hit.id,
                page_content=hit.passage,
                metadata={**hit.metadata, "document_id": hit.id, "start": hit.start, "stop": hit.stop, "score": hit.score},
            )
            for hit in hits
        ]


def make_encoder(embeddings: Embeddings) -> Encoder:
    """Return an encoder for a library: the model itself where the embeddings are Munjang's."""
    return embeddings.encoder if isinstance(embeddings, MunjangEmbeddings) else EmbeddingsEncoder(embeddings)


def make_condition(filter: Filter) -> str | Condition | None:
    """Return a filter as a library reads it.

    >>> make_condition({"year": {"$gte": 2020}, "kind": "a"})
    AllOf(conditions=(Compare(key='year', operator='>=', value=2020), Compare(key='kind', operator='=', value='a')))
    """
    if not isinstance(filter, Mapping):
        return filter
    parts = tuple(part for key, value in filter.items() for part in _parts(key, value))
    if not parts:
        return None
    return parts[0] if len(parts) == 1 else AllOf(parts)


def _parts(key: str, value: Any) -> list[Condition]:
    if key in ("$and", "$or"):
        inner = [made for each in value if (made := make_condition(each)) is not None and not isinstance(made, str)]
        return [AllOf(tuple(inner)) if key == "$and" else AnyOf(tuple(inner))]
    if key == "$not":
        made = make_condition(value)
        return [] if made is None or isinstance(made, str) else [Not(made)]
    if key.startswith("$"):
        raise UsageError(f"the filter has {quote(key)}, expected a key of the metadata, $and, $or or $not")
    if not isinstance(value, Mapping):
        return [_compare(key, "$eq", value)]
    return [_compare(key, operator, wanted) for operator, wanted in value.items()]


def _compare(key: str, operator: str, value: Any) -> Condition:
    for each in value if operator in ("$in", "$nin") and isinstance(value, list | tuple) else [value]:
        if not isinstance(each, str | int | float | None):
            raise UsageError(f"the filter on {quote(key)} compares with a {type(each).__name__}, expected a text, a number or a boolean")
    match operator:
        case "$eq":
            return IsNull(key) if value is None else Compare(key, "=", value)
        case "$ne":
            return Not(IsNull(key) if value is None else Compare(key, "=", value))
        case "$in":
            return OneOf(key, tuple(value))
        case "$nin":
            return Not(OneOf(key, tuple(value)))
        case "$exists":
            return Not(IsNull(key)) if value else IsNull(key)
        case "$like":
            return Like(key, value)
        case "$contains":
            return Contains(key, value)
        case _ if operator in _SIGNS:
            return Compare(key, _SIGNS[operator], value)
    raise UsageError(f"the filter on {quote(key)} has {quote(operator)}, expected one of {', '.join(_OPERATORS)}")


def _document(hit: Hit) -> Document:
    return Document(id=hit.id, page_content=hit.text, metadata=hit.metadata)
