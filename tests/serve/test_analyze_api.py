"""Munjang's own routes for sentences and collections: the answers are those of the functions themselves."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.serve.conftest import Running

from munjang import SentenceEncoder
from munjang.analyze.clusters import cluster
from munjang.analyze.layout import lay_out
from munjang.analyze.pairs import mine_pairs
from munjang.models.inspect import compare_tokens
from munjang.vectors.similarity import normalize, similarity

WORDS = ("rain", "snow", "cat", "dog", "train", "book", "river", "winter")
TEXTS = [f"the {a} is on the {b}" for a in WORDS for b in WORDS if a != b]


@pytest.fixture(scope="module")
def vectors(model: SentenceEncoder) -> np.ndarray:
    return normalize(model.encode(TEXTS))


def test_similarity_is_a_matrix(server: Running, model: SentenceEncoder) -> None:
    both = server.post("/api/similarity", {"a": TEXTS[:3], "b": TEXTS[3:5]}).json["scores"]
    np.testing.assert_allclose(both, similarity(model.encode(TEXTS[:3]), model.encode(TEXTS[3:5])), atol=1e-5)
    one = server.post("/api/similarity", {"a": TEXTS[:4]}).json["scores"]
    np.testing.assert_allclose(np.diag(one), 1, atol=1e-5)


def test_inspect_shows_one_sentence_or_compares_two(server: Running, model: SentenceEncoder) -> None:
    one = server.post("/api/inspect", {"text": "the cat sleeping"}).json
    assert [token["id"] for token in one["first"]["tokens"]] == model.tokenizer.encode(["the cat sleeping"])[0]
    np.testing.assert_allclose(one["first"]["vector"], model.encode("the cat sleeping"), atol=1e-5)
    two = server.post("/api/inspect", {"text": "the cat", "other": "a dog"}).json
    expected = compare_tokens(model, "the cat", "a dog")
    assert two["score"] == pytest.approx(expected.score, abs=1e-5)
    np.testing.assert_allclose(two["cosine"], expected.cosine_NM, atol=1e-4)
    assert np.sum(two["contribution"]) == pytest.approx(two["score"], abs=1e-4)


def test_pairs_are_those_of_mine(server: Running, vectors: np.ndarray) -> None:
    found = server.post("/api/pairs", {"texts": [*TEXTS, TEXTS[0]], "threshold": 0.7, "top": 20}).json
    expected = mine_pairs(vectors, texts=TEXTS, threshold=0.7, top=20)
    assert [pair["score"] for pair in found["pairs"]] == pytest.approx([pair.score for pair in expected.pairs], abs=1e-5)
    assert found["same"] == [[0, len(TEXTS)]]
    assert found["cut"] is True


def test_pairs_whose_numbers_differ_are_left_out_if_asked(server: Running) -> None:
    texts = ["the cat 128GB", "the cat 256GB", "the cat 128 GB"]
    asked = {"texts": texts, "threshold": 0.1}
    assert len(server.post("/api/pairs", asked).json["pairs"]) == 3
    assert [(pair["a"], pair["b"]) for pair in server.post("/api/pairs", {**asked, "numbers": True}).json["pairs"]] == [(0, 2)]


def test_clusters_and_map_are_those_of_the_functions(server: Running, vectors: np.ndarray) -> None:
    pytest.importorskip("sklearn", reason="the extra topics is not installed")
    body: dict[str, Any] = {"texts": TEXTS, "k": 4}
    found = server.post("/api/clusters", body).json
    assert found["labels"] == cluster(vectors, k=4).labels_N.tolist()
    assert sum(each["size"] for each in found["clusters"]) == len(TEXTS)
    assert all(each["phrases"] for each in found["clusters"])
    plane = server.post("/api/map", body | {"layout": "pca"}).json
    assert plane["labels"] == found["labels"]
    np.testing.assert_allclose(plane["places"], lay_out(vectors, layout="pca"), atol=1e-3)


def test_keywords_stand_where_they_are_said_to(server: Running) -> None:
    found = server.post("/api/keywords", {"texts": TEXTS[:5], "top": 2}).json
    assert [len(each) for each in found["keywords"]] == [2] * 5
    for text, each in zip(found["texts"], found["keywords"], strict=True):
        for one in each:
            for start, end in one["places"]:
                assert text[start:end] == one["text"]
    assert server.post("/api/keywords", {"texts": ["cat"], "min_words": 3, "max_words": 2}).status == 422


def test_a_phrase_longer_than_the_model_reads_is_found_without_a_warning(server: Running) -> None:
    word = "x-" * 40 + "x"
    answer = server.post("/api/keywords", {"texts": [f"{word} of the river"], "seed_words": ["river"]})
    assert answer.status == 200
    assert answer.headers["x-munjang-truncated-count"] == "1"
    assert server.log.getvalue().count(b"error") == 0


def test_topics_have_words_and_documents(server: Running) -> None:
    found = server.post("/api/topics", {"texts": TEXTS, "method": "kmeans", "topics": 3, "min_size": 2}).json
    assert len(found["labels"]) == len(TEXTS)
    assert sum(topic["size"] for topic in found["topics"]) + found["outliers"] == len(TEXTS)
    assert all(topic["words"] and topic["name"] for topic in found["topics"])
    assert found == server.post("/api/topics", {"texts": TEXTS, "method": "kmeans", "topics": 3, "min_size": 2}).json


def test_a_librarys_documents_are_analysed_by_their_ids(server: Running) -> None:
    records = [{"id": str(number), "text": text} for number, text in enumerate(TEXTS)]
    assert server.post("/api/libraries", {"name": "whole", "records": records}).status == 201
    found = server.post("/api/pairs", {"library": "whole", "threshold": 0.5, "top": 5}).json
    sent = server.post("/api/pairs", {"texts": TEXTS, "threshold": 0.5, "top": 5}).json
    assert [pair["score"] for pair in found["pairs"]] == pytest.approx([pair["score"] for pair in sent["pairs"]], abs=1e-5)
    assert sorted(found["ids"], key=int) == [record["id"] for record in records]


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("/api/pairs", {}, 422),
        ("/api/pairs", {"texts": ["a"], "library": "b"}, 422),
        ("/api/pairs", {"library": "nothing"}, 404),
        ("/api/pairs", {"texts": []}, 400),
        ("/api/clusters", {"texts": ["a", "b"], "k": 5}, 400),
        ("/api/clusters", {"texts": ["a", "b"], "method": "magic"}, 422),
        ("/api/similarity", {"a": []}, 400),
        ("/api/inspect", {}, 422),
        ("/api/topics", {"texts": ["a"], "labels": [" "]}, 400),
        ("/api/topics", {"texts": TEXTS, "labels": ["cat", "sleep " * 60]}, 413),
        ("/api/keywords", {"texts": TEXTS, "seed_words": ["sleep"] * 60}, 413),
    ],
    ids=lambda value: str(value)[:60],
)
def test_what_is_wrong_is_refused(server: Running, path: str, body: Any, status: int) -> None:
    answer = server.post(path, body)
    assert answer.status == status, answer.body
    assert set(answer.json["error"]) == {"message", "code", "field"}
