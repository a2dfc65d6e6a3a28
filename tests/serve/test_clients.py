"""Real clients, unmodified, beyond their first call: many at once, with a key, and refused. Their first calls stand beside each dialect."""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from tests.conftest import TEXTS
from tests.serve.conftest import LIMITS, Running, running

from munjang import CrossEncoder, SentenceEncoder
from munjang.serve.settings import ServerSettings

KEY = "a-key-that-nobody-guesses"
SHORT = [text for text in TEXTS if 0 < len(text) < 40]


@pytest.fixture(scope="module")
def locked(model: SentenceEncoder, reranker: CrossEncoder) -> Iterator[Running]:
    """A server that wants a key."""
    with running(ServerSettings(key=KEY, limits=LIMITS, analyser="bigrams"), model, reranker) as started:
        yield started


def test_openais_asynchronous_client_gets_its_own_vectors(server: Running, model: SentenceEncoder) -> None:
    openai = pytest.importorskip("openai", reason="the real client")

    async def ask() -> list[list[float]]:
        async with openai.AsyncOpenAI(base_url=f"{server.url}/v1", api_key="none", max_retries=0) as client:
            answers = await asyncio.gather(*(client.embeddings.create(input=text, model="any") for text in SHORT * 3))
        return [answer.data[0].embedding for answer in answers]

    np.testing.assert_allclose(asyncio.run(ask()), model.encode(SHORT * 3), atol=1e-5)


def test_openais_client_hears_no_as_its_own_errors(locked: Running, model: SentenceEncoder) -> None:
    openai = pytest.importorskip("openai", reason="the real client")
    with openai.OpenAI(base_url=f"{locked.url}/v1", api_key=KEY, max_retries=0) as client:
        assert client.models.retrieve(model.name).id == model.name
        with pytest.raises(openai.NotFoundError):
            client.models.retrieve("nothing")
        with pytest.raises(openai.UnprocessableEntityError, match="encoding_format"):
            client.embeddings.create(input="cat", model="any", encoding_format="hex")
    stranger = openai.OpenAI(base_url=f"{locked.url}/v1", api_key="wrong", max_retries=0)
    with stranger, pytest.raises(openai.AuthenticationError):
        stranger.embeddings.create(input="cat", model="any")


def test_coheres_client_hears_no_as_its_own_errors(locked: Running) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the package's own deprecations
        cohere = pytest.importorskip("cohere", reason="the real client")
        for key, expected in ((KEY, None), ("wrong", cohere.UnauthorizedError)):
            client = cohere.ClientV2(api_key=key, base_url=locked.url)
            if expected is None:
                assert len(client.rerank(model="any", query="the rain", documents=SHORT).results) == len(SHORT)
            else:
                with pytest.raises(expected):
                    client.rerank(model="any", query="the rain", documents=SHORT)
            client._client_wrapper.httpx_client.httpx_client.close()


def test_hugging_faces_client_brings_its_token_and_hears_no(
    locked: Running, model: SentenceEncoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub = pytest.importorskip("huggingface_hub", reason="the real client")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)  # ./run sets it, and then the client asks nobody at all
    found: Any = hub.InferenceClient(model=locked.url, token=KEY).feature_extraction("the rain")
    np.testing.assert_allclose(found, model.encode(["the rain"]), atol=1e-5)
    with pytest.raises(hub.errors.HfHubHTTPError, match="401"):
        hub.InferenceClient(model=locked.url, token="wrong").feature_extraction("the rain")
    hub.utils.close_session()


def test_langchains_store_over_the_server_finds_every_text_by_itself(server: Running) -> None:
    langchain = pytest.importorskip("langchain_openai", reason="the real client")
    from langchain_core.vectorstores import InMemoryVectorStore

    client = langchain.OpenAIEmbeddings(
        base_url=f"{server.url}/v1", api_key="none", model="any", check_embedding_ctx_length=False, max_retries=0
    )
    store = InMemoryVectorStore.from_texts(SHORT, client)
    assert [store.similarity_search(text, k=1)[0].page_content for text in SHORT] == SHORT
    client.client._client.close()
