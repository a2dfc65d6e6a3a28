"""The LlamaIndex adapters in LlamaIndex's own hands."""

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

adapters = adapter("llamaindex", needs="llama_index.core")
core = library("llama_index.core")
schema = library("llama_index.core.schema")
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


def nodes() -> list[Any]:
    return [schema.TextNode(text=text, id_=str(number)) for number, text in enumerate(SHORT)]


def test_vectors_are_those_of_sentence_transformers(tiny_bert_folder: Path, authority: Callable[..., np.ndarray]) -> None:
    embedding = adapters.MunjangEmbedding(model_name=str(tiny_bert_folder))
    expected = authority(tiny_bert_folder, SHORT)
    np.testing.assert_allclose(embedding.get_text_embedding_batch(SHORT), expected, atol=1e-5)
    np.testing.assert_allclose(embedding.get_text_embedding(SHORT[0]), expected[0], atol=1e-5)
    np.testing.assert_allclose(embedding.get_query_embedding(SHORT[1]), expected[1], atol=1e-5)


def test_queries_and_documents_get_their_own_prompts(prompted: SentenceEncoder) -> None:
    embedding = adapters.MunjangEmbedding(model=prompted)
    assert embedding.model_name == prompted.name
    np.testing.assert_allclose(embedding.get_query_embedding(SHORT[0]), prompted.encode_query(SHORT[0]), atol=1e-6)
    np.testing.assert_allclose(embedding.get_text_embedding_batch(SHORT), prompted.encode_document(SHORT), atol=1e-6)


def test_asked_asynchronously_it_answers_the_same(model: SentenceEncoder) -> None:
    embedding = adapters.MunjangEmbedding(model=model)

    async def ask() -> tuple[Any, Any, Any]:
        many = await embedding.aget_text_embedding_batch(SHORT)
        return many, await embedding.aget_text_embedding(SHORT[0]), await embedding.aget_query_embedding(SHORT[0])

    many, one, query = asyncio.run(ask())
    np.testing.assert_allclose(many, model.encode(SHORT), atol=1e-6)
    np.testing.assert_allclose([one, query], model.encode([SHORT[0]] * 2), atol=1e-6)


def test_it_is_saved_by_its_name_and_loaded_again(tiny_bert_folder: Path) -> None:
    embedding = adapters.MunjangEmbedding(model_name=str(tiny_bert_folder), dimensions=8)
    again = adapters.MunjangEmbedding.from_dict(embedding.to_dict())
    assert again.get_query_embedding("cat") == embedding.get_query_embedding("cat")
    assert len(again.get_query_embedding("cat")) == 8


def test_an_index_finds_every_text_by_itself_and_re_ranks(model: SentenceEncoder, reranker: CrossEncoder) -> None:
    index = core.VectorStoreIndex(nodes(), embed_model=adapters.MunjangEmbedding(model=model))
    assert [index.as_retriever(similarity_top_k=1).retrieve(text)[0].text for text in SHORT] == SHORT
    found = index.as_retriever(similarity_top_k=len(SHORT)).retrieve("the rain")
    best = adapters.MunjangRerank(model=reranker, top_n=2).postprocess_nodes(found, query_str="the rain")
    expected = reranker.rank("the rain", SHORT, k=2).documents
    assert [each.text for each in best] == [each.text for each in expected]
    assert [each.score for each in best] == pytest.approx([each.score for each in expected], abs=1e-6)


def test_what_is_wrong_is_heard_at_once(reranker: CrossEncoder) -> None:
    with pytest.raises(FolderError, match="nobody"):
        adapters.MunjangEmbedding(model_name="nobody")
    with pytest.raises(UsageError, match="query"):
        adapters.MunjangRerank(model=reranker).postprocess_nodes([])
