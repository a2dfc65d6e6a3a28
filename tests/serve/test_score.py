"""/api/score scores pairs with any served model as Python does; a served pair classifier answers /predict."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from tests.kept_head import LABELS, keep_head
from tests.serve.conftest import LIMITS, Running, running

from munjang import CrossEncoder, PairClassifier, SentenceEncoder, score_pairs
from munjang.serve.settings import ServerSettings

PAIRS = [("the rain", "비가 많이 온다"), ("cat", "a dog was on the train"), ("cat", "cat")]
BODY = [list(pair) for pair in PAIRS]


@pytest.fixture(scope="module")
def classifier(tiny_bert_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> PairClassifier:
    return PairClassifier.load(keep_head(Path(shutil.copytree(tiny_bert_folder, tmp_path_factory.mktemp("kept") / "nli"))))


@pytest.fixture(scope="module")
def three(make_reranker: Callable[[int], CrossEncoder]) -> CrossEncoder:
    return make_reranker(3)


@pytest.fixture(scope="module")
def serving(model: SentenceEncoder, reranker: CrossEncoder, three: CrossEncoder, classifier: PairClassifier) -> Iterator[Running]:
    options = {"more_rerankers": (three,), "pair_classifiers": (classifier,)}
    with running(ServerSettings(limits=LIMITS), model, reranker, **options) as started:
        yield started


def test_without_a_name_the_default_encoder_gives_cosines(serving: Running, model: SentenceEncoder) -> None:
    answer = serving.post("/api/score", {"pairs": BODY}).json
    assert (answer["model"], answer["labels"], answer["predicted"]) == (model.name, [], [])
    np.testing.assert_allclose(answer["scores"], score_pairs(PAIRS, model).scores, atol=2e-6)


def test_every_kind_of_model_answers_by_its_name(
    serving: Running, reranker: CrossEncoder, three: CrossEncoder, classifier: PairClassifier
) -> None:
    for each in (reranker, three, classifier):
        answer, expected = serving.post("/api/score", {"pairs": BODY, "model": each.name}).json, score_pairs(PAIRS, each)
        assert (answer["model"], answer["labels"]) == (each.name, list(expected.labels))
        np.testing.assert_allclose(answer["scores"], expected.scores, atol=1e-5)
        assert answer["predicted"] == (expected.predicted if expected.labels else [])
    raw = serving.post("/api/score", {"pairs": BODY, "model": three.name, "score": "logits"}).json
    np.testing.assert_allclose(raw["scores"], three.predict(PAIRS, score="logits"), atol=1e-4)


def test_a_served_pair_classifier_answers_predict_best_label_first(serving: Running, classifier: PairClassifier) -> None:
    rows = serving.post("/predict", {"inputs": BODY}).json
    expected = classifier.predict_with_report(PAIRS)
    assert [row[0]["label"] for row in rows] == expected.predicted
    np.testing.assert_allclose([each["score"] for each in rows[0]], np.sort(expected.scores[0])[::-1], atol=1e-5)
    assert {each["label"] for each in rows[0]} == set(LABELS)
    alone = serving.post("/predict", {"inputs": "cat"})
    assert (alone.status, "labels pairs" in alone.json["error"]) == (422, True)
    assert serving.post("/predict", {"inputs": [["sleep " * 60, "cat"]], "truncate": False}).status == 422


def test_the_pair_classifier_is_listed_and_shares_the_encoders_weights(serving: Running, classifier: PairClassifier) -> None:
    assert classifier.name in [card["id"] for card in serving.get("/v1/models").json["data"]]
    assert serving.service.pair_classifiers[0].encoder is serving.service.encoders[0]


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"pairs": []}, 400),
        ({"pairs": [["cat"]]}, 422),
        ({"pairs": [["cat", "dog", "sun"]]}, 422),
        ({"pairs": [["cat", None]]}, 422),
        ({"pairs": ["cat", "dog"]}, 422),
        ({"pairs": [["cat", "dog"]] * 65}, 413),
        ({"pairs": [["cat", "dog"]], "model": "nobody"}, 404),
        ({"pairs": [["cat", "dog"]], "score": "softmax"}, 400),
        ({"pairs": [["cat", "dog"]], "score": "loud"}, 422),
        ({"pairs": [["cat", "dog"]], "scores": "model"}, 422),
    ],
    ids=["none", "one text", "three texts", "null", "no lists", "too many", "unknown model", "cosines", "unknown score", "unknown field"],
)
def test_what_cannot_be_scored_is_refused(serving: Running, body: dict[str, object], status: int) -> None:
    answer = serving.post("/api/score", body)
    assert (answer.status, bool(answer.json)) == (status, True)


def test_a_cut_pair_is_said(serving: Running) -> None:
    answer = serving.post("/api/score", {"pairs": [["cat", "dog"], ["cat", "sleep " * 60]]})
    assert answer.json["truncated"] == [1]
    assert answer.headers["x-munjang-truncated"] == "1"
