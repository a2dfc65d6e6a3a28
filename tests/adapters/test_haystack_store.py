"""A library in Haystack's own hands: its base tests of document stores, and pipelines that retrieve, are saved and loaded."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.adapters.conftest import SHORT, adapter, library

pytestmark = pytest.mark.slow  # Haystack takes long to import

stores = adapter("haystack_store", needs="haystack")
haystack = library("haystack")
testing = library("haystack.testing.document_store")
DuplicatePolicy = library("haystack.document_stores.types").DuplicatePolicy
DuplicateDocumentError = library("haystack.document_stores.errors").DuplicateDocumentError


@pytest.fixture
def document_store(tiny_bert_folder: Path, tmp_path: Path) -> Iterator[Any]:
    made = stores.MunjangDocumentStore(str(tmp_path / "news.db"), model=str(tiny_bert_folder))
    yield made
    made.library.close()


def without_vectors(documents: list[Any]) -> list[tuple[str, str, dict[str, Any]]]:
    return sorted((each.id, each.content, each.meta) for each in documents)


class TestHaystacksBaseTests(testing.DocumentStoreBaseTests):
    """A library has an order and vectors of its own, so documents are compared without them."""

    @pytest.fixture
    def document_store(self, tiny_bert_folder: Path, tmp_path: Path) -> Iterator[Any]:
        with_model = stores.MunjangDocumentStore(str(tmp_path / "base.db"), model=str(tiny_bert_folder))
        yield with_model
        with_model.library.close()

    @staticmethod
    def assert_documents_are_equal(received: list[Any], expected: list[Any]) -> None:
        assert without_vectors(received) == without_vectors(expected)

    def test_write_documents(self, document_store: Any) -> None:
        document = haystack.Document(content="test doc")
        assert document_store.write_documents([document]) == 1
        with pytest.raises(DuplicateDocumentError, match="already"):
            document_store.write_documents([document])
        self.assert_documents_are_equal(document_store.filter_documents(), [document])


def documents() -> list[Any]:
    return [haystack.Document(id=str(at), content=text, meta={"at": at}) for at, text in enumerate(SHORT)]


def test_a_retriever_answers_as_the_library_does(document_store: Any, make_reranker: Any) -> None:
    document_store.write_documents(documents())
    folder = str(make_reranker(1))
    for by, reranker in (("meaning", None), (None, None), (None, folder)):
        made = stores.MunjangDocumentRetriever(document_store, top_k=3, by=by, reranker=reranker)
        found = made.run("the rain in winter")["documents"]
        hits = document_store.library.search("the rain in winter", 3, by=by, rerank=made._search.rerank)
        assert [(each.id, each.score) for each in found] == [(hit.id, pytest.approx(hit.score, abs=1e-6)) for hit in hits]
        assert all(each.content[each.meta["passage_start"] : each.meta["passage_stop"]] == each.meta["passage"] for each in found)


def test_filters_of_a_call_replace_those_of_the_component(document_store: Any) -> None:
    document_store.write_documents(documents())
    low, high = ({"field": "meta.at", "operator": sign, "value": 3} for sign in ("<", ">="))
    retriever = stores.MunjangDocumentRetriever(document_store, filters=low)
    assert {each.id for each in retriever.run("rain")["documents"]} == {"0", "1", "2"}
    assert {each.id for each in retriever.run("rain", filters=high, top_k=2)["documents"]} < {"3", "4", "5"}


def test_a_pipeline_is_saved_and_loaded(document_store: Any) -> None:
    document_store.write_documents(documents())
    pipeline = haystack.Pipeline()
    pipeline.add_component("retriever", stores.MunjangDocumentRetriever(document_store, top_k=1))
    again = haystack.Pipeline.from_dict(pipeline.to_dict(), allowed_modules=["munjang.adapters.haystack_store"])
    first, second = (each.run({"retriever": {"query": SHORT[1]}})["retriever"]["documents"] for each in (pipeline, again))
    assert [each.id for each in first] == [each.id for each in second] == ["1"]
    again.get_component("retriever").document_store.library.close()
