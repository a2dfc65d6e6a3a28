"""LangChain's standard tests over a library; `test_langchain_store.py` runs this file, pytest does not collect it by itself."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.vectorstores import VectorStore

from munjang import Library
from munjang.adapters.langchain import EmbeddingsEncoder, MunjangLibraryRetriever, MunjangVectorStore

pytest.importorskip("langchain_tests", reason="langchain-tests is not installed")
from langchain_tests.integration_tests.retrievers import RetrieversIntegrationTests
from langchain_tests.integration_tests.vectorstores import VectorStoreIntegrationTests


class TestMunjangVectorStore(VectorStoreIntegrationTests):
    @pytest.fixture
    def vectorstore(self, tmp_path: Path) -> Iterator[VectorStore]:  # type: ignore[override]
        with Library.open(tmp_path / "standard.db", EmbeddingsEncoder(self.get_embeddings())) as library:
            yield MunjangVectorStore(library)


class TestMunjangLibraryRetriever(RetrieversIntegrationTests):
    @pytest.fixture(autouse=True)
    def _news(self, tmp_path: Path) -> Iterator[None]:
        with Library.open(tmp_path / "retriever.db", EmbeddingsEncoder(DeterministicFakeEmbedding(size=6))) as library:
            library.add(["foo", "bar", "baz", "qux"])
            type(self).library = library
            yield

    @property
    def retriever_constructor(self) -> type[MunjangLibraryRetriever]:
        return MunjangLibraryRetriever

    @property
    def retriever_constructor_params(self) -> dict[str, Any]:
        return {"library": self.library}

    @property
    def retriever_query_example(self) -> str:
        return "foo"
