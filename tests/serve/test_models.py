"""Several models in one server: requests choose by name, libraries by the model that made them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.conftest import TEXTS
from tests.serve.conftest import LIMITS, Running, running
from tests.serve.test_cohere import client_of

from munjang import CrossEncoder, SentenceEncoder
from munjang.errors import UsageError
from munjang.library.library import Library
from munjang.serve.settings import ServerSettings

SHORT = TEXTS[:4]


def named(model: Any, name: str) -> Any:
    model.name = name
    return model


@pytest.fixture(scope="module")
def small(tiny_folder: Callable[..., Path]) -> SentenceEncoder:
    found: SentenceEncoder = named(SentenceEncoder.load(tiny_folder(family="distilbert", modules=())), "small")
    return found


@pytest.fixture(scope="module")
def other_reranker(make_reranker: Callable[[int], CrossEncoder]) -> CrossEncoder:
    found: CrossEncoder = named(make_reranker(1), "other-reranker")
    return found


@pytest.fixture(scope="module")
def both(
    model: SentenceEncoder,
    small: SentenceEncoder,
    reranker: CrossEncoder,
    other_reranker: CrossEncoder,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Running]:
    settings = ServerSettings(data=tmp_path_factory.mktemp("both"), analyser="bigrams", limits=LIMITS)
    with running(settings, model, reranker, more_models=[small], more_rerankers=[other_reranker]) as started:
        yield started


def offline(model: SentenceEncoder, texts: list[str]) -> np.ndarray:
    vectors: np.ndarray = model.encode_with_report(texts, normalize=True).vectors
    return vectors


def test_the_requests_model_computes_and_the_first_is_the_default(both: Running, model: SentenceEncoder, small: SentenceEncoder) -> None:
    for path in ("/v1/embeddings", "/embeddings"):
        for name, chosen in ((None, model), ("", model), ("default/not-specified", model), (model.name, model), ("small", small)):
            answer = both.post(path, {"input": SHORT, "model": name}).json
            assert answer["model"] == chosen.name
            np.testing.assert_allclose([each["embedding"] for each in answer["data"]], offline(chosen, SHORT), atol=1e-5)
    for version in ("v1", "v2"):
        found = both.post(f"/{version}/embed", {"texts": SHORT, "model": "small", "embedding_types": ["float"]}).json
        np.testing.assert_allclose(found["embeddings"]["float"], offline(small, SHORT), atol=1e-5)
    np.testing.assert_allclose(both.post("/embed", {"inputs": SHORT}).json, offline(model, SHORT), atol=1e-5)


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/embeddings", {"input": "a"}),
        ("/embeddings", {"input": "a"}),
        ("/v1/embed", {"texts": ["a"]}),
        ("/v2/embed", {"texts": ["a"]}),
        ("/v2/rerank", {"query": "a", "documents": ["b"]}),
        ("/rerank", {"query": "a", "documents": ["b"]}),
        ("/api/similarity", {"a": ["a"]}),
        ("/api/inspect", {"text": "a"}),
        ("/api/keywords", {"texts": ["a"]}),
        ("/api/pairs", {"texts": ["a"]}),
        ("/api/libraries", {"name": "new"}),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_an_unknown_name_is_not_found_and_the_refusal_lists_what_is(both: Running, path: str, body: dict[str, Any]) -> None:
    answer = both.post(path, body | {"model": "nothing"})
    assert answer.status == 404, answer.body
    expected = {"/v1/": {"error"}, "/emb": {"error"}, "/api": {"error"}, "/rer": {"error"}, "/v2/": {"message"}}[path[:4]]
    assert set(answer.json) == ({"message"} if path == "/v1/embed" else expected)
    told = answer.body.decode()
    names = [each.name for each in (both.service.rerankers if "rerank" in path else both.service.encoders)]
    assert all(name in told for name in ["nothing", *names])


def test_real_clients_hear_that_a_model_is_not_served(both: Running) -> None:
    openai = pytest.importorskip("openai", reason="the real client")
    with openai.OpenAI(base_url=f"{both.url}/v1", api_key="none", max_retries=0) as client:
        assert client.embeddings.create(input="cat", model="small").model == "small"
        with pytest.raises(openai.NotFoundError, match="small"):
            client.embeddings.create(input="cat", model="nothing")
    with client_of(both, "ClientV2") as client:
        import cohere

        with pytest.raises(cohere.NotFoundError, match="small"):
            client.embed(texts=["cat"], model="nothing", input_type="search_query")


def test_all_models_are_listed(both: Running, model: SentenceEncoder, reranker: CrossEncoder) -> None:
    for path in ("/v1/models", "/models"):
        assert [each["id"] for each in both.get(path).json["data"]] == [model.name, "small", reranker.name, "other-reranker"]
    assert both.get("/v1/models/small").json["id"] == "small"


def test_own_routes_take_a_model_too(both: Running, small: SentenceEncoder) -> None:
    found = both.post("/api/similarity", {"a": SHORT, "model": "small"}).json["scores"]
    unit = offline(small, SHORT)
    np.testing.assert_allclose(found, np.clip(unit @ unit.T, -1, 1), atol=1e-5)
    assert len(both.post("/api/inspect", {"text": "rain", "model": "small"}).json["first"]["vector"]) == small.dimension
    assert both.post("/api/keywords", {"texts": ["the rain in winter"], "model": "small"}).status == 200


def test_a_cross_encoder_is_chosen_by_name(both: Running, reranker: CrossEncoder) -> None:
    asked = {"query": "the rain", "documents": SHORT}
    assert both.post("/rerank", asked | {"model": "other-reranker"}).json["model"] == "other-reranker"
    assert both.post("/rerank", asked).json["model"] == reranker.name
    assert both.post("/v2/rerank", asked | {"model": "other-reranker"}).status == 200


def test_a_library_keeps_the_model_that_made_it(both: Running, small: SentenceEncoder) -> None:
    records = [{"id": str(number), "text": text} for number, text in enumerate(SHORT)]
    made = both.post("/api/libraries", {"name": "mine", "records": records, "model": "small"})
    assert (made.status, made.json["model"], made.json["dimension"]) == (201, "small", small.dimension)
    hit = both.post("/api/libraries/mine/search", {"query": SHORT[0], "k": 1, "by": "meaning"}).json["hits"][0]
    assert hit["id"] == "0"
    assert hit["score"] == pytest.approx(1, abs=1e-4)
    reranked = {"query": SHORT[0], "rerank": True, "rerank_model": "other-reranker"}
    assert both.post("/api/libraries/mine/search", reranked).status == 200
    assert both.post("/api/libraries/mine/search", reranked | {"rerank_model": "nothing"}).status == 404
    assert both.post("/api/topics", {"library": "mine", "labels": ["rain"], "min_size": 1, "method": "kmeans", "topics": 2}).status == 200
    upload = both.call("POST", "/api/libraries/sent/upload?filename=a.txt&model=small", b"the rain\n")
    assert upload.status == 202
    assert both.call("POST", "/api/libraries/sent2/upload?filename=a.txt&model=nothing", b"the rain\n").status == 404


def test_libraries_find_their_models_by_fingerprint_and_others_are_refused(
    model: SentenceEncoder, small: SentenceEncoder, tiny_folder: Callable[..., Path], tmp_path: Path
) -> None:
    third = SentenceEncoder.load(tiny_folder(family="electra"))
    paths = []
    for name, each in (("one", model), ("two", small), ("three", third)):
        paths.append(str(tmp_path / f"{name}.db"))
        with Library.open(paths[-1], each, analyser="bigrams") as library:
            library.add(["the rain"])
    settings = ServerSettings(analyser="bigrams", limits=LIMITS)
    with running(settings, model, libraries=tuple(paths[:2]), more_models=[small]) as server:
        listed = {each["name"]: each["model"] for each in server.get("/api/libraries").json["libraries"]}
        assert listed == {"one": model.name, "two": "small"}
        for name in listed:
            hit = server.post(f"/api/libraries/{name}/search", {"query": "the rain", "by": "meaning"}).json["hits"][0]
            assert hit["score"] == pytest.approx(1, abs=1e-4)
    with pytest.raises(UsageError) as refused, running(settings, model, libraries=(paths[2],), more_models=[small]):
        raise AssertionError("a library of a model that is not served was opened")
    assert all(word in str(refused.value) for word in ("three", third.name, model.name, "'small'", "--model"))


def test_two_models_of_one_name_are_refused(model: SentenceEncoder) -> None:
    with pytest.raises(UsageError, match="two models are named"), running(ServerSettings(limits=LIMITS), model, more_models=[model]):
        raise AssertionError("a request could not tell them apart")


def test_where_one_model_is_served_any_name_is_taken(server: Running, model: SentenceEncoder) -> None:
    assert server.post("/v1/embeddings", {"input": "cat", "model": "text-embedding-3-small"}).json["model"] == model.name
