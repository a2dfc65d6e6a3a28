"""A whole training, small: it learns, it is saved so that others read it, and what is wrong is said."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from munjang.errors import InputError, UsageError
from munjang.train import load, train
from munjang.train.progress import StepNews
from munjang.train.recipe import Recipe, make_recipe


def _recipe(values: dict[str, Any], folder: Path, **stage: Any) -> Recipe:
    values["stage"][0] |= stage
    return make_recipe(values, folder=folder)


def test_a_training_learns_and_its_folder_loads_in_sentence_transformers(pairs_file: Path, recipe_values: dict[str, Any]) -> None:
    recipe_values["model"] |= {"dense": 24, "normalize": True}
    stage = {"epochs": 6, "evaluate_every": 10, "dev": {"path": "pairs.tsv", "label_range": [0, 5]}}
    result = train(_recipe(recipe_values, pairs_file.parent, **stage))
    before, best = result.log.evaluations[0].score, result.scores["spearman_cosine"]
    assert best > before + 0.1
    assert best == max(entry.score for entry in result.log.evaluations[1:])
    from sentence_transformers import SentenceTransformer

    texts = ["The cat sees the dog.", "A river follows a stone and then it goes home again, part 3."]
    theirs = SentenceTransformer(str(result.output), device="cpu").encode(texts)
    ours = load(result.output).encode(texts)
    assert ours.shape == (2, 24)
    assert np.abs(theirs - ours).max() < 1e-6
    card = (result.output / "README.md").read_text(encoding="utf-8")
    assert "loss:CosineSimilarityLoss" in card
    assert "dataset_size:96" in card
    assert "pairs.tsv" in card
    assert f"{best:.4f}" in card
    page = (result.output / "report.html").read_text(encoding="utf-8")
    assert page.count("<svg") == 3
    assert "http" not in page.replace("http-equiv", "")
    assert not list(result.output.glob("**/*.bin"))


def test_the_fast_engine_reads_what_was_trained(pairs_file: Path, recipe_values: dict[str, Any]) -> None:
    models = pytest.importorskip("munjang.models.sentence_encoder")
    result = train(_recipe(recipe_values, pairs_file.parent, steps=2))
    texts = ["The cat sees the dog.", "A river follows a stone."]
    assert np.abs(models.SentenceEncoder.load(result.output).encode(texts) - load(result.output).encode(texts)).max() < 1e-5


def test_an_objective_is_chosen_and_said(pairs_file: Path, recipe_values: dict[str, Any]) -> None:
    recipe = _recipe(recipe_values, pairs_file.parent, steps=2)
    values = recipe_values | {"output": "chosen"}
    del values["stage"][0]["objective"]
    result = train(make_recipe(values, folder=pairs_file.parent))
    assert any("CoSENT" in line and "chosen" in line for line in result.messages)
    assert recipe.stages[0].objective == "regression"


def test_stages_follow_each_other_and_heads_are_thrown_away(pairs_file: Path, recipe_values: dict[str, Any]) -> None:
    rows = [line.split("\t") for line in pairs_file.read_text(encoding="utf-8").splitlines()[1:]]
    nli = [json.dumps({"a": a, "b": b, "label": ("no", "maybe", "yes")[min(2, int(float(score) / 2))]}) for a, b, score in rows]
    (pairs_file.parent / "nli.jsonl").write_text("\n".join(nli), encoding="utf-8")
    first = {"objective": "classification", "steps": 3, "data": [{"path": "nli.jsonl", "texts": ["a", "b"], "label": "label"}]}
    recipe_values["stage"] = [
        first,
        recipe_values["stage"][0] | {"steps": 3, "freeze_embeddings": True, "freeze_layers": 1, "accumulate": 2},
    ]
    result = train(make_recipe(recipe_values, folder=pairs_file.parent))
    assert [entry.stage for entry in result.log.steps] == [0, 0, 0, 1, 1, 1]
    from safetensors import safe_open

    with safe_open(result.output / "model.safetensors", "pt") as stored:
        assert not any("head" in name for name in stored.keys())  # noqa: SIM118


def test_frozen_parts_do_not_move(pairs_file: Path, recipe_values: dict[str, Any]) -> None:
    from munjang.train.build import build_encoder

    recipe = _recipe(recipe_values, pairs_file.parent, steps=3, freeze_embeddings=True, freeze_layers=1)
    before = build_encoder(recipe).state_dict()
    after = load(train(recipe).output).state_dict()
    moved = {name for name in before if not torch.equal(before[name], after[name])}
    assert moved
    assert all(".layer.1." in name for name in moved)


def test_a_large_batch_with_a_gradient_cache_takes_the_same_way(pairs_file: Path, recipe_values: dict[str, Any]) -> None:
    losses = []
    recipe_values["model"]["dropout"] = 0.0
    recipe_values["stage"][0]["data"] = [{"path": "pairs.tsv", "texts": ["sentence1", "sentence2"]}]
    for output, mini in (("plain", None), ("cached", 5)):
        recipe_values["output"] = output
        result = train(_recipe(recipe_values, pairs_file.parent, objective="in_batch", steps=4, **({"mini_batch": mini} if mini else {})))
        losses.append([entry.loss for entry in result.log.steps])
    assert np.allclose(losses[0], losses[1], atol=1e-5)


def test_training_stops_early_and_keeps_the_best(pairs_file: Path, recipe_values: dict[str, Any]) -> None:
    dev = {"path": "pairs.tsv", "label_range": [0, 5]}
    stage = {"epochs": 20, "learning_rate": 0.3, "evaluate_every": 1, "patience": 2, "dev": dev}
    result = train(_recipe(recipe_values, pairs_file.parent, **stage))
    assert len(result.log.steps) < 120
    assert result.scores["spearman_cosine"] == max(entry.score for entry in result.log.evaluations[1:])


def test_a_loss_that_is_no_number_stops_and_names_its_rows(pairs_file: Path, recipe_values: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=r"not a finite number.*pairs.tsv line \d+"):
        train(_recipe(recipe_values, pairs_file.parent, learning_rate=1e30, clip=0.0, warmup=0.0))


def test_a_resume_with_another_recipe_is_refused_with_the_difference(pairs_file: Path, recipe_values: dict[str, Any]) -> None:
    train(_recipe(recipe_values, pairs_file.parent, steps=2))
    with pytest.raises(UsageError, match=r"learning_rate: was '0.001', is '0.002'"):
        train(_recipe(recipe_values, pairs_file.parent, learning_rate=2e-3), resume=True)


def test_a_folder_that_is_not_empty_is_not_overwritten(pairs_file: Path, recipe_values: dict[str, Any]) -> None:
    (pairs_file.parent / "out").mkdir()
    (pairs_file.parent / "out" / "mine.txt").write_text("keep")
    with pytest.raises(UsageError, match="not empty"):
        train(_recipe(recipe_values, pairs_file.parent))
    assert (pairs_file.parent / "out" / "mine.txt").read_text() == "keep"


def test_labels_that_do_not_fit_the_objective_are_refused(pairs_file: Path, recipe_values: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="labels are of kind 'score'"):
        train(_recipe(recipe_values, pairs_file.parent, objective="classification", settings={}))


def test_progress_hears_of_every_step(pairs_file: Path, recipe_values: dict[str, Any]) -> None:
    heard: list[StepNews] = []

    class Listener:
        def show_message(self, line: str) -> None:
            pass

        def step(self, news: StepNews) -> None:
            heard.append(news)

    train(_recipe(recipe_values, pairs_file.parent, steps=3), progress=Listener())
    assert [news.step for news in heard] == [1, 2, 3]
    assert heard[-1].seconds_left == 0


def test_the_package_imports_without_torch() -> None:
    import subprocess

    code = (
        "import sys; sys.modules['torch'] = None\n"
        "import munjang.train as t\nfrom munjang.errors import MissingExtra\n"
        "try:\n    t.train('x.toml')\nexcept MissingExtra as e:\n    print(e.extra)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "train"
