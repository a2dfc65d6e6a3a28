"""The dev score: each kind of file gives the number that `munjang evaluate` gives, and a model gone wrong is said to be so."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from munjang.errors import InputError
from munjang.evaluate.pairs import score_pair_vectors
from munjang.evaluate.sts import score_sts
from munjang.evaluate.translation import score_translation
from munjang.evaluate.triplets import score_triplets
from munjang.models.sentence_encoder import SentenceEncoder
from munjang.train import train
from munjang.train.checkpoint import Checkpoints
from munjang.train.dev import Classifier, list_classifiers, read_cross_dev, read_dev
from munjang.train.durable import hash_file
from munjang.train.examples import DataSource
from munjang.train.loop import Trainer
from munjang.train.progress import Silent
from munjang.train.recipe import make_recipe
from munjang.types import Vectors

ROWS = [("the rain", "비가 온다", "a cat"), ("a dog", "the dog was", "winter"), ("coffee", "a book", "river"), ("snow", "눈이 온다", "sun")]
A, B, C = ([row[at] for row in ROWS] for at in range(3))
LABELS = [1, 0, 0, 1]


class Broken:
    """An encoder, and a scorer, whose numbers are gone."""

    name, fingerprint, dimension, max_length = "broken", "0", 4, 8

    def encode(self, texts: Iterable[str], /) -> Vectors:
        return np.full((len(list(texts)), self.dimension), np.nan, np.float32)

    def predict(self, pairs: Iterable[tuple[str, str]], /) -> Vectors:
        return np.full(len(list(pairs)), np.nan, np.float32)


def source(folder: Path, header: str, rows: list[tuple[object, ...]], **options: object) -> DataSource:
    path = folder / "dev.tsv"
    path.write_text("\n".join([header, *("\t".join(map(str, row)) for row in rows)]) + "\n", encoding="utf-8")
    return DataSource(str(path), **options)  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", ["scored", "labelled", "triplets", "pairs"])
def test_a_file_gives_the_number_of_its_kind(kind: str, tiny_bert_folder: Path, tmp_path: Path) -> None:
    model = SentenceEncoder.load(tiny_bert_folder)
    a, b, c = (model.encode(column) for column in (A, B, C))
    scores = [0.9, 0.1, 0.4, 0.6]
    if kind == "scored":
        given = source(tmp_path, "sentence1\tsentence2\tscore", list(zip(A, B, scores, strict=True)), label_range=(0.0, 1.0))
        expected = "spearman_cosine", score_sts(a, b, scores, resamples=0, worst=0).scores["spearman_cosine"]
    elif kind == "labelled":
        given = source(tmp_path, "sentence1\tsentence2\tlabel", list(zip(A, B, LABELS, strict=True)))
        expected = "cosine_ap", score_pair_vectors(a, b, LABELS, resamples=0).scores["cosine_ap"]
    elif kind == "triplets":
        given = source(tmp_path, "anchor\tpositive\tnegative", ROWS)
        expected = "cosine_accuracy", score_triplets(a, b, c, resamples=0).scores["cosine_accuracy"]
    else:
        given = source(tmp_path, "sentence1\tsentence2", list(zip(A, B, strict=True)), kind="pairs")
        expected = "mean_accuracy", score_translation(a, b, resamples=0).mean_accuracy
    name, found, _ = read_dev(given, seed=1).score(model)
    assert (name, found[name]) == (expected[0], pytest.approx(expected[1], abs=1e-6))


def test_a_model_whose_numbers_are_gone_is_refused_with_advice(tmp_path: Path) -> None:
    given = source(tmp_path, "sentence1\tsentence2\tlabel", list(zip(A, B, LABELS, strict=True)))
    with pytest.raises(InputError, match="vectors that are not finite numbers\n  lower the learning rate; the last checkpoint is intact"):
        read_dev(given, seed=1).score(Broken())
    with pytest.raises(InputError, match="scores that are not finite numbers\n  lower the learning rate; the last checkpoint is intact"):
        read_cross_dev(given, seed=1, labels=("LABEL_0",)).score(Broken())  # type: ignore[arg-type]


@pytest.mark.parametrize("read", [read_dev, lambda given, seed: read_cross_dev(given, ("LABEL_0",), seed=seed)])
def test_a_file_whose_rows_all_have_one_label_is_refused(read: Any, tmp_path: Path) -> None:
    given = source(tmp_path, "sentence1\tsentence2\tscore", [(a, b, 0.5) for a, b in zip(A, B, strict=True)], label_range=(0.0, 1.0))
    with pytest.raises(InputError, match="every row of the dev file has the same label"):
        read(given, seed=1)


def test_a_model_that_gives_one_answer_scores_nothing_instead_of_no_number(tmp_path: Path) -> None:
    class Same(Broken):
        def encode(self, texts: Iterable[str], /) -> Vectors:
            return np.ones((len(list(texts)), self.dimension), np.float32)

        def predict(self, pairs: Iterable[tuple[str, str]], /) -> Vectors:
            return np.full(len(list(pairs)), 0.5, np.float32)

    given = source(tmp_path, "sentence1\tsentence2\tscore", list(zip(A, B, LABELS, strict=True)), label_range=(0.0, 1.0), kind="scored")
    assert read_dev(given, seed=1).score(Same()).scores["spearman_cosine"] == 0
    assert read_cross_dev(given, seed=1, labels=("LABEL_0",)).score(Same()).scores["spearman"] == 0  # type: ignore[arg-type]


NLI = {"path": "nli.jsonl", "texts": ["a", "b"], "label": "label"}
OTHER = {"path": "other.jsonl", "texts": ["a", "b"], "label": "label"}


@pytest.fixture
def folder(pairs_file: Path) -> Path:
    """Rows of three classes, and rows of which one has a class more."""
    rows = [line.split("\t") for line in pairs_file.read_text(encoding="utf-8").splitlines()[1:]]
    nli = [{"a": a, "b": b, "label": ("no", "maybe", "yes")[min(2, int(float(score) / 2))]} for a, b, score in rows]
    (pairs_file.parent / "nli.jsonl").write_text("\n".join(map(json.dumps, nli)), encoding="utf-8")
    (pairs_file.parent / "other.jsonl").write_text("\n".join(map(json.dumps, [*nli, nli[0] | {"label": "never"}])), encoding="utf-8")
    return pairs_file.parent


def _values(values: dict[str, Any], **stage: Any) -> dict[str, Any]:
    made = {"objective": "classification", "data": [NLI], "dev": NLI, "test": NLI, "evaluate_every": 5, "epochs": 8, "batch_size": 16}
    return values | {"stage": [made | {"learning_rate": 2e-3} | stage]}


def test_a_classifier_is_measured_by_accuracy_and_the_best_is_tested(folder: Path, recipe_values: dict[str, Any]) -> None:
    result = train(make_recipe(_values(recipe_values), folder=folder))
    assert result.metric == "accuracy"
    assert set(result.scores) == {"accuracy", "macro_f1"}
    best = max(result.log.evaluations[1:], key=lambda entry: entry.score)
    assert best.score > result.log.evaluations[0].score + 0.1
    # the test file is the dev file here, so encoder and head must both be those of the best step
    (tested,) = result.tests
    assert (tested.test, tested.metric, tested.step) == ("nli.jsonl", "accuracy", best.step)
    assert tested.scores == best.scores
    assert result.to_json()["tests"][0]["scores"] == best.scores
    card = (result.output / "README.md").read_text(encoding="utf-8")
    assert card.count("## Scores on nli.jsonl") == 2
    assert "Test score" in (result.output / "report.html").read_text(encoding="utf-8")
    last = json.loads((result.output / "training" / "log.jsonl").read_text(encoding="utf-8").splitlines()[-1])
    assert last["test"] == "nli.jsonl"


def test_the_accuracy_is_that_of_the_head_over_the_vectors(folder: Path, recipe_values: dict[str, Any]) -> None:
    values = _values(recipe_values, keep_best=False, steps=7, evaluate_every=3)
    outcome = Trainer(make_recipe(values, folder=folder), progress=Silent()).run()
    rows = outcome.stages[0].data[0].examples.examples
    head: Any = outcome.stages[0].objectives[0]
    vectors = torch.from_numpy(outcome.task.model.encode([text for row in rows for text in row.texts]))  # type: ignore[union-attr]
    u, v = vectors[0::2], vectors[1::2]
    logits = torch.cat([u, v, (u - v).abs()], dim=1) @ head.head.weight.T + head.head.bias
    right = (logits.argmax(dim=1) == torch.tensor([int(row.label or 0) for row in rows])).float().mean()
    assert outcome.log.finals[0].step == 7
    assert outcome.log.finals[0].scores["accuracy"] == pytest.approx(float(right))


def test_classes_are_matched_by_name_not_by_place() -> None:
    from munjang.train.objectives.registry import make_objective

    head: Any = make_objective("classification", {"parts": ["u"]}, dimension=2, num_labels=2)
    with torch.no_grad():
        head.head.weight.copy_(torch.eye(2))
        head.head.bias.zero_()
    vectors = torch.tensor([[1.0, 0.0], [0.0, 1.0]]).numpy()
    assert Classifier(head, ("yes", "no")).predict(vectors, vectors) == ["yes", "no"]


@pytest.mark.parametrize("role", ["dev", "test"])
def test_classes_that_the_stage_does_not_train_are_refused(folder: Path, recipe_values: dict[str, Any], role: str) -> None:
    with pytest.raises(InputError, match=f"a {role} file with the classes maybe, never, no .*trains one of maybe, no, yes"):
        train(make_recipe(_values(recipe_values, **{role: OTHER}), folder=folder))
    regression = {"objective": "regression", "data": [{"path": "pairs.tsv", "label_range": [0, 5]}], "dev": None, "test": None, role: NLI}
    with pytest.raises(InputError, match=f"a {role} file with the classes .* this stage trains none"):
        train(make_recipe(_values(recipe_values, **regression), folder=folder))
    assert not (folder / "out").exists()


def test_a_resumed_training_has_the_same_test_score(folder: Path, recipe_values: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    whole = train(make_recipe(_values(recipe_values | {"output": "whole"}), folder=folder))
    recipe = make_recipe(_values(recipe_values), folder=folder)
    loaded = Checkpoints.load_best

    def killed(self: Checkpoints, stage: int, step: int) -> dict[str, Tensor]:
        raise KeyboardInterrupt

    monkeypatch.setattr(Checkpoints, "load_best", killed)
    with pytest.raises(KeyboardInterrupt):  # all steps are done, the best weights are not back yet
        train(recipe)
    monkeypatch.setattr(Checkpoints, "load_best", loaded)
    resumed = train(recipe, resume=True)
    assert resumed.tests == whole.tests
    assert resumed.log == whole.log
    assert train(recipe, resume=True).tests == whole.tests  # finished already, not measured again
    assert hash_file(resumed.output / "model.safetensors") == hash_file(whole.output / "model.safetensors")


def test_a_second_stage_is_tested_by_its_own_file(folder: Path, recipe_values: dict[str, Any]) -> None:
    values = _values(recipe_values, steps=2, dev=None)
    scored = {"path": "pairs.tsv", "label_range": [0, 5]}
    values["stage"].append({"objective": "regression", "data": [scored], "test": scored, "steps": 2})
    result = train(make_recipe(values, folder=folder))
    assert [(entry.stage, entry.step, entry.metric) for entry in result.tests] == [(0, 2, "accuracy"), (1, 2, "spearman_cosine")]
    card = (result.output / "README.md").read_text(encoding="utf-8")
    assert "## Scores on pairs.tsv" in card
    assert "## Scores on nli.jsonl" not in card  # those weights are not in the folder


def test_a_cross_encoder_is_tested_with_the_weights_that_are_kept(folder: Path, recipe_values: dict[str, Any]) -> None:
    values = _values(recipe_values | {"kind": "cross"}, objective="cross_entropy", steps=12, evaluate_every=4)
    result = train(make_recipe(values, folder=folder))
    assert result.tests[0].scores == result.scores
    from munjang.evaluate.nli import choose_labels
    from munjang.models.cross_encoder import CrossEncoder

    rows = [json.loads(line) for line in (folder / "nli.jsonl").read_text(encoding="utf-8").splitlines()]
    model = CrossEncoder.load(result.output)
    found = choose_labels(model.predict([(row["a"], row["b"]) for row in rows]), model.labels)
    right = sum(name == row["label"] for name, row in zip(found, rows, strict=True))
    assert result.tests[0].scores["accuracy"] == pytest.approx(right / len(rows))


def test_a_stage_without_classes_has_no_classifier(folder: Path, recipe_values: dict[str, Any]) -> None:
    outcome = Trainer(make_recipe(recipe_values, folder=folder), progress=Silent()).run()
    assert list_classifiers(outcome.stages[0]) == ()
