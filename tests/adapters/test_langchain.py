"""The LangChain adapters in LangChain's own hands."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.adapters.conftest import SHORT, adapter, library

from munjang import CrossEncoder, SentenceEncoder
from munjang.errors import FolderError, UsageError

adapters = adapter("langchain", needs="langchain_core")
documents_of = library("langchain_core.documents")


def documents() -> list[Any]:
    return [documents_of.Document(page_content=text, metadata={"number": number}) for number, text in enumerate(SHORT)]


def test_vectors_are_those_of_sentence_transformers(tiny_bert_folder: Path, authority: Callable[..., np.ndarray]) -> None:
    embeddings = adapters.MunjangEmbeddings(str(tiny_bert_folder))
    assert isinstance(embeddings, library("langchain_core.embeddings").Embeddings)
    expected = authority(tiny_bert_folder, SHORT)
    np.testing.assert_allclose(embeddings.embed_documents(SHORT), expected, atol=1e-5)
    np.testing.assert_allclose(embeddings.embed_query(SHORT[1]), expected[1], atol=1e-5)
    assert embeddings.embed_documents([]) == []


def test_queries_and_documents_get_their_own_prompts(prompted: SentenceEncoder) -> None:
    embeddings = adapters.MunjangEmbeddings(prompted)
    np.testing.assert_allclose(embeddings.embed_query(SHORT[0]), prompted.encode_query(SHORT[0]), atol=1e-6)
    np.testing.assert_allclose(embeddings.embed_documents(SHORT), prompted.encode_document(SHORT), atol=1e-6)


def test_a_vector_store_finds_every_text_by_itself(model: SentenceEncoder) -> None:
    stores = library("langchain_core.vectorstores")
    store = stores.InMemoryVectorStore(adapters.MunjangEmbeddings(model, dimensions=16, normalize=True))
    store.add_documents(documents())
    retriever = store.as_retriever(search_kwargs={"k": 1})
    assert [retriever.invoke(text)[0].page_content for text in SHORT] == SHORT
    [(found, score)] = store.similarity_search_with_score(SHORT[2], k=1)
    assert (found.page_content, score) == (SHORT[2], pytest.approx(1, abs=1e-5))


def test_asked_asynchronously_it_answers_the_same(model: SentenceEncoder) -> None:
    embeddings = adapters.MunjangEmbeddings(model)

    async def ask() -> tuple[list[list[float]], list[float]]:
        return await embeddings.aembed_documents(SHORT), await embeddings.aembed_query(SHORT[0])

    many, one = asyncio.run(ask())
    np.testing.assert_allclose(many, model.encode(SHORT), atol=1e-6)
    np.testing.assert_allclose(one, model.encode(SHORT[0]), atol=1e-6)


def test_the_cross_encoder_scores_pairs(reranker: CrossEncoder, make_reranker: Callable[[int], Path]) -> None:
    cross = adapters.MunjangCrossEncoder(reranker)
    assert isinstance(cross, library("langchain_core.cross_encoders").BaseCrossEncoder)
    pairs = [("the rain", text) for text in SHORT]
    np.testing.assert_allclose(cross.score(pairs), reranker.predict(pairs), atol=1e-6)
    with pytest.raises(UsageError, match="3 labels"):
        adapters.MunjangCrossEncoder(make_reranker(3))


def test_the_compressor_keeps_the_best_documents(reranker: CrossEncoder) -> None:
    given = documents()
    compressor = adapters.MunjangReranker(model=reranker, top_n=2)
    assert isinstance(compressor, documents_of.BaseDocumentCompressor)
    found = compressor.compress_documents(given, "the rain")
    expected = reranker.rank("the rain", SHORT, k=2).documents
    assert [each.page_content for each in found] == [each.text for each in expected]
    assert [each.metadata["number"] for each in found] == [each.index for each in expected]
    assert [each.metadata["relevance_score"] for each in found] == pytest.approx([each.score for each in expected])
    assert [each.metadata for each in given] == [{"number": number} for number in range(len(SHORT))]
    assert len(adapters.MunjangReranker(model=reranker, top_n=None).compress_documents(given, "the rain")) == len(SHORT)
    assert compressor.compress_documents([], "the rain") == []
    assert asyncio.run(compressor.acompress_documents(given, "the rain")) == found


def test_what_is_wrong_is_heard_at_once() -> None:
    with pytest.raises(FolderError, match="nobody"):
        adapters.MunjangEmbeddings("nobody")
    with pytest.raises(FolderError, match="nobody"):
        adapters.MunjangReranker(model="nobody")
    with pytest.raises(ValueError, match="top_n"):
        adapters.MunjangReranker(top_n=0)
    with pytest.raises(ValueError, match="modle"):
        adapters.MunjangReranker(modle="x")
