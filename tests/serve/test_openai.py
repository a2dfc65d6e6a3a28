"""OpenAI's dialect: vectors equal offline ones, and the package `openai`, unmodified, agrees."""

from __future__ import annotations

import base64
import json
from typing import Any

import numpy as np
import pytest
from tests.conftest import MAX_LENGTH, TEXTS
from tests.serve.conftest import Running

from munjang import SentenceEncoder


def rows(answer: Any) -> np.ndarray:
    return np.array([each["embedding"] for each in answer["data"]], np.float32)


def offline(model: SentenceEncoder, texts: list[str], **options: Any) -> np.ndarray:
    return model.encode_with_report(texts, **options).vectors


def test_vectors_equal_offline_ones(server: Running, model: SentenceEncoder) -> None:
    answer = server.post("/v1/embeddings", {"input": TEXTS, "model": "any"})
    assert answer.status == 200
    np.testing.assert_allclose(rows(answer.json), offline(model, TEXTS), atol=1e-5)
    assert [each["index"] for each in answer.json["data"]] == list(range(len(TEXTS)))
    assert answer.json["usage"]["prompt_tokens"] == int(model.encode_with_report(TEXTS).tokens.sum())


def test_one_text_equals_one_of_many(server: Running) -> None:
    alone = server.post("/v1/embeddings", {"input": TEXTS[1]}).json
    together = server.post("/v1/embeddings", {"input": TEXTS}).json
    np.testing.assert_allclose(rows(alone)[0], rows(together)[1], atol=1e-5)


def test_a_cut_text_is_named_in_the_answer_and_in_a_header(server: Running) -> None:
    long = TEXTS.index("sleep " * 60)
    answer = server.post("/v1/embeddings", {"input": TEXTS})
    assert long in answer.json["truncated"]
    assert str(long) in answer.headers["x-munjang-truncated"].split(",")
    short = server.post("/v1/embeddings", {"input": "cat"})
    assert "truncated" not in short.json
    assert "x-munjang-truncated" not in short.headers


def test_base64_holds_the_same_float32(server: Running) -> None:
    plain = rows(server.post("/v1/embeddings", {"input": TEXTS}).json)
    packed = server.post("/v1/embeddings", {"input": TEXTS, "encoding_format": "base64"}).json
    found = [np.frombuffer(base64.b64decode(each["embedding"]), "<f4") for each in packed["data"]]
    np.testing.assert_allclose(found, plain, atol=1e-7)


def test_shortened_vectors_are_cut_and_have_length_one(server: Running, model: SentenceEncoder) -> None:
    answer = rows(server.post("/v1/embeddings", {"input": TEXTS, "dimensions": 7}).json)
    np.testing.assert_allclose(answer, offline(model, TEXTS, dimensions=7, normalize=True), atol=1e-5)
    refused = server.post("/v1/embeddings", {"input": "a", "dimensions": 10_000})
    assert refused.status == 422
    assert "32" in refused.json["error"]["message"]


def test_token_arrays_equal_texts_with_special_tokens_or_without(server: Running, model: SentenceEncoder) -> None:
    text = "the rain is in the river"
    plain, [wrapped] = model.tokenizer.encode_plain([text])[0], model.tokenizer.encode([text])
    for given in (plain, wrapped, [plain], [plain, wrapped]):
        for row in rows(server.post("/v1/embeddings", {"input": given}).json):
            np.testing.assert_allclose(row, offline(model, [text])[0], atol=1e-5)
    long = server.post("/v1/embeddings", {"input": [plain * 20]})
    assert long.json["truncated"] == [0]
    assert long.json["usage"]["total_tokens"] > MAX_LENGTH


@pytest.mark.parametrize(
    ("body", "status", "word"),
    [
        ({"input": []}, 400, "empty"),
        ({"input": ["a"] * 65}, 413, "64"),
        ({"input": [10**9]}, 422, "ids"),
        ({"input": [[]]}, 422, "empty"),
        ({"input": [-1]}, 422, "ids"),
        ({"input": 5}, 422, "input"),
        ({"input": ["a", 5]}, 422, "input"),
        ({"input": [True]}, 422, "input"),
        ({"model": "x"}, 422, "input"),
        ({"input": "a", "encoding_format": "hex"}, 422, "encoding_format"),
        ({"input": "a", "dimensions": 0}, 422, "dimensions"),
        ([], 422, "body"),
    ],
    ids=lambda value: str(value)[:30],
)
def test_what_is_wrong_is_refused_in_openais_shape(server: Running, body: Any, status: int, word: str) -> None:
    answer = server.post("/v1/embeddings", body)
    assert answer.status == status
    assert set(answer.json["error"]) == {"message", "type", "param", "code"}
    assert word in answer.json["error"]["message"]


def test_models_are_listed_and_shown(server: Running, model: SentenceEncoder) -> None:
    cards = server.get("/v1/models").json["data"]
    assert cards[0]["id"] == model.name
    assert server.get(f"/v1/models/{model.name}").json == cards[0]
    assert server.get("/v1/models/nothing").status == 404


@pytest.mark.parametrize("form", ["float", "base64"])
def test_the_openai_package_gets_the_offline_vectors(server: Running, model: SentenceEncoder, form: Any) -> None:
    openai = pytest.importorskip("openai", reason="the real client")
    with openai.OpenAI(base_url=f"{server.url}/v1", api_key="none", max_retries=0) as client:
        found = client.embeddings.create(input=TEXTS, model="text-embedding-3-small", encoding_format=form)
        unasked = client.embeddings.create(input=TEXTS[0], model="text-embedding-3-small", dimensions=8)
        names = [each.id for each in client.models.list()]
        with pytest.raises(openai.APIStatusError, match="64"):
            client.embeddings.create(input=["a"] * 100, model="m")
    vectors = [each.embedding for each in found.data]
    if form == "base64":
        vectors = [np.frombuffer(base64.b64decode(row), "<f4") for row in vectors]
    np.testing.assert_allclose(vectors, offline(model, TEXTS), atol=1e-5)
    assert len(unasked.data[0].embedding) == 8
    assert model.name in names


def test_langchain_openai_gets_the_offline_vectors(server: Running, model: SentenceEncoder) -> None:
    langchain = pytest.importorskip("langchain_openai", reason="the real client")
    client = langchain.OpenAIEmbeddings(
        base_url=f"{server.url}/v1", api_key="none", model="any", check_embedding_ctx_length=False, max_retries=0
    )
    texts = [text for text in TEXTS if text]
    np.testing.assert_allclose(client.embed_documents(texts), offline(model, texts), atol=1e-5)
    np.testing.assert_allclose(client.embed_query(texts[0]), offline(model, texts)[0], atol=1e-5)
    client.client._client.close()


def test_many_clients_at_once_get_their_own_vectors(server: Running, model: SentenceEncoder) -> None:
    from concurrent.futures import ThreadPoolExecutor

    texts = [f"{text} {number}" for number in range(6) for text in TEXTS]
    with ThreadPoolExecutor(12) as pool:
        answers = list(pool.map(lambda text: server.post("/v1/embeddings", {"input": text}), texts))
    found = np.concatenate([rows(json.loads(answer.body)) for answer in answers])
    np.testing.assert_allclose(found, offline(model, texts), atol=1e-5)
