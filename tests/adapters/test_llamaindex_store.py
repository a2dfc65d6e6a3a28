"""A library in LlamaIndex's own hands; filters mean what LlamaIndex's own in-memory store makes of them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.adapters.conftest import SHORT, adapter, library

pytestmark = pytest.mark.slow  # LlamaIndex takes long to import

from munjang import CrossEncoder, Library, SentenceEncoder  # noqa: E402
from munjang.errors import UsageError  # noqa: E402

adapters = adapter("llamaindex", needs="llama_index.core")
types = library("llama_index.core.vector_stores.types")
schema = library("llama_index.core.schema")
utils = library("llama_index.core.vector_stores.utils")


@pytest.fixture
def news(model: SentenceEncoder, tmp_path: Path) -> Iterator[Library]:
    with Library.open(tmp_path / "news.db", model, analyser="bigrams") as opened:
        yield opened


def nodes() -> list[Any]:
    source = {at: schema.RelatedNodeInfo(node_id=f"file-{at % 2}") for at in range(len(SHORT))}
    return [
        schema.TextNode(
            id_=f"n{at}",
            text=text,
            metadata={"at": at, "name": f"name {at}", "tags": ["a", "b"] if at % 2 else ["a"], **({"odd": 1} if at % 2 else {})},
            relationships={schema.NodeRelationship.SOURCE: source[at]},
        )
        for at, text in enumerate(SHORT)
    ]


@pytest.fixture
def store(news: Library) -> Any:
    made = adapters.MunjangLlamaIndexStore(news)
    assert made.add(nodes()) == [f"n{at}" for at in range(len(SHORT))]
    return made


def ask(store: Any, text: str = "rain", k: int = 6, **more: Any) -> Any:
    return store.query(types.VectorStoreQuery(query_str=text, similarity_top_k=k, **more))


def test_nodes_come_back_as_they_were_added(store: Any, news: Library) -> None:
    assert store.get_nodes(["n3", "nobody", "n0"]) == [nodes()[3], nodes()[0]]
    found = ask(store, SHORT[4], 1)
    assert (found.nodes, found.ids) == ([nodes()[4]], ["n4"])
    assert found.similarities == pytest.approx([news.search(SHORT[4], 1)[0].score])
    assert asyncio.run(store.aquery(types.VectorStoreQuery(query_str=SHORT[4], similarity_top_k=1))) == found


def test_a_store_answers_as_its_library_does(store: Any, news: Library, reranker: CrossEncoder) -> None:
    for mode, by in (("default", None), ("hybrid", None), ("text_search", "words")):
        found = ask(store, "the rain in winter", 3, mode=types.VectorStoreQueryMode(mode))
        hits = news.search("the rain in winter", 3, by=by)
        assert found.ids == [hit.id for hit in hits]
        assert found.similarities == pytest.approx([hit.score for hit in hits])
    own = adapters.MunjangLlamaIndexStore(news, rerank=reranker)
    assert ask(own, "the rain", 2).ids == [hit.id for hit in news.search("the rain", 2, rerank=reranker)]


@pytest.mark.parametrize("condition", ["and", "or", "not"])
@pytest.mark.parametrize(
    ("key", "operator", "value"),
    [
        ("at", "==", 2),
        ("at", "!=", 2),
        ("odd", "!=", 1),
        ("at", ">", 3),
        ("at", "<=", 3),
        ("at", "in", [1, 2]),
        ("odd", "nin", [1]),
        ("tags", "contains", "b"),
        ("tags", "any", ["b", "c"]),
        ("tags", "all", ["a", "b"]),
        ("name", "text_match", "name 1"),
        ("odd", "is_empty", None),
    ],
)
def test_filters_mean_what_llamaindex_makes_of_them(store: Any, key: str, operator: str, value: Any, condition: str) -> None:
    one = types.MetadataFilter(key=key, operator=types.FilterOperator(operator), value=value)
    filters = types.MetadataFilters(filters=[one, types.MetadataFilter(key="at", value=5)], condition=types.FilterCondition(condition))
    metadata = {node.node_id: node.metadata for node in nodes()}
    meets = utils.build_metadata_filter_fn(lambda id: metadata[id], filters)
    assert set(ask(store, filters=filters).ids) == {id for id in metadata if meets(id)}
    assert {node.node_id for node in store.get_nodes(filters=filters)} == {id for id in metadata if meets(id)}


def test_nodes_are_found_and_removed_by_id_by_filter_and_by_their_document(store: Any, news: Library) -> None:
    assert set(ask(store, node_ids=["n1", "n2"]).ids) == {"n1", "n2"}
    assert set(ask(store, doc_ids=["file-1"]).ids) == {"n1", "n3", "n5"}
    store.delete("file-1")
    assert set(ask(store).ids) == {"n0", "n2", "n4"}
    store.delete_nodes(["n0"])
    store.delete_nodes(["n2", "n4"], types.MetadataFilters(filters=[types.MetadataFilter(key="at", value=4)]))
    assert ask(store).ids == ["n2"]
    store.clear()
    assert news.info().documents == 0


def test_what_a_library_cannot_answer_is_refused(store: Any) -> None:
    with pytest.raises(UsageError, match="no text"):
        store.query(types.VectorStoreQuery(query_embedding=[0.0] * 32))
    with pytest.raises(UsageError, match="mode is mmr"):
        ask(store, mode=types.VectorStoreQueryMode.MMR)
    insensitive = types.MetadataFilter(key="name", value="x", operator=types.FilterOperator.TEXT_MATCH_INSENSITIVE)
    with pytest.raises(UsageError, match="text_match_insensitive"):
        ask(store, filters=types.MetadataFilters(filters=[insensitive]))


def test_the_retriever_returns_passages_to_cite(news: Library, reranker: CrossEncoder) -> None:
    text = "the rain is in the river. " * 200 + "a dog was on the train."
    news.add([{"id": "long", "text": text, "metadata": {"year": 2020}}, {"id": "new", "text": "a dog", "metadata": {"year": 2030}}])
    retriever = adapters.MunjangLlamaIndexRetriever(news, k=1, filters="year < 2030")
    [found] = retriever.retrieve("a dog was on the train")
    about = found.node.metadata
    assert text[about["start"] : about["stop"]] == found.node.get_content(metadata_mode=schema.MetadataMode.NONE)
    assert (about["document_id"], about["year"]) == ("long", 2020)
    assert asyncio.run(retriever.aretrieve("a dog was on the train")) == [found]
    both = adapters.MunjangLlamaIndexRetriever(news, k=2, rerank=reranker).retrieve("a dog")
    assert [each.score for each in both] == pytest.approx([hit.score for hit in news.search("a dog", 2, rerank=reranker)])


def test_an_index_of_llamaindex_runs_on_it(news: Library) -> None:
    core, mock = library("llama_index.core"), library("llama_index.core.embeddings")
    store = adapters.MunjangLlamaIndexStore(news)
    context = core.StorageContext.from_defaults(vector_store=store)
    index = core.VectorStoreIndex(nodes(), storage_context=context, embed_model=mock.MockEmbedding(embed_dim=3))
    [found] = index.as_retriever(similarity_top_k=1).retrieve(SHORT[2])
    assert found.node.get_content(metadata_mode=schema.MetadataMode.NONE) == SHORT[2]
    index.delete_ref_doc("file-0")
    assert news.info().documents == 3
