"""What text-embeddings-inference says beside its answers, and the bodies of Cohere's clients that come to its /rerank."""

from __future__ import annotations

import math
from typing import Any

import pytest
from tests.conftest import MAX_LENGTH, TEXTS
from tests.serve.conftest import Running

from munjang import CrossEncoder, SentenceEncoder

COHERES = {"query": "the rain", "documents": TEXTS, "top_n": 3}


def computed(headers: dict[str, str]) -> tuple[int, int]:
    """Return the characters and tokens of an answer whose other headers are what they should be."""
    assert headers["x-compute-type"] == "cpu"
    assert headers["x-compute-time"] == headers["x-total-time"]
    assert 0 <= int(headers["x-compute-time"]) < 60_000
    return int(headers["x-compute-characters"]), int(headers["x-compute-tokens"])


@pytest.mark.parametrize("path", ["/embed", "/embed_all", "/"])
def test_headers_count_the_characters_and_tokens_that_were_computed(server: Running, model: SentenceEncoder, path: str) -> None:
    texts = ["the rain", "비가 온다", "cat " * 200]
    lengths = [min(len(ids), MAX_LENGTH) for ids in model.tokenizer.encode(texts)]
    assert computed(server.post(path, {"inputs": texts}).headers) == (sum(map(len, texts)), sum(lengths))
    assert computed(server.post(path, {"inputs": "the rain"}).headers) == (8, lengths[0])


def test_headers_of_token_arrays_count_their_ids(server: Running, model: SentenceEncoder) -> None:
    ids = model.tokenizer.encode(["the rain"])[0]
    assert computed(server.post("/embed", {"inputs": ids}).headers) == (len(ids), len(ids))


def test_headers_of_pairs_count_the_query_with_every_text(server: Running, reranker: CrossEncoder, model: SentenceEncoder) -> None:
    texts = ["cat", "winter snow"]
    plain = reranker.tokenizer.encode_plain(["the rain", *texts])
    tokens = sum(len(plain[0]) + len(each) + reranker.tokenizer.pair_special_count for each in plain[1:])
    assert computed(server.post("/rerank", {"query": "the rain", "texts": texts}).headers) == (8 + 3 + 8 + 11, tokens)
    assert computed(server.post("/predict", {"inputs": [["the rain", text] for text in texts]}).headers) == (30, tokens)
    asked = {"inputs": {"source_sentence": "the rain", "sentences": texts}}
    assert computed(server.post("/similarity", asked).headers) == (22, sum(map(len, model.tokenizer.encode(["the rain", *texts]))))


@pytest.mark.parametrize(("path", "body"), [("/tokenize", {"inputs": "cat"}), ("/v1/embeddings", {"input": "cat"}), ("/rerank", COHERES)])
def test_other_answers_have_no_such_headers(server: Running, path: str, body: Any) -> None:
    answer = server.post(path, body)
    assert answer.status == 200
    assert not [name for name in answer.headers if name.startswith(("x-compute", "x-total"))]


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/embed", {"inputs": []}),
        ("/embed_all", {"inputs": []}),
        ("/embed_sparse", {"inputs": []}),
        ("/tokenize", {"inputs": []}),
        ("/rerank", {"query": "a", "texts": []}),
        ("/similarity", {"inputs": {"source_sentence": "a", "sentences": []}}),
    ],
    ids=str,
)
def test_a_list_that_holds_nothing_is_empty_to_tei(server: Running, path: str, body: Any) -> None:
    answer = server.post(path, body)
    assert (answer.status, answer.json["error_type"]) == (400, "Empty")


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("/embed", {"inputs": "a", "prompt_name": "none"}, 422),
        ("/embed", {"inputs": "sleep " * 60, "truncate": False}, 422),
        ("/embed_all", {"inputs": "sleep " * 60, "truncate": False}, 422),
        ("/similarity", {"inputs": {"source_sentence": "a", "sentences": ["sleep " * 60]}, "parameters": {"truncate": False}}, 422),
        ("/rerank", {"query": "a", "texts": ["sleep " * 60], "truncate": False}, 422),
        ("/predict", {"inputs": "sleep " * 60, "truncate": False}, 422),
        ("/embed", {"inputs": "a", "dimensions": 10_000}, 422),
        ("/embed", {"inputs": 5}, 422),
        ("/embed", b"{", 400),
        ("/embed", {"inputs": ["a"] * 65}, 413),
        ("/rerank", {"query": "a", "texts": ["a"] * 65}, 413),
    ],
    ids=lambda value: str(value)[:40],
)
def test_what_cannot_be_read_as_it_is_has_teis_status_for_validation(server: Running, path: str, body: Any, status: int) -> None:
    """422 as in its code, 413 for a batch as in its description (router/src/http/server.rs), and never the type of another refusal."""
    answer = server.post(path, body)
    assert (answer.status, answer.json["error_type"]) == (status, "Validation")


@pytest.mark.parametrize("inputs", ["cat", ["cat", "dog"], [5, 6]], ids=str)
def test_sparse_vectors_are_refused_as_by_a_model_without_them(server: Running, inputs: Any) -> None:
    answer = server.post("/embed_sparse", {"inputs": inputs})
    assert (answer.status, answer.json["error_type"]) == (424, "Backend")
    assert "SPLADE" in answer.json["error"]


def test_a_body_of_coheres_is_answered_at_rerank_as_infinity_does(server: Running, reranker: CrossEncoder) -> None:
    asked = COHERES | {"return_documents": True}
    here, there = server.post("/rerank", asked), server.post("/v2/rerank", asked)
    assert here.status == 200, here.body
    plain = [each | {"document": {"text": each["document"]}} for each in here.json["results"]]
    assert plain == there.json["results"]
    assert len(plain) == 3
    assert (here.json["object"], here.json["model"]) == ("rerank", reranker.name)
    assert here.json["usage"]["prompt_tokens"] == here.json["usage"]["total_tokens"] > 0
    raw = server.post("/rerank", COHERES | {"raw_scores": True}).json["results"]
    halves = [0.5 * (1 + math.tanh(each["relevance_score"] / 2)) for each in raw]
    assert halves == pytest.approx([each["relevance_score"] for each in plain], abs=1e-5)


@pytest.mark.parametrize(
    ("body", "status", "shape"),
    [
        ({"query": "a", "documents": ["b"], "top_n": 0}, 422, ["error"]),
        ({"query": "a", "documents": []}, 400, ["error"]),
        ({"query": "a", "documents": ["b"] * 65}, 413, ["error"]),
        ({"query": "a", "texts": ["b"], "documents": ["c"], "raw_scores": 1}, 422, ["error", "error_type"]),
        ({"query": "a"}, 422, ["error", "error_type"]),
        (["documents"], 422, ["error", "error_type"]),
    ],
    ids=["no top", "no documents", "too many", "both", "neither", "a list"],
)
def test_what_is_wrong_at_rerank_is_refused_in_the_bodys_own_dialect(server: Running, body: Any, status: int, shape: list[str]) -> None:
    answer = server.post("/rerank", body)
    assert (answer.status, sorted(answer.json)) == (status, shape)


def test_the_description_of_rerank_names_both_dialects(server: Running) -> None:
    described = server.get("/openapi.json").json["paths"]["/rerank"]["post"]

    def named(content: Any) -> list[str]:
        return [each.get("$ref", "").rpartition("/")[2] for each in content["application/json"]["schema"]["anyOf"]]

    assert named(described["requestBody"]["content"]) == ["TeiRerankRequest", "InfinityRerankRequest"]
    assert named(described["responses"]["200"]["content"]) == ["", "InfinityRerankResponse"]
    assert named(described["responses"]["4XX"]["content"]) == ["TeiError", "OpenAIError"]


@pytest.mark.parametrize("path", ["/similarity", "/api/similarity"])
def test_no_cosine_goes_beyond_one(server: Running, path: str) -> None:
    for text in TEXTS:
        if path == "/similarity":
            scores = server.post(path, {"inputs": {"source_sentence": text, "sentences": [text] * 3}}).json
        else:
            scores = server.post(path, {"a": [text, text]}).json["scores"][0]
        assert all(-1 <= score <= 1 for score in scores)


def test_an_encoding_format_of_null_is_float(server: Running) -> None:
    asked = {"input": "cat", "model": "any", "encoding_format": None, "dimensions": None, "user": None}
    answer = server.post("/v1/embeddings", asked)
    assert answer.status == 200
    assert isinstance(answer.json["data"][0]["embedding"], list)
