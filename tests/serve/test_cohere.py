"""Cohere's re-ranking, with Cohere's own clients unmodified."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from tests.conftest import TEXTS
from tests.serve.conftest import Running

from munjang import CrossEncoder

BODY = {"model": "rerank", "query": "the rain", "documents": TEXTS}


def order(reranker: CrossEncoder) -> list[int]:
    scores = reranker.predict_with_report([("the rain", text) for text in TEXTS], score="sigmoid").scores
    return np.argsort(-scores, kind="stable").tolist()


@pytest.mark.parametrize("version", ["1", "2"])
def test_documents_come_back_in_the_cross_encoders_order(server: Running, reranker: CrossEncoder, version: str) -> None:
    answer = server.post(f"/v{version}/rerank", BODY | {"top_n": 3, "return_documents": True})
    found = answer.json
    assert [each["index"] for each in found["results"]] == order(reranker)[:3]
    assert found["results"][0]["document"]["text"] == TEXTS[order(reranker)[0]]
    assert found["meta"]["api_version"]["version"] == version
    assert "longer" in found["meta"]["warnings"][0]
    assert answer.headers["x-munjang-truncated-count"] == "1"


def test_a_document_may_be_an_object_and_may_be_shortened(server: Running, reranker: CrossEncoder) -> None:
    objects = [{"text": text} for text in TEXTS]
    found = server.post("/v2/rerank", BODY | {"documents": objects}).json["results"]
    assert [each["index"] for each in found] == order(reranker)
    titled = server.post("/v1/rerank", BODY | {"documents": [{"title": "cat", "id": 1}], "rank_fields": ["title"]})
    assert titled.status == 200
    assert server.post("/v1/rerank", BODY | {"documents": [{"id": 1}]}).status == 422
    one = server.post("/v2/rerank", BODY | {"documents": ["cat dog sleep train"], "max_tokens_per_doc": 1}).json["results"]
    cat = server.post("/v2/rerank", BODY | {"documents": ["cat"]}).json["results"]
    assert one[0]["relevance_score"] == pytest.approx(cat[0]["relevance_score"], abs=1e-6)


@pytest.mark.parametrize(
    "body", [{}, {"query": "a", "documents": []}, {"query": "a", "documents": [5]}, {"query": "a", "documents": ["b"], "top_n": 0}], ids=str
)
def test_what_is_wrong_is_refused_in_coheres_shape(server: Running, body: Any) -> None:
    answer = server.post("/v2/rerank", body)
    assert answer.status in (400, 422)
    assert set(answer.json) == {"message"}


@pytest.mark.parametrize("kind", ["Client", "ClientV2"])
def test_coheres_client_gets_the_offline_order(server: Running, reranker: CrossEncoder, kind: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the package's own deprecations
        cohere = pytest.importorskip("cohere", reason="the real client")
        client = getattr(cohere, kind)(api_key="none", base_url=server.url)
        found = client.rerank(model="rerank", query="the rain", documents=TEXTS, top_n=5)
        client._client_wrapper.httpx_client.httpx_client.close()
    assert [each.index for each in found.results] == order(reranker)[:5]
    assert found.results[0].relevance_score >= found.results[-1].relevance_score
