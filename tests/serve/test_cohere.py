"""Cohere's vectors and re-ranking, with Cohere's own clients unmodified."""

from __future__ import annotations

import base64
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.conftest import TEXTS
from tests.serve.conftest import LIMITS, Running, running

from munjang import CrossEncoder, SentenceEncoder
from munjang.serve.settings import ServerSettings
from munjang.vectors.quantize import quantize

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


TYPES = ["float", "int8", "uint8", "binary", "ubinary", "base64"]
LONG = TEXTS.index("sleep " * 60)


@contextmanager
def client_of(server: Running, kind: str) -> Iterator[Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the package's own deprecations
        cohere = pytest.importorskip("cohere", reason="the real client")
        client = getattr(cohere, kind)(api_key="none", base_url=server.url)
        try:
            yield client
        finally:
            client._client_wrapper.httpx_client.httpx_client.close()


def unit(model: SentenceEncoder, texts: list[str], **options: Any) -> np.ndarray:
    vectors: np.ndarray = model.encode_with_report(texts, normalize=True, **options).vectors
    return vectors


@pytest.mark.parametrize("version", ["1", "2"])
def test_vectors_come_in_every_type_that_is_asked_for(server: Running, model: SentenceEncoder, version: str) -> None:
    asked = {"texts": TEXTS, "model": "any", "input_type": "search_document", "embedding_types": TYPES}
    answer = server.post(f"/v{version}/embed", asked)
    found, expected = answer.json, unit(model, TEXTS)
    assert (found["response_type"], found["texts"]) == ("embeddings_by_type", TEXTS)
    assert list(found["embeddings"]) == TYPES
    np.testing.assert_allclose(found["embeddings"]["float"], expected, atol=1e-5)
    decoded = [np.frombuffer(base64.b64decode(each), "<f4") for each in found["embeddings"]["base64"]]
    np.testing.assert_allclose(decoded, found["embeddings"]["float"], atol=1e-7)
    served = np.array(found["embeddings"]["float"], np.float32)
    for kind in ("binary", "ubinary"):
        assert found["embeddings"][kind] == quantize(served, kind).tolist()
        assert len(found["embeddings"][kind][0]) == model.dimension // 8
    for kind in ("int8", "uint8"):
        assert np.abs(np.array(found["embeddings"][kind]) - quantize(served, kind)).max() <= 1
    assert found["meta"]["api_version"]["version"] == version
    assert found["meta"]["billed_units"]["input_tokens"] == int(model.encode_with_report(TEXTS).tokens.sum())
    assert "2 texts are longer" in found["meta"]["warnings"][0]
    assert str(LONG) in answer.headers["x-munjang-truncated"].split(",")


def test_bytes_of_a_text_do_not_depend_on_what_it_is_sent_with(server: Running) -> None:
    for kind in ("int8", "uint8", "binary", "ubinary"):
        asked = {"embedding_types": [kind], "input_type": "clustering"}
        together = server.post("/v2/embed", asked | {"texts": TEXTS}).json["embeddings"][kind]
        alone = server.post("/v2/embed", asked | {"texts": [TEXTS[1]]}).json["embeddings"][kind]
        assert np.abs(np.array(together[1]) - np.array(alone[0])).max() <= 1


def test_without_types_the_first_version_answers_with_numbers(server: Running, model: SentenceEncoder) -> None:
    first, second = server.post("/v1/embed", {"texts": TEXTS[:3]}).json, server.post("/v2/embed", {"texts": TEXTS[:3]}).json
    assert first["response_type"] == "embeddings_floats"
    np.testing.assert_allclose(first["embeddings"], unit(model, TEXTS[:3]), atol=1e-5)
    assert list(second["embeddings"]) == ["float"]


def test_the_kind_of_input_chooses_the_models_prompt(tiny_folder: Callable[..., Path]) -> None:
    names = {"search_query": "query", "search_document": "passage", "classification": "classification", "clustering": None}
    model = SentenceEncoder.load(tiny_folder(settings='{"prompts": {"query": "winter ", "passage": "snow ", "classification": "dog "}}'))
    with running(ServerSettings(limits=LIMITS), model) as other:
        for kind, name in names.items():
            found = other.post("/v2/embed", {"texts": TEXTS, "input_type": kind}).json["embeddings"]["float"]
            np.testing.assert_allclose(found, unit(model, TEXTS, prompt_name=name), atol=1e-5)


def test_a_long_text_loses_the_end_that_is_asked_for_or_is_refused(server: Running, model: SentenceEncoder) -> None:
    text = "the cat " * 40 + "winter snow"
    for truncate, side in (("START", "left"), ("END", "right")):
        found = server.post("/v2/embed", {"texts": [text], "truncate": truncate}).json["embeddings"]["float"]
        same = server.post("/embed", {"inputs": text, "truncation_direction": side}).json
        np.testing.assert_allclose(found, same, atol=1e-6)
    refused = server.post("/v2/embed", {"texts": ["cat", text], "truncate": "NONE"})
    assert (refused.status, set(refused.json)) == (422, {"message"})
    short = server.post("/v2/embed", {"texts": ["cat dog sleep train"], "max_tokens": 3})
    np.testing.assert_allclose(short.json["embeddings"]["float"], unit(model, ["cat"]), atol=1e-5)
    assert short.headers["x-munjang-truncated-count"] == "1"


def test_inputs_in_parts_and_shorter_vectors(server: Running, model: SentenceEncoder) -> None:
    parts = [{"content": [{"type": "text", "text": "the rain"}, {"type": "text", "text": "cat"}]}]
    found = server.post("/v2/embed", {"inputs": parts, "output_dimension": 7}).json
    assert found["texts"] == ["the rain\ncat"]
    np.testing.assert_allclose(found["embeddings"]["float"], unit(model, ["the rain\ncat"], dimensions=7), atol=1e-5)


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({}, 422),
        ({"texts": []}, 400),
        ({"texts": ["a"] * 65}, 413),
        ({"texts": ["a"], "embedding_types": []}, 422),
        ({"texts": ["a"], "embedding_types": ["float16"]}, 422),
        ({"texts": ["a"], "input_type": "question"}, 422),
        ({"texts": ["a"], "truncate": "MIDDLE"}, 422),
        ({"texts": ["a"], "images": ["data:"]}, 422),
        ({"images": ["data:"], "input_type": "image"}, 422),
        ({"texts": ["a"], "output_dimension": 10_000}, 422),
        ({"texts": ["a"], "inputs": [{"content": []}]}, 422),
        ({"inputs": [{"content": [{"type": "image_url", "image_url": {"url": "data:"}}]}]}, 422),
    ],
    ids=str,
)
@pytest.mark.parametrize("version", ["1", "2"])
def test_vectors_that_cannot_be_had_are_refused_in_coheres_shape(server: Running, version: str, body: Any, status: int) -> None:
    answer = server.post(f"/v{version}/embed", body)
    assert (answer.status, set(answer.json)) == (status, {"message"})


@pytest.mark.parametrize("kind", ["Client", "ClientV2"])
def test_coheres_client_gets_the_offline_vectors_in_every_type(server: Running, model: SentenceEncoder, kind: str) -> None:
    with client_of(server, kind) as client:
        asked = {"texts": TEXTS, "model": "embed-v4.0", "input_type": "search_document"}
        found = client.embed(**asked, embedding_types=TYPES)
        plain = client.embed(**asked)
    np.testing.assert_allclose(found.embeddings.float_, unit(model, TEXTS), atol=1e-5)
    np.testing.assert_allclose(plain.embeddings if kind == "Client" else plain.embeddings.float_, unit(model, TEXTS), atol=1e-5)
    assert plain.response_type == ("embeddings_floats" if kind == "Client" else "embeddings_by_type")
    for type in TYPES[1:]:
        assert len(getattr(found.embeddings, type)) == len(TEXTS), type


def test_coheres_client_hears_what_is_wrong_with_its_texts(server: Running) -> None:
    with client_of(server, "ClientV2") as client:
        import cohere

        with pytest.raises(cohere.UnprocessableEntityError, match="token"):
            client.embed(texts=["sleep " * 60], model="any", input_type="search_query", truncate="NONE")


@pytest.mark.parametrize("kind", ["Client", "ClientV2"])
def test_coheres_client_gets_the_offline_order(server: Running, reranker: CrossEncoder, kind: str) -> None:
    with client_of(server, kind) as client:
        found = client.rerank(model="rerank", query="the rain", documents=TEXTS, top_n=5)
    assert [each.index for each in found.results] == order(reranker)[:5]
    assert found.results[0].relevance_score >= found.results[-1].relevance_score
