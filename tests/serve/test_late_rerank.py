"""Re-ranking by a server that serves no cross-encoder: the sentence encoder's own tokens answer every dialect."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.serve.conftest import LIMITS, Running, running

from munjang import CrossEncoder, LateReranker, SentenceEncoder
from munjang.serve.settings import ServerSettings

QUERY = "the rain"
TEXTS = ["the cat sat on the mat", "rain in winter and snow", "snow fell on the sea", "a film about the sea"]


@pytest.fixture(scope="module")
def alone(model: SentenceEncoder, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    settings = ServerSettings(data=tmp_path_factory.mktemp("libraries"), analyser="bigrams", limits=LIMITS)
    with running(settings, model) as started:
        yield started


@pytest.fixture(scope="module")
def expected(model: SentenceEncoder) -> dict[int, float]:
    return {each.index: max(each.score, 0.0) for each in LateReranker(model).rank(QUERY, TEXTS).documents}


def test_tei_ranks_by_tokens(alone: Running, expected: dict[int, float]) -> None:
    ranks = alone.post("/rerank", {"query": QUERY, "texts": TEXTS}).json
    assert [rank["index"] for rank in ranks] == list(expected)
    assert [rank["score"] for rank in ranks] == pytest.approx(list(expected.values()), abs=1e-5)
    assert alone.post("/predict", {"inputs": "text"}).status == 424


def test_cohere_and_infinity_rank_by_tokens(alone: Running, expected: dict[int, float], model: SentenceEncoder) -> None:
    body = {"model": "rerank-v3.5", "query": QUERY, "documents": TEXTS, "top_n": 2}
    for path in ("/v1/rerank", "/v2/rerank", "/rerank"):
        results = alone.post(path, body).json["results"]
        assert [each["index"] for each in results] == list(expected)[:2]
        assert results[0]["relevance_score"] == pytest.approx(next(iter(expected.values())), abs=1e-5)
    assert alone.post("/rerank", body).json["model"] == model.name


def test_a_library_without_token_vectors_is_re_ranked(alone: Running) -> None:
    records = [{"id": str(number), "text": text} for number, text in enumerate(TEXTS)]
    alone.post("/api/libraries", {"name": "plain", "records": records})
    hits = alone.post("/api/libraries/plain/search", {"query": QUERY, "rerank": True}).json["hits"]
    assert {hit["scored_by"] for hit in hits} == {"late"}


def test_a_cross_encoder_goes_before_unless_the_encoder_is_named(
    server: Running, model: SentenceEncoder, reranker: CrossEncoder, expected: dict[int, float]
) -> None:
    body = {"query": QUERY, "documents": TEXTS}
    by_cross = [each.index for each in reranker.rank(QUERY, TEXTS).documents]
    assert [each["index"] for each in server.post("/v2/rerank", body | {"model": "rerank-v3.5"}).json["results"]] == by_cross
    assert [each["index"] for each in server.post("/v2/rerank", body | {"model": model.name}).json["results"]] == list(expected)
