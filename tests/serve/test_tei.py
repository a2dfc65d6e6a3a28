"""The dialect of text-embeddings-inference, with Hugging Face's client unmodified."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.conftest import MAX_LENGTH, TEXTS, write_json
from tests.serve.conftest import LIMITS, Running, running

from munjang import CrossEncoder, SentenceEncoder
from munjang.serve.settings import ServerSettings
from munjang.vectors.similarity import similarity

PAIRS = [("the rain", text) for text in TEXTS]


def offline(model: SentenceEncoder, texts: list[str], **options: Any) -> np.ndarray:
    return model.encode_with_report(texts, **options).vectors


def test_embed_is_always_a_list_of_vectors(server: Running, model: SentenceEncoder) -> None:
    np.testing.assert_allclose(server.post("/embed", {"inputs": TEXTS}).json, offline(model, TEXTS), atol=1e-5)
    np.testing.assert_allclose(server.post("/embed", {"inputs": "cat"}).json, offline(model, ["cat"]), atol=1e-5)
    shortened = server.post("/embed", {"inputs": TEXTS, "dimensions": 5, "normalize": False})
    np.testing.assert_allclose(shortened.json, offline(model, TEXTS, dimensions=5), atol=1e-5)


def test_a_long_text_is_cut_at_the_side_that_is_asked_for(server: Running, model: SentenceEncoder) -> None:
    text = "the cat " * 40 + "winter snow"
    ids = model.tokenizer.encode_plain([text])[0]
    kept = model.tokenizer.wrap(ids[-(MAX_LENGTH - 2) :])
    left = server.post("/embed", {"inputs": text, "truncation_direction": "Left"})
    np.testing.assert_allclose(left.json[0], model.engine.vectors([kept])[0], atol=1e-5)
    assert left.headers["x-munjang-truncated"] == "0"
    refused = server.post("/embed", {"inputs": ["cat", text], "truncate": False})
    assert (refused.status, refused.json["error_type"]) == (422, "Validation")
    assert str(MAX_LENGTH) in refused.json["error"]


def test_embed_all_gives_every_tokens_vector(server: Running, model: SentenceEncoder) -> None:
    found = server.post("/embed_all", {"inputs": TEXTS[:4]}).json
    for ours, theirs in zip(found, model.encode_tokens(TEXTS[:4]), strict=True):
        np.testing.assert_allclose(ours, theirs.vectors, atol=1e-5)
    assert server.post("/embed_all", {"inputs": ["a"] * 33}).status == 413


def test_rerank_orders_as_the_cross_encoder(server: Running, reranker: CrossEncoder) -> None:
    found = server.post("/rerank", {"query": "the rain", "texts": TEXTS, "return_text": True}).json
    scores = reranker.predict_with_report(PAIRS, score="sigmoid").scores
    assert [each["index"] for each in found] == np.argsort(-scores, kind="stable").tolist()
    np.testing.assert_allclose([each["score"] for each in found], np.sort(scores)[::-1], atol=1e-5)
    assert found[0]["text"] == TEXTS[found[0]["index"]]
    raw = server.post("/rerank", {"query": "the rain", "texts": TEXTS, "raw_scores": True}).json
    np.testing.assert_allclose(
        sorted(each["score"] for each in raw), np.sort(reranker.predict_with_report(PAIRS, score="logits").scores), atol=1e-4
    )


def test_similarity_is_the_cosine(server: Running, model: SentenceEncoder) -> None:
    found = server.post("/similarity", {"inputs": {"source_sentence": "cat", "sentences": TEXTS}}).json
    np.testing.assert_allclose(found, similarity(offline(model, ["cat"]), offline(model, TEXTS))[0], atol=1e-5)


def test_predict_gives_labels_best_first(server: Running, make_reranker: Callable[[int], CrossEncoder], model: SentenceEncoder) -> None:
    one = server.post("/predict", {"inputs": ["the rain", "cat"]}).json
    assert [set(each) for each in one] == [{"label", "score"}]
    three = make_reranker(3)
    with running(ServerSettings(limits=LIMITS), model, three) as other:
        rows = other.post("/predict", {"inputs": [["the rain", "cat"], ["cat"]]}).json
        alone = other.post("/predict", {"inputs": "cat"}).json
        assert other.post("/rerank", {"query": "a", "texts": ["b"]}).status == 424
    expected = three.predict_with_report([("the rain", "cat")], score="softmax").scores[0]
    found = {each["label"]: each["score"] for each in rows[0]}
    np.testing.assert_allclose([found[label] for label in three.labels], expected, atol=1e-5)
    assert [each["score"] for each in rows[0]] == sorted((each["score"] for each in rows[0]), reverse=True)
    assert [each["label"] for each in rows[1]] == [each["label"] for each in alone]
    assert [each["score"] for each in rows[1]] == pytest.approx([each["score"] for each in alone], abs=1e-6)
    assert server.post("/predict", {"inputs": [["a", "b", "c"]]}).status == 422


def test_tokens_come_back_with_their_places_and_as_text(server: Running, model: SentenceEncoder) -> None:
    text = "the rain is in the river"
    [tokens] = server.post("/tokenize", {"inputs": text}).json
    assert [token["id"] for token in tokens] == model.tokenizer.encode([text])[0]
    assert [text[token["start"] : token["stop"]] for token in tokens if not token["special"]] == text.split()
    plain = server.post("/tokenize", {"inputs": [text, "cat"], "add_special_tokens": False}).json
    assert [[token["id"] for token in each] for each in plain] == model.tokenizer.encode_plain([text, "cat"])
    ids = [token["id"] for token in tokens]
    assert server.post("/decode", {"ids": ids}).json == [text]
    assert server.post("/decode", {"ids": [ids, ids], "skip_special_tokens": False}).json[1].startswith("[CLS]")
    assert server.post("/decode", {"ids": [10**9]}).status == 422


def test_info_and_health_say_what_is_served(server: Running, model: SentenceEncoder) -> None:
    info = server.get("/info").json
    assert info["model_id"] == model.name
    assert info["max_input_length"] == MAX_LENGTH
    assert server.get("/health").status == server.get("/ping").status == 200


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("/embed", {"inputs": []}, 400),
        ("/embed", {}, 422),
        ("/embed", {"inputs": "a", "prompt_name": "none"}, 422),
        ("/rerank", {"query": "a", "texts": []}, 400),
        ("/similarity", {"inputs": {"source_sentence": "a", "sentences": []}}, 400),
        ("/tokenize", {"inputs": [1]}, 422),
        ("/decode", {"ids": []}, 400),
    ],
    ids=str,
)
def test_what_is_wrong_is_refused_in_teis_shape(server: Running, path: str, body: Any, status: int) -> None:
    answer = server.post(path, body)
    assert answer.status == status
    assert set(answer.json) == {"error", "error_type"}


def test_a_prompt_is_used_by_name(tiny_folder: Callable[..., Path], tmp_path: Path) -> None:
    settings = '{"prompts": {"query": "winter "}}'
    for include in (True, False):
        model = SentenceEncoder.load(tiny_folder(settings=settings, include_prompt=include))
        with running(ServerSettings(limits=LIMITS), model) as other:
            found = other.post("/embed", {"inputs": TEXTS, "prompt_name": "query"}).json
        np.testing.assert_allclose(found, offline(model, TEXTS, prompt_name="query"), atol=1e-5)


def test_a_route_is_chosen_by_the_name_of_a_prompt(tiny_folder: Callable[..., Path], tmp_path: Path) -> None:
    folder = shutil.copytree(tiny_folder(modules=()), tmp_path / "routed")
    modules = json.loads((folder / "modules.json").read_text(encoding="utf-8"))
    modules.append({"idx": 2, "name": "2", "path": "2_Router", "type": "sentence_transformers.base.modules.router.Router"})
    write_json(folder / "modules.json", modules)
    types, routes = {"query_0_Normalize": "sentence_transformers.models.Normalize"}, {"query": ["query_0_Normalize"], "document": []}
    write_json(folder / "2_Router/router_config.json", {"types": types, "structure": routes, "parameters": {"default_route": "document"}})
    model = SentenceEncoder.load(folder)
    with running(ServerSettings(limits=LIMITS), model) as other:
        for name, route in ((None, "document"), ("document", "document"), ("query", "query")):
            answer = other.post("/embed", {"inputs": TEXTS, "prompt_name": name, "normalize": False})
            np.testing.assert_allclose(answer.json, offline(model, TEXTS, prompt_name=route), atol=1e-5)
        refused = other.post("/embed", {"inputs": "cat", "prompt_name": "none"})
        assert (refused.status, "it has: query, document" in refused.json["error"]) == (422, True)
    lengths = np.linalg.norm(offline(model, TEXTS, prompt_name="query"), axis=1)
    np.testing.assert_allclose(lengths, 1, atol=1e-5)


def test_hugging_faces_client_gets_the_offline_numbers(server: Running, model: SentenceEncoder, monkeypatch: pytest.MonkeyPatch) -> None:
    hub = pytest.importorskip("huggingface_hub", reason="the real client")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)  # ./run sets it, and then the client asks nobody at all
    for url in (server.url, f"{server.url}/embed"):
        client = hub.InferenceClient(model=url, token="none")
        np.testing.assert_allclose(client.feature_extraction("the rain"), offline(model, ["the rain"]), atol=1e-5)
        short = client.feature_extraction("the rain", normalize=True, truncate=True)
        assert np.asarray(short).shape == (1, model.dimension)
    for url in (server.url, f"{server.url}/similarity"):
        scores = hub.InferenceClient(model=url, token="none").sentence_similarity("cat", other_sentences=TEXTS)
        np.testing.assert_allclose(scores, similarity(offline(model, ["cat"]), offline(model, TEXTS))[0], atol=1e-5)
    hub.utils.close_session()


def test_more_characters_than_tokens_may_be_asked_of_are_refused(server: Running) -> None:
    answer = server.post("/tokenize", {"inputs": ["rain " * 20_000] * 3})
    assert answer.status == 413
    assert "300,000 characters, the limit of this route is 200,000" in answer.json["error"]


def test_vectors_of_a_model_that_does_not_normalise_are_shaped_as_asked(tiny_folder: Callable[..., Path]) -> None:
    model = SentenceEncoder.load(tiny_folder(modules=()))
    with running(ServerSettings(limits=LIMITS), model) as other:
        raw = np.asarray(other.post("/embed", {"inputs": TEXTS, "normalize": False}).json)
        unit = np.asarray(other.post("/embed", {"inputs": TEXTS}).json)
    np.testing.assert_allclose(raw, offline(model, TEXTS), atol=1e-4)
    assert not np.allclose(np.linalg.norm(raw, axis=1), 1)
    np.testing.assert_allclose(unit, raw / np.linalg.norm(raw, axis=1, keepdims=True), atol=1e-5)
