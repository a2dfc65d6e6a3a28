"""A library in LangChain's own hands: its standard tests of vector stores and retrievers, filters, hybrid search and re-ranking."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.adapters.conftest import SHORT, adapter, library

from munjang import CrossEncoder, Library, SentenceEncoder
from munjang.errors import UsageError

adapters = adapter("langchain", needs="langchain_core")
Document = library("langchain_core.documents").Document
FakeEmbedding = library("langchain_core.embeddings").DeterministicFakeEmbedding
ROOT = Path(__file__).parents[2]


@pytest.fixture
def news(model: SentenceEncoder, tmp_path: Path) -> Iterator[Library]:
    with Library.open(tmp_path / "news.db", model, analyser="bigrams") as opened:
        yield opened


@pytest.fixture
def store(news: Library) -> Any:
    made = adapters.MunjangVectorStore(news)
    made.add_documents([Document(id=str(at), page_content=text, metadata={"at": at, "even": at % 2 == 0}) for at, text in enumerate(SHORT)])
    return made


def test_a_store_answers_as_its_library_does(store: Any, news: Library, reranker: CrossEncoder) -> None:
    for options in ({}, {"by": "words"}, {"rerank": reranker}, {"min_score": 0.2}):
        found = store.similarity_search_with_score("the rain in winter", k=3, **options)
        hits = news.search("the rain in winter", 3, **options)
        assert [(document.id, score) for document, score in found] == [(hit.id, pytest.approx(hit.score, abs=1e-6)) for hit in hits]
    own = adapters.MunjangVectorStore(news, rerank=reranker)
    expected = news.search("the rain", 2, rerank=reranker)
    assert [each.id for each in own.similarity_search("the rain", k=2)] == [hit.id for hit in expected]


@pytest.mark.parametrize(
    ("filter", "ids"),
    [
        ("at >= 4", {"4", "5"}),
        ({"at": 3}, {"3"}),
        ({"at": {"$gte": 1, "$lt": 3}}, {"1", "2"}),
        ({"at": {"$in": [0, 5]}}, {"0", "5"}),
        ({"at": {"$nin": [0, 1, 2]}}, {"3", "4", "5"}),
        ({"$or": [{"at": 1}, {"$and": [{"at": {"$gt": 2}}, {"even": True}]}]}, {"1", "4"}),
        ({"$not": {"at": {"$ne": 2}}}, {"2"}),
        ({"at": {"$exists": False}}, set()),
        ({"at": {"$in": []}}, set()),
        ({"$and": []}, set("012345")),
        ({}, set("012345")),
    ],
    ids=lambda value: str(sorted(value)) if isinstance(value, set) else str(value),
)
def test_filters_of_both_kinds_are_understood(store: Any, filter: Any, ids: set[str]) -> None:
    assert {each.id for each in store.similarity_search("rain", k=6, filter=filter)} == ids


def test_an_unknown_operator_is_named(store: Any) -> None:
    with pytest.raises(UsageError, match=r"'\$near', expected one of \$eq"):
        store.similarity_search("rain", filter={"at": {"$near": 1}})
    with pytest.raises(UsageError, match="compares with a list"):
        store.similarity_search("rain", filter={"at": [1]})
    with pytest.raises(UsageError, match=r"'\$nor', expected a key"):
        store.similarity_search("rain", filter={"$nor": []})
    with pytest.raises(UsageError, match="2 ids for 1 documents"):
        store.add_documents([Document(page_content="rain")], ids=["1", "2"])
    with pytest.raises(UsageError, match="ids is None"):
        store.delete()


def test_retrievers_take_every_kind_of_search(store: Any, news: Library) -> None:
    [first] = store.as_retriever(search_kwargs={"k": 1, "filter": "at = 2"}).invoke("rain")
    assert first == Document(id="2", page_content=SHORT[2], metadata={"at": 2, "even": True})
    various = store.as_retriever(search_type="mmr", search_kwargs={"k": 3, "fetch_k": 6}).invoke(SHORT[0])
    assert (various[0].page_content, len({each.id for each in various})) == (SHORT[0], 3)
    threshold = {"score_threshold": 0.999, "k": 6, "by": "meaning"}
    sure = store.as_retriever(search_type="similarity_score_threshold", search_kwargs=threshold).invoke(SHORT[3])
    assert [each.page_content for each in sure] == [SHORT[3]]


def test_the_retriever_of_passages_says_what_to_cite(news: Library) -> None:
    text = "the rain is in the river. " * 200 + "a dog was on the train."
    news.add([{"id": "long", "text": text, "metadata": {"year": 2020}}])
    [found] = adapters.MunjangLibraryRetriever(library=news, k=1).invoke("a dog was on the train")
    about = found.metadata
    assert text[about["start"] : about["stop"]] == found.page_content
    assert len(found.page_content) < len(text)
    assert (about["document_id"], about["year"]) == ("long", 2020)


def test_embeddings_of_others_are_a_librarys_model(tmp_path: Path) -> None:
    made = adapters.MunjangVectorStore.from_texts(SHORT, FakeEmbedding(size=8), ids=list("012345"), path=tmp_path / "fake.db")
    assert made.similarity_search(SHORT[1], k=1)[0].id == "1"
    assert made.embeddings.size == 8
    made.library.close()
    with pytest.raises(UsageError, match="was built with"):
        Library.open(tmp_path / "fake.db", adapters.EmbeddingsEncoder(FakeEmbedding(size=4)))


def test_munjangs_own_embeddings_are_the_model_itself(model: SentenceEncoder, tmp_path: Path) -> None:
    embeddings = adapters.MunjangEmbeddings(model)
    made = adapters.MunjangVectorStore.from_texts(SHORT, embeddings, [{"at": at} for at in range(6)], path=tmp_path / "own.db")
    assert made.library.info().fingerprint == model.for_documents().fingerprint
    assert made.similarity_search(SHORT[4], k=1)[0].metadata == {"at": 4}
    made.library.close()


@pytest.mark.slow
def test_langchains_standard_tests_pass() -> None:
    """In a process of its own: langchain-tests brings plugins of pytest along, which want settings that we do not use."""
    if importlib.util.find_spec("langchain_tests") is None:
        pytest.skip("langchain-tests is not installed")
    settings = [part for each in ("asyncio_mode=auto", "asyncio_default_fixture_loop_scope=function", "addopts=") for part in ("-o", each)]
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-rs",
        *settings,
        "-p",
        "no:cacheprovider",
        str(ROOT / "tests/adapters/langchain_standard.py"),
    ]
    done = subprocess.run(command, cwd=ROOT, env=dict(os.environ), capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stdout
    assert "failed" not in done.stdout
    assert "skipped" not in done.stdout
