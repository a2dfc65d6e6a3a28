"""keep_head: the classifier of a training is saved beside the encoder, answers as the training did, and survives a resume."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests.train.conftest import NOUNS, VERBS

from munjang import PairClassifier, SentenceEncoder
from munjang.engine.folder import PAIR_CLASSIFIER
from munjang.engine.pair_head import Part
from munjang.errors import UsageError
from munjang.train.dev import Classifier
from munjang.train.objectives.labelled import Classification, ClassificationSettings
from munjang.train.progress import Silent
from munjang.train.recipe import make_recipe
from munjang.train.save_and_report import TrainResult, run
from munjang.train.stage_run import StageRun

CLASSES = ("contradiction", "entailment", "neutral")


def write_nli(path: Path, count: int, seed: int) -> list[tuple[str, str, str]]:
    chance = random.Random(seed)
    rows = []
    for number in range(count):
        noun, verb, label = chance.choice(NOUNS), chance.choice(VERBS), CLASSES[number % 3]
        after = {"contradiction": f"no {noun} {verb}", "entailment": f"a {noun} {verb}", "neutral": f"the {chance.choice(NOUNS)} is old"}
        rows.append((f"the {noun} {verb} the {chance.choice(NOUNS)}", after[label], label))
    lines = ["sentence1\tsentence2\tgold_label", *("\t".join(row) for row in rows)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return rows


def make_values(folder: Path) -> dict[str, Any]:
    write_nli(folder / "nli.tsv", 48, 1)
    write_nli(folder / "dev.tsv", 30, 2)
    stage = {
        "objective": "classification",
        "keep_head": True,
        "batch_size": 16,
        "learning_rate": 3e-3,
        "evaluate_every": 2,
        "steps": 4,
        "data": [{"path": "nli.tsv"}],
        "dev": {"path": "dev.tsv"},
    }
    scratch = {"vocabulary": 150, "layers": 1, "width": 32, "heads": 2, "inner": 32, "positions": 32}
    return {"output": "out", "seed": 7, "model": {"scratch": scratch}, "stage": [stage]}


@pytest.fixture
def values(tmp_path: Path) -> dict[str, Any]:
    return make_values(tmp_path)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> TrainResult:
    folder = tmp_path_factory.mktemp("trained")
    return run(make_recipe(make_values(folder), folder=folder), progress=Silent())


def test_the_kept_classifier_has_the_dev_accuracy_of_the_training(trained: TrainResult, tmp_path: Path) -> None:
    model, rows = PairClassifier.load(trained.output), write_nli(tmp_path / "dev.tsv", 30, 2)
    predicted = model.predict_with_report([(a, b) for a, b, _ in rows]).predicted
    right = sum(label == gold for label, (_, _, gold) in zip(predicted, rows, strict=True))
    assert trained.metric == "accuracy"
    assert right / len(rows) == pytest.approx(trained.scores["accuracy"], abs=1e-12)
    assert right > 10, "something was learnt, or the comparison says nothing"
    assert model.labels == CLASSES
    assert model.head.parts == ("u", "v", "|u-v|")


def test_the_folder_says_what_it_keeps(trained: TrainResult) -> None:
    assert "PairClassifier.load" in (trained.output / "README.md").read_text(encoding="utf-8")
    assert any(PAIR_CLASSIFIER in message for message in trained.messages)


@pytest.mark.parametrize("parts", [("u", "v"), ("|u-v|", "u*v"), ("u", "v", "|u-v|", "u*v")], ids="".join)
def test_a_heads_logits_are_those_of_the_objective(parts: tuple[Part, ...]) -> None:
    torch.manual_seed(3)
    objective = Classification(ClassificationSettings(parts), dimension=6, num_labels=3)
    u, v = torch.randn(5, 6), torch.randn(5, 6)
    ours = Classifier(objective, CLASSES).to_head("x").logits(u.numpy(), v.numpy())
    np.testing.assert_allclose(ours, objective.logits([u, v]).detach().numpy(), atol=1e-6)


@pytest.mark.slow
def test_the_encoder_is_the_one_that_a_training_without_keep_head_saves(
    trained: TrainResult, values: dict[str, Any], tmp_path: Path
) -> None:
    values["stage"][0]["keep_head"] = False
    plain = run(make_recipe(values, folder=tmp_path), progress=Silent()).output
    assert not (plain / PAIR_CLASSIFIER).exists()
    one, other = SentenceEncoder.load(trained.output), SentenceEncoder.load(plain)
    assert one.fingerprint == other.fingerprint
    np.testing.assert_array_equal(one.encode(["the cat sees"]), other.encode(["the cat sees"]))


def test_a_training_that_was_killed_before_saving_keeps_the_same_head(
    trained: TrainResult, values: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(trained.output / "training", tmp_path / "out" / "training")  # what a kill after the last checkpoint leaves
    recipe = tmp_path / "out" / "training" / "recipe.json"
    recipe.write_text(recipe.read_text(encoding="utf-8").replace(str(trained.output.parent), str(tmp_path)), encoding="utf-8")
    monkeypatch.setattr(StageRun, "train", _never)
    again = run(make_recipe(values, folder=tmp_path), progress=Silent(), resume=True).output
    one, other = (folder / PAIR_CLASSIFIER / "head.safetensors" for folder in (again, trained.output))
    assert one.read_bytes() == other.read_bytes()
    PairClassifier.load(again)


def _never(_self: StageRun) -> None:
    raise AssertionError("every step was done")


def drop_labels(values: dict[str, Any], tmp_path: Path) -> None:
    values["stage"][0]["objective"] = "in_batch"
    values["stage"][0].pop("dev")
    (tmp_path / "nli.tsv").write_text("sentence1\tsentence2\n" + "".join(f"a {n}\tb {n}\n" for n in range(40)), encoding="utf-8")


def add_stage(values: dict[str, Any], _tmp_path: Path) -> None:
    values["stage"].append(dict(values["stage"][0]) | {"keep_head": False})


def make_cross(values: dict[str, Any], _tmp_path: Path) -> None:
    values["kind"] = "cross"


def add_classes(values: dict[str, Any], tmp_path: Path) -> None:
    rows = "".join(f"the {noun} runs\tthe {noun} walks\t{number % 2}\n" for number, noun in enumerate(NOUNS * 4))
    (tmp_path / "more.tsv").write_text("sentence1\tsentence2\tlabel\n" + rows, encoding="utf-8")
    more = {"path": "more.tsv", "objective": "classification", "kind": "labelled", "texts": ["sentence1", "sentence2"], "label": "label"}
    values["stage"][0]["data"].append(more)


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (drop_labels, "the stage trains no classifier"),
        (add_stage, "keep_head is for the last stage"),
        (make_cross, "keep_head is for sentence encoders"),
        (add_classes, "the stage trains 2 classifiers, expected one"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_a_head_that_cannot_be_kept_is_refused_before_the_first_step(
    values: dict[str, Any], tmp_path: Path, spoil: Callable[[dict[str, Any], Path], None], said: str
) -> None:
    spoil(values, tmp_path)
    with pytest.raises(UsageError, match=said):
        run(make_recipe(values, folder=tmp_path), progress=Silent())
    assert not (tmp_path / "out").exists()


def test_a_recipe_without_keep_head_resumes_runs_of_older_versions(values: dict[str, Any], tmp_path: Path) -> None:
    values["stage"][0]["keep_head"] = False
    assert "keep_head" not in make_recipe(values, folder=tmp_path).to_json()["stages"][0]
