"""A whole training of a cross-encoder, small: it learns, others read its folder, a killed run ends the same, and what is wrong is said."""

from __future__ import annotations

import json
import signal
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.conftest import quiet
from tests.forked import Forks
from tests.train.conftest import sentence_pairs
from tests.train.test_processes import _losses, launch
from tests.train.test_resume import RUN

from munjang import CrossEncoder
from munjang.engine.folder import read_folder
from munjang.errors import InputError, UsageError
from munjang.train import train
from munjang.train.durable import hash_file
from munjang.train.recipe import Recipe, make_recipe

CLASSES = ("neutral", "entailment", "contradiction")


@pytest.fixture
def cross_values(recipe_values: dict[str, Any]) -> dict[str, Any]:
    del recipe_values["stage"][0]["objective"]
    return {"kind": "cross", **recipe_values}


@pytest.fixture
def folder(pairs_file: Path) -> Path:
    """Pairs with scores, with classes that are easy to tell, triplets, and same/different pairs."""
    root = pairs_file.parent
    pairs = [(a.split(",")[0], b) for a, b, _ in sentence_pairs(96)]
    ends = {"neutral": "maybe", "entailment": "yes", "contradiction": "no"}
    nli = [{"a": a, "b": f"{ends[CLASSES[n % 3]]} {b}", "label": CLASSES[n % 3]} for n, (a, b) in enumerate(pairs)]
    same = [{"a": a, "b": f"{('no', 'yes')[n % 2]} {b}", "label": n % 2} for n, (a, b) in enumerate(pairs)]
    triplets = [{"anchor": a, "positive": f"yes {b}", "negative": f"no {b}"} for a, b in pairs]
    for name, rows in (("nli", nli), ("same", same), ("triplets", triplets)):
        (root / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return root


def recipe(values: dict[str, Any], folder: Path, **stage: Any) -> Recipe:
    values["stage"][0] |= stage
    return make_recipe(values, folder=folder)


NLI = {"path": "nli.jsonl", "texts": ["a", "b"], "label": "label"}
SAME = {"path": "same.jsonl", "texts": ["a", "b"], "label": "label"}
TRIPLETS = {"path": "triplets.jsonl"}
SCORED = {"path": "pairs.tsv", "label_range": [0, 5]}


@pytest.mark.parametrize(
    ("data", "metric", "loss", "labels", "pipeline"),
    [
        (NLI, "accuracy", "CrossEntropyLoss", tuple(sorted(CLASSES)), "text-classification"),
        (SAME, "ap", "BinaryCrossEntropyLoss", ("LABEL_0",), "text-ranking"),
        (TRIPLETS, "accuracy", "MultipleNegativesRankingLoss", ("LABEL_0",), "text-ranking"),
    ],
)
def test_it_learns_and_its_folder_loads_everywhere(
    folder: Path, cross_values: dict[str, Any], data: dict[str, Any], metric: str, loss: str, labels: tuple[str, ...], pipeline: str
) -> None:
    cross_values["checkpoint_every"] = 100
    result = train(recipe(cross_values, folder, data=[data], dev=data, epochs=8, learning_rate=5e-3))
    assert result.scores[metric] > 0.9
    assert any("chosen" in line for line in result.messages)
    assert read_folder(result.output).kind == "cross"
    ours = CrossEncoder.load(result.output)
    assert ours.labels == labels
    pairs = [("The cat sees the dog", "yes A cat sees a dog."), ("A river", "no a stone and then it goes home again, part 3.")]
    sentence_transformers = pytest.importorskip("sentence_transformers", reason="the authority is not installed")
    with quiet():
        theirs = sentence_transformers.CrossEncoder(str(result.output), device="cpu")
        np.testing.assert_allclose(theirs.predict(pairs), ours.predict(pairs), atol=1e-5)
    card = (result.output / "README.md").read_text(encoding="utf-8")
    assert f"loss:{loss}" in card
    assert f"pipeline_tag: {pipeline}" in card
    page = (result.output / "report.html").read_text(encoding="utf-8")
    assert page.count("<svg") == 3
    assert "Scores" in page


def test_scores_are_learnt_as_sigmoids_and_measured_by_correlation(folder: Path, cross_values: dict[str, Any]) -> None:
    result = train(recipe(cross_values, folder, data=[SCORED], dev=SCORED, steps=3))
    assert set(result.scores) == {"pearson", "spearman"}
    assert result.metric == "spearman"
    settings = json.loads((result.output / "config.json").read_text(encoding="utf-8"))["sentence_transformers"]
    assert settings["activation_fn"] == "torch.nn.modules.activation.Sigmoid"
    other = recipe(cross_values | {"output": "plain"}, folder, objective="mse", settings={"activation": "none"})
    config = json.loads((train(other).output / "config.json").read_text(encoding="utf-8"))
    assert config["sentence_transformers"]["activation_fn"] == "torch.nn.modules.linear.Identity"


def test_a_cross_encoder_is_trained_further_with_its_head(folder: Path, cross_values: dict[str, Any]) -> None:
    first = train(recipe(cross_values, folder, data=[SAME], steps=2))
    further = {
        "kind": "cross",
        "output": "further",
        "model": {"base": "out"},
        "stage": [cross_values["stage"][0] | {"learning_rate": 1e-12}],
    }
    second = train(make_recipe(further, folder=folder))
    assert any("kept" in line for line in second.messages)
    pairs = [("The cat sees the dog", "yes A cat sees a dog."), ("A river", "no")]
    np.testing.assert_allclose(CrossEncoder.load(second.output).predict(pairs), CrossEncoder.load(first.output).predict(pairs), atol=1e-6)


def test_killed_anywhere_and_resumed_it_ends_the_same(forks: Forks, folder: Path, cross_values: dict[str, Any]) -> None:
    def values(output: str) -> dict[str, Any]:
        made = json.loads(json.dumps(cross_values)) | {"output": output}
        stage = made["stage"][0]
        second = stage | {"data": [TRIPLETS], "objective": "lambdaloss", "epochs": 1, "mini_batch": 6}
        made["stage"] = [stage | {"data": [SCORED], "dev": SCORED, "evaluate_every": 5}, second]
        return made

    def child(output: str, resume: bool, point: str, count: int) -> int:
        argument = json.dumps([values(output), str(folder), resume, point, count])
        return forks.run(RUN, argument).returncode

    # every run in a process of its own: what other tests did to torch's threads in this one would show in the last bit
    assert child("whole", False, "step", 10_000) == 0
    # in the middle of writing a checkpoint, then in a step of the second stage
    assert child("broken", False, "sync", 14) == -signal.SIGKILL
    assert child("broken", True, "step", 11) == -signal.SIGKILL
    assert child("broken", True, "step", 10_000) == 0
    for name in ("model.safetensors", "training/log.jsonl", "tokenizer.json", "config.json"):
        assert hash_file(folder / "whole" / name) == hash_file(folder / "broken" / name), name


@pytest.mark.skipif(sys.platform == "win32", reason="gloo is tested on POSIX")
def test_two_processes_take_the_steps_of_one(forks: Forks, folder: Path, cross_values: dict[str, Any]) -> None:
    cross_values["model"]["dropout"] = 0.0
    runs: dict[int, list[tuple[dict[str, Any], str]]] = {1: [], 2: []}
    for count, listed in runs.items():
        # a mean over rows, and a mean over pairs of documents, which needs every process's scores; 7 rows give uneven shares
        for name, data in (("mse", SCORED), ("lambdaloss", TRIPLETS)):
            made = json.loads(json.dumps(cross_values)) | {"output": f"{name}-{count}"}
            made["stage"][0] |= {"objective": name, "data": [data], "steps": 4, "batch_size": 7}
            listed.append((made, str(folder)))
    for made, _ in runs[1]:
        train(make_recipe(made, folder=folder))
    launch(forks, runs[2])
    for name in ("mse", "lambdaloss"):
        assert np.allclose(_losses(folder / f"{name}-1"), _losses(folder / f"{name}-2"), atol=1e-5), name


@pytest.mark.parametrize(
    ("stage", "message"),
    [
        ({"data": [SCORED], "objective": "cross_entropy"}, "labels are of kind 'score', objective 'cross_entropy' needs 'class'"),
        ({"data": [NLI], "objective": "mse"}, "labels are of kind 'class'"),
        ({"data": [SCORED], "objective": "regression"}, "unknown objective 'regression' for a cross-encoder"),
        ({"data": [NLI, SCORED]}, "a cross-encoder has one head"),
        ({"data": [NLI], "dev": SCORED}, "a dev file with no classes"),
        ({"data": [SCORED], "dev": NLI}, "the model learns one score"),
        ({"data": [{"path": "pairs.tsv", "texts": ["sentence1", "sentence2"]}], "objective": "bce"}, "have no negatives"),
        ({"data": [SCORED], "dev": {"path": "pairs.tsv", "texts": ["sentence1", "sentence2"]}}, "without labels or negatives"),
        ({"data": [{"path": "pairs.tsv", "texts": ["sentence1", "sentence2"], "scores": ["score"]}]}, "scores names 1 columns for 2 texts"),
    ],
)
def test_data_that_does_not_fit_is_named(folder: Path, cross_values: dict[str, Any], stage: dict[str, Any], message: str) -> None:
    with pytest.raises((InputError, UsageError), match=message):
        train(recipe(cross_values, folder, **stage))
    assert not (folder / "out").exists()


def test_settings_of_the_other_kind_are_refused(folder: Path, cross_values: dict[str, Any]) -> None:
    cross_values["model"]["pooling"] = "mean"
    with pytest.raises(UsageError, match="pooling has no meaning for a cross-encoder"):
        recipe(cross_values, folder)
    del cross_values["model"]["pooling"], cross_values["kind"]
    cross_values["model"]["head"] = "sbert"
    with pytest.raises(UsageError, match="head is for cross-encoders"):
        recipe(cross_values, folder)


def test_a_score_that_is_no_number_is_named(folder: Path, cross_values: dict[str, Any]) -> None:
    row = {"q": "the rain", "p": "rain", "n": "sun", "s": "high"}
    (folder / "scored.jsonl").write_text(json.dumps(row) + "\n", encoding="utf-8")
    source = {"path": "scored.jsonl", "texts": ["q", "p", "n"], "scores": ["s"]}
    with pytest.raises(InputError, match=r"scored.jsonl line 1: s is 'high', expected a number"):
        train(recipe(cross_values, folder, data=[source]))


def test_a_teachers_scores_teach_a_sentence_encoder_too(folder: Path, recipe_values: dict[str, Any]) -> None:
    rows = [{"q": a, "p": f"yes {b}", "n": f"no {b}", "sp": 2.5, "sn": -1} for a, b, _ in sentence_pairs(20)]
    (folder / "scored.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    del recipe_values["stage"][0]["objective"]
    result = train(
        recipe(recipe_values, folder, data=[{"path": "scored.jsonl", "texts": ["q", "p", "n"], "scores": ["sp", "sn"]}], steps=2)
    )
    assert any("margins" in line and "chosen" in line for line in result.messages)
