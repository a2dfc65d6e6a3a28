"""A library for Haystack: a document store, and a retriever for pipelines. Needs haystack-ai.

The library encodes texts itself, with the model that it was made with, so a pipeline needs no embedder and documents carry no vectors. A
document must have text; what else Haystack knows of it (blobs, vectors) is not kept.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Literal

from munjang.adapters.library_search import LibrarySearch, list_documents
from munjang.adapters.loading import load_encoder, load_reranker, make_missing_error
from munjang.errors import quote
from munjang.library.library import Library
from munjang.library.old_names import take_hybrid
from munjang.library.store import Document as StoredDocument
from munjang.library.where import AllOf, AnyOf, Compare, Condition, IsNull, Not, OneOf
from munjang.types import DEFAULT_COMPUTE, Compute

try:
    from haystack import Document, component, default_from_dict, default_to_dict
    from haystack.document_stores.errors import DuplicateDocumentError
    from haystack.document_stores.types import DuplicatePolicy
    from haystack.errors import FilterError
except ImportError as error:
    raise make_missing_error("haystack", "haystack-ai", error) from error

_SIGNS: dict[str, Any] = {">": ">", ">=": ">=", "<": "<", "<=": "<="}
_OPERATORS = ("==", "!=", *_SIGNS, "in", "not in")


class MunjangDocumentStore:
    """A library as a document store; known by its path and the name of its model, so that a pipeline can be saved."""

    def __init__(self, path: str, *, model: str | None = None, compute: Compute = DEFAULT_COMPUTE) -> None:
        self.path, self.model, self.compute = str(path), model, compute
        self.library = Library.open(path, load_encoder(model, compute=compute))

    def to_dict(self) -> dict[str, Any]:
        """Return what it takes to open the same library again."""
        made: dict[str, Any] = default_to_dict(self, path=self.path, model=self.model, compute=self.compute)
        return made

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> MunjangDocumentStore:
        """Open the library that `to_dict` described."""
        made: MunjangDocumentStore = default_from_dict(cls, data)
        return made

    def count_documents(self) -> int:
        """Return how many documents there are."""
        return self.library.info().documents

    def filter_documents(self, filters: dict[str, Any] | None = None) -> list[Document]:
        """Return the documents that meet the filters; every document is looked at."""
        return [make_document(each) for each in list_documents(self.library, make_condition(filters))]

    def write_documents(self, documents: list[Document], policy: DuplicatePolicy = DuplicatePolicy.NONE) -> int:
        """Write documents and return how many; all are on disk when this returns. Without a policy a known id is an error."""
        if not isinstance(documents, list) or not all(isinstance(each, Document) for each in documents):
            raise ValueError("documents: expected a list of Haystack's Document")
        known = {each.id for each in self.library.get([document.id for document in documents])}
        if known and policy in (DuplicatePolicy.NONE, DuplicatePolicy.FAIL):
            raise DuplicateDocumentError(f"there is a document {quote(sorted(known)[0])} already; DuplicatePolicy.OVERWRITE replaces it")
        new = [each for each in documents if policy != DuplicatePolicy.SKIP or each.id not in known]
        self.library.add([{"id": each.id, "text": each.content or "", "metadata": each.meta} for each in new])
        return len(new)

    def delete_documents(self, document_ids: list[str]) -> None:
        """Remove documents; unknown ids are ignored."""
        self.library.remove(document_ids)


@component
class MunjangDocumentRetriever:
    """Finds documents of a MunjangDocumentStore by meaning and words.

    `by` restricts it to "meaning" or "words", `reranker` names a cross-encoder that reads the best again. Each document has its score, and
    in its metadata the passage that answers best and its place, to cite.
    """

    @take_hybrid
    def __init__(
        self,
        document_store: MunjangDocumentStore,
        filters: dict[str, Any] | None = None,
        top_k: int = 10,
        *,
        by: Literal["meaning", "words"] | None = None,
        reranker: str | None = None,
    ) -> None:
        self.document_store, self.filters, self.top_k, self.by, self.reranker = document_store, filters, top_k, by, reranker
        scorer = None if reranker is None else load_reranker(reranker, compute=document_store.compute)
        self._search = LibrarySearch(document_store.library, by, scorer)

    def to_dict(self) -> dict[str, Any]:
        """Return what it takes to make the same component again."""
        made: dict[str, Any] = default_to_dict(
            self,
            document_store=self.document_store.to_dict(),
            filters=self.filters,
            top_k=self.top_k,
            by=self.by,
            reranker=self.reranker,
        )
        return made

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> MunjangDocumentRetriever:
        """Make the component that `to_dict` described."""
        given = data["init_parameters"]
        store = MunjangDocumentStore.from_dict(given["document_store"])
        made: MunjangDocumentRetriever = default_from_dict(cls, {**data, "init_parameters": {**given, "document_store": store}})
        return made

    @component.output_types(documents=list[Document])  # type: ignore[untyped-decorator]
    def run(self, query: str, filters: dict[str, Any] | None = None, top_k: int | None = None) -> dict[str, list[Document]]:
        """Return the best documents for a query; filters of a call replace those of the component."""
        condition = make_condition(self.filters if filters is None else filters)
        hits = self._search.find_hits(query, self.top_k if top_k is None else top_k, where=condition)
        place = ({"passage": hit.passage, "passage_start": hit.start, "passage_stop": hit.stop} for hit in hits)
        return {
            "documents": [
                Document(id=hit.id, content=hit.text, meta={**hit.metadata, **where}, score=hit.score)
                for hit, where in zip(hits, place, strict=True)
            ]
        }


def make_document(document: StoredDocument) -> Document:
    """Return a library's document as Haystack's."""
    return Document(id=document.id, content=document.text, meta=document.metadata)


def make_condition(filters: Mapping[str, Any] | None) -> Condition | None:
    """Return Haystack's filters as a library reads them.

    >>> make_condition({"field": "meta.year", "operator": ">=", "value": 2020})
    Compare(key='year', operator='>=', value=2020)
    """
    if not filters:
        return None
    if "field" in filters:
        return _compare(filters)
    if "operator" not in filters or "conditions" not in filters:
        raise FilterError(f"the filter has {', '.join(map(str, filters))}, expected field, operator and value, or operator and conditions")
    parts = tuple(made for each in filters["conditions"] if (made := make_condition(each)) is not None)
    match filters["operator"]:
        case "AND":
            return AllOf(parts)
        case "OR":
            return AnyOf(parts)
        case "NOT":
            return Not(AllOf(parts))
    raise FilterError(f"the filter's operator is {filters['operator']!r}, expected AND, OR or NOT")


def _compare(filter: Mapping[str, Any]) -> Condition:
    if "operator" not in filter or "value" not in filter:
        raise FilterError(f"the filter on {filter['field']!r} has no operator or no value")
    operator, value = filter["operator"], filter["value"]
    key = {"content": "text"}.get(filter["field"], filter["field"].removeprefix("meta."))
    if operator in ("==", "!="):
        same: Condition = IsNull(key) if value is None else Compare(key, "=", value)
        return Not(same) if operator == "!=" else same
    if operator in ("in", "not in"):
        if not isinstance(value, list):
            raise FilterError(f"the filter on {key!r} has a {type(value).__name__} with {operator!r}, expected a list")
        return Not(OneOf(key, tuple(value))) if operator == "not in" else OneOf(key, tuple(value))
    if operator not in _SIGNS:
        raise FilterError(f"the filter on {key!r} has {operator!r}, expected one of {', '.join(_OPERATORS)}")
    if value is None:
        return AnyOf(())  # nothing is more or less than nothing
    if isinstance(value, Sequence) and not (isinstance(value, str) and _is_date(value)):
        raise FilterError(f"the filter on {key!r} has {value!r} with {operator!r}, expected a number or an ISO date")
    return Compare(key, _SIGNS[operator], value)


def _is_date(text: str) -> bool:
    try:
        datetime.fromisoformat(text)
    except ValueError:
        return False
    return True
