"""Labels over HTTP: the answers are those of the functions themselves; /predict has the labels of the served classifier."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from tests.serve.conftest import LIMITS, Running, running

from munjang import SentenceEncoder, UsageError, apply_classifier, classify_texts, fit_classifier
from munjang.serve.service import Service
from munjang.serve.settings import ServerSettings

WORDS = ("rain", "snow", "cat", "dog", "train", "book")
TEXTS = [f"the {a} is on the {b}" for a in WORDS for b in WORDS if a != b]
LABELS = ["animal" if any(word in text for word in ("cat", "dog")) else "thing" for text in TEXTS]


@pytest.fixture(scope="module")
def labelling(model: SentenceEncoder, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    made = fit_classifier(TEXTS, LABELS, model, strength=10.0)
    settings = ServerSettings(limits=LIMITS, data=tmp_path_factory.mktemp("data"))
    with running(settings, model, classifiers={"kinds": made}) as found:
        yield found


def test_labels_without_examples_are_those_of_python(server: Running, model: SentenceEncoder) -> None:
    labels = ["weather", {"name": "animals", "description": "cats and dogs", "words": ["cat"]}]
    found = server.post("/api/classify", {"texts": TEXTS, "labels": labels, "rounds": 2}).json
    from munjang import Label

    expected = classify_texts(TEXTS, ["weather", Label("animals", "cats and dogs", ("cat",))], model, rounds=2)
    assert [each["guess"] for each in found["results"]] == [each.guess for each in expected]
    assert [each["probability"] for each in found["results"]] == pytest.approx([each.probability for each in expected], abs=1e-4)
    assert found["accuracy"] is None


def test_examples_train_a_classifier_for_one_request(server: Running) -> None:
    examples = [{"text": text, "label": label} for text, label in zip(TEXTS, LABELS, strict=True)]
    found = server.post("/api/classify", {"texts": ["the cat", "the book"], "examples": examples}).json
    assert found["names"] == ["animal", "thing"]
    assert found["accuracy"] is None or 0 <= found["accuracy"] <= 1  # the tiny model finds most of these texts alike
    assert sum(len(each["labels"]) for each in found["results"]) == 2
    several = [{"text": text, "label": [label, "text"]} for text, label in zip(TEXTS, LABELS, strict=True)]
    body = {"texts": TEXTS, "examples": [*several, {"text": "snow", "label": []}], "multi": True, "strength": 50.0}
    found = server.post("/api/classify", body).json
    assert found["names"] == ["animal", "text", "thing"]
    assert found["accuracy"] is None
    assert sum("text" in each["labels"] for each in found["results"]) == len(TEXTS)


def test_a_served_classifier_answers_by_its_name_and_in_teis_dialect(labelling: Running, model: SentenceEncoder) -> None:
    made = labelling.service.find_classifier("kinds").made
    expected = apply_classifier(made, TEXTS[:4], model)
    found = labelling.post("/api/classify", {"texts": TEXTS[:4], "classifier": "kinds"}).json
    assert [each["labels"] for each in found["results"]] == [list(each.labels) for each in expected]
    rows = labelling.post("/predict", {"inputs": [[text] for text in TEXTS[:4]]}).json
    best = [max(range(2), key=lambda place: row[place]) for row in expected.probability_NC]
    assert [row[0]["label"] for row in rows] == [made.labels[place] for place in best]
    np.testing.assert_allclose([row[0]["score"] for row in rows], expected.probability_NC.max(axis=1), atol=1e-4)
    assert [each["label"] for each in labelling.post("/predict", {"inputs": TEXTS[0]}).json] == [each["label"] for each in rows[0]]
    (listed,) = labelling.get("/api/classifiers").json["classifiers"]
    assert (listed["name"], listed["labels"], listed["examples"]) == ("kinds", list(made.labels), len(TEXTS))
    raw = labelling.post("/predict", {"inputs": TEXTS[0], "raw_scores": True}).json
    assert [each["label"] for each in raw] == [each["label"] for each in rows[0]]


@pytest.mark.parametrize(
    ("body", "status", "words"),
    [
        ({"texts": ["a"]}, 422, "expected one of labels, examples, classifier"),
        ({"texts": ["a"], "labels": ["x", "y"], "classifier": "kinds"}, 422, "expected one of"),
        ({"texts": ["a"], "labels": ["x"]}, 400, "at least two"),
        ({"texts": ["a"], "labels": ["x", "x"]}, 400, "given twice"),
        ({"texts": ["a"], "classifier": "other"}, 404, "there is: kinds"),
        ({"texts": ["a"], "examples": [{"text": "a", "label": "x"}]}, 422, "the same label"),
        ({"texts": ["a"], "examples": [{"text": "a", "label": "x"}, {"text": "b", "label": " "}]}, 422, "is empty"),
        ({"texts": ["a"], "labels": ["x", "y"], "precision": 0.9}, 400, "no row was held out"),
        ({"texts": ["a"], "labels": ["x", "y"], "rounds": 99}, 422, "rounds"),
        ({"texts": ["a"], "examples": [{"text": "a", "label": ["x"]}, {"text": "b", "label": "y"}]}, 422, "say multi"),
        ({"texts": ["a"], "labels": ["x", "y"], "strength": 0}, 422, "strength"),
    ],
)
def test_what_cannot_be_answered_is_refused(labelling: Running, body: dict[str, object], status: int, words: str) -> None:
    answer = labelling.post("/api/classify", body)
    assert answer.status == status, answer.body
    assert words in answer.body.decode()


def test_without_a_classifier_the_refusal_says_how_to_get_one(server: Running) -> None:
    assert "--classifier" in server.post("/api/classify", {"texts": ["a"], "classifier": "kinds"}).body.decode()


def test_a_classifier_brings_the_model_that_it_was_tuned_with(
    model: SentenceEncoder, tiny_folder: Callable[..., Path], tmp_path: Path
) -> None:
    own = SentenceEncoder.load(tiny_folder("roberta"))
    made = fit_classifier(TEXTS, LABELS, own, strength=10.0)
    settings = ServerSettings(limits=LIMITS, data=tmp_path)
    with running(settings, model, classifiers={"kinds": made}, classifier_models=[own]) as server:
        expected = apply_classifier(made, TEXTS, own)
        found = server.post("/api/classify", {"texts": TEXTS, "classifier": "kinds"}).json
        assert [each["guess"] for each in found["results"]] == [each.guess for each in expected]
        rows = server.post("/predict", {"inputs": [[text] for text in TEXTS]}).json
        assert [row[0]["label"] for row in rows] == [each.guess for each in expected]
        assert [each["id"] for each in server.get("/v1/models").json["data"]] == [model.name]  # no request can name it
        records = [{"id": str(n), "text": text} for n, text in enumerate(TEXTS)]
        assert server.post("/api/libraries", {"name": "own", "records": records}).status == 201
        found = server.post("/api/classify", {"library": "own", "classifier": "kinds"}).json
        said = dict(zip(found["ids"], (each["guess"] for each in found["results"]), strict=True))
        assert [said[str(n)] for n in range(len(TEXTS))] == [each.guess for each in expected]


def test_a_classifier_of_another_model_is_not_served(model: SentenceEncoder, tmp_path: Path) -> None:
    from dataclasses import replace

    made = replace(fit_classifier(TEXTS, LABELS, model, strength=1.0), encoder="another", encoder_name="other")
    with pytest.raises(UsageError, match="is not served"):
        Service(ServerSettings(limits=LIMITS, data=tmp_path), model, None, classifiers={"kinds": made})
