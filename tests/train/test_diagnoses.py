"""What is wrong with a training is seen in its log, and nothing is said of a healthy one. Some of these really train."""

from __future__ import annotations

import json
import math
import random
from pathlib import Path
from typing import Any

import pytest
from tests.report.visible import english_words, visible
from tests.train.conftest import sentence_pairs

from munjang.train import train
from munjang.train.diagnoses import (
    LEAST_STEPS,
    Diagnosis,
    Guessing,
    describe_classes,
    describe_scores,
    diagnose,
    diagnose_answers,
    diagnose_dev,
    diagnose_loss,
    find_guessing_loss,
)
from munjang.train.log import Answers, DevEntry, StepEntry, TrainingLog
from munjang.train.progress import StepNews
from munjang.train.recipe import make_recipe
from munjang.train.report import Spread, make_report
from munjang.train.save_and_report import TrainResult

LN3 = Guessing(math.log(3), formula=" = ln 3")
LABELS = [0.0, 0.25, 0.5, 0.75, 1.0] * 20


def evaluations(*scores: float, rows: int = 1_500, first: int = 0) -> list[DevEntry]:
    answers = Answers("score", rows, 0.2, 0.3, "0.5")
    return [DevEntry(0, first + 100 * number, "spearman", score, {}, answers) for number, score in enumerate(scores)]


def test_scores_that_hardly_differ_while_the_labels_do_are_one_answer() -> None:
    found = diagnose_answers(describe_scores([0.5 + label / 1000 for label in LABELS], LABELS, kind="score"), 0)
    assert found is not None
    assert found.kind == "constant_score"
    assert "0.501" in str(found)
    assert "learning rate" in str(found)


@pytest.mark.parametrize(
    "answers",
    [
        describe_scores([0.45 + label / 10 for label in LABELS], LABELS, kind="score"),  # timid, but ordered
        describe_scores([0.93 + label / 50 for label in LABELS], LABELS, kind="cosine"),  # as near as a plain BERT's cosines
        describe_scores([0.5] * 100, [1.0] * 100, kind="score"),  # the labels do not differ either
        describe_scores([0.5] * 8, LABELS[:8], kind="score"),  # too few rows to tell
        describe_classes(["a"] * 98 + ["b"] * 2, ["a"] * 50 + ["b"] * 50),
        describe_classes(["a"] * 100, ["a"] * 97 + ["b"] * 3),  # rightly nearly all of one class
    ],
)
def test_answers_that_differ_or_need_not_are_fine(answers: Answers) -> None:
    assert diagnose_answers(answers, 0) is None


def test_one_class_for_all_rows_is_one_answer() -> None:
    found = diagnose_answers(describe_classes(["neutral"] * 100, ["neutral", "yes", "no", "no"] * 25), 0)
    assert found is not None
    assert found.kind == "constant_class"
    assert "100.0% of the pairs get the same answer, neutral, which is right for 25.0% of them" in str(found)


@pytest.mark.parametrize(
    ("losses", "is_wrong"),
    [
        ([1.1] * 40, True),
        ([1.1 + 0.02 * (-1) ** step for step in range(40)], True),
        ([1.1, 1.6, 2.5, 1.9] * 10, True),  # worse than guessing
        ([1.1 - step * 0.005 for step in range(40)], False),  # 8 % below at the end
        ([1.1] * 20 + [0.9] * 20, False),  # late, but learnt
        ([1.1] * (LEAST_STEPS - 1), False),  # too short to tell
    ],
)
def test_a_loss_is_judged_by_its_second_half(losses: list[float], is_wrong: bool) -> None:
    found = diagnose_loss(losses, LN3, 0)
    assert (found is not None) == is_wrong
    assert found is None or "1.099 = ln 3" in str(found)


def test_soft_labels_have_their_own_lowest_loss() -> None:
    # labels near one half: guessing 0.693, the best there can be 0.673
    assert diagnose_loss([0.680] * 40, Guessing(0.693, 0.673), 0) is None
    assert diagnose_loss([0.693] * 40, Guessing(0.693, 0.673), 0) is not None
    assert diagnose_loss([0.3] * 40, Guessing(0.3, 0.3), 0) is None
    assert diagnose_loss([0.3] * 40, None, 0) is None


@pytest.mark.parametrize(
    ("entries", "is_wrong"),
    [
        (evaluations(0.80, 0.78, 0.75, 0.70), True),  # steadily
        (evaluations(0.80, 0.60, 0.65, 0.62), True),  # clearly, though not steadily
        (evaluations(0.80, 0.70), True),  # one evaluation, against the model as it came
        (evaluations(0.10, 0.80, 0.75, 0.72, 0.70), True),  # from the first evaluation on
        (evaluations(0.80, 0.79, 0.805, 0.79), False),
        (evaluations(0.80, 0.79, 0.79, 0.785), False),  # within the noise of the file
        (evaluations(0.80, 0.77, 0.76, 0.75, rows=60), False),  # a small file is noisier
        (evaluations(0.80, 0.75, 0.78, 0.82), False),  # recovers
        (evaluations(0.10, 0.80, 0.75), False),  # may still rise
        (evaluations(0.10, 0.70, 0.80, 0.78), False),
        (evaluations(0.8), False),
        ([], False),
    ],
)
def test_a_dev_score_must_fall_steadily_or_clearly(entries: list[DevEntry], is_wrong: bool) -> None:
    found = diagnose_dev(entries, 0)
    assert (found is not None) == is_wrong


def test_on_the_way_two_constant_evaluations_are_waited_for_and_later_for_the_rest() -> None:
    constant, varied = Answers("score", 100, 0.0001, 0.3, "0.5"), Answers("score", 100, 0.2, 0.3, "0.5")

    def kinds(*answers: Answers, done: float) -> list[str]:
        entries = [DevEntry(0, 10 * number, "spearman", 0.5 - number / 10, {}, each) for number, each in enumerate((varied, *answers))]
        log = TrainingLog([StepEntry(0, step, 1.1, 0.0) for step in range(1, 41)], entries)
        return [found.kind for found in diagnose(log, 0, guessing=LN3, done=done)]

    assert kinds(constant, done=0.2) == []
    assert kinds(constant, constant, done=0.4) == ["constant_score"]
    assert kinds(constant, varied, done=0.4) == []
    assert kinds(constant, constant, done=0.5) == ["constant_score", "falling_dev"]
    assert kinds(constant, constant, done=0.75) == ["constant_score", "guessing", "falling_dev"]
    assert kinds(varied, constant, done=1.0) == ["constant_score", "guessing", "falling_dev"]
    assert kinds(constant, varied, done=1.0) == ["guessing", "falling_dev"]


class Heard:
    """Keeps the remarks of a training."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def show_message(self, line: str) -> None:
        self.lines.append(line)

    def step(self, news: StepNews) -> None:
        """Steps are not looked at."""


def warned(result: TrainResult, heard: Heard) -> list[str]:
    """Return what was diagnosed, having checked that log, JSON, report and card say it, each once."""
    said = [line for line in heard.lines if line.startswith("warning: ")]
    for found in result.diagnoses:
        assert sum(str(found) in line or found.to_json()["advice"] in line for line in said) == 1
    made = json.loads(json.dumps(result.to_json(), allow_nan=False))
    assert [entry["kind"] for entry in made["diagnoses"]] == [found.kind for found in result.diagnoses]
    page = (result.output / "report.html").read_text(encoding="utf-8")
    assert page.count('class="warning"') == len(result.diagnoses)
    card = (result.output / "README.md").read_text(encoding="utf-8")
    assert sum(line.startswith("> ") for line in card.splitlines()) == len(result.diagnoses)
    return [found.kind for found in result.diagnoses]


def write_rows(path: Path, rows: list[dict[str, Any]]) -> dict[str, Any]:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return {"path": path.name, "texts": ["a", "b"], "label": "label"}


def run(values: dict[str, Any], folder: Path, **stage: Any) -> tuple[TrainResult, Heard]:
    values["stage"][0] = {**values["stage"][0], **stage}
    heard = Heard()
    return train(make_recipe(values, folder=folder), progress=heard), heard


@pytest.fixture
def cross_values(recipe_values: dict[str, Any]) -> dict[str, Any]:
    del recipe_values["stage"][0]["objective"]
    return {"kind": "cross", **recipe_values}


def test_constant_labels_teach_a_cross_encoder_one_answer(cross_values: dict[str, Any], tmp_path: Path) -> None:
    pairs = sentence_pairs(96)
    data = write_rows(tmp_path / "train.jsonl", [{"a": a, "b": b, "label": 1.0} for a, b, _ in pairs])
    dev = write_rows(tmp_path / "dev.jsonl", [{"a": a, "b": b, "label": score / 5} for a, b, score in pairs])
    options = {"epochs": 8, "learning_rate": 3e-3, "objective": "mse", "evaluate_every": 8}
    result, heard = run(cross_values, tmp_path, data=[{**data, "label_range": [0, 1]}], dev={**dev, "label_range": [0, 1]}, **options)
    assert "constant_score" in warned(result, heard)


def test_random_labels_leave_the_loss_at_the_logarithm_of_the_classes(cross_values: dict[str, Any], tmp_path: Path) -> None:
    chance = random.Random(5)
    rows = [{"a": a, "b": b, "label": chance.choice(("yes", "no", "maybe"))} for a, b, _ in sentence_pairs(192)]
    result, heard = run(cross_values, tmp_path, data=[write_rows(tmp_path / "nli.jsonl", rows)], learning_rate=1e-4)
    kinds = warned(result, heard)
    assert "guessing" in kinds
    assert "≈ ln 3" in str(result.warning)


def test_an_absurd_learning_rate_is_said_of_a_cross_encoder(cross_values: dict[str, Any], tmp_path: Path) -> None:
    rows = [{"a": a, "b": f"{('no', 'yes')[n % 2]} {b}", "label": ("x", "y")[n % 2]} for n, (a, b, _) in enumerate(sentence_pairs(96))]
    data = write_rows(tmp_path / "same.jsonl", rows)
    result, heard = run(cross_values, tmp_path, data=[data], dev=data, epochs=6, learning_rate=3.0, evaluate_every=6)
    assert {"constant_class", "guessing"} <= set(warned(result, heard))


def test_scores_all_alike_on_the_dev_file_count_as_no_correlation(cross_values: dict[str, Any], pairs_file: Path) -> None:
    source = {"path": "pairs.tsv", "label_range": [0, 5]}
    result, heard = run(cross_values, pairs_file.parent, data=[source], dev=source, epochs=6, learning_rate=30.0, evaluate_every=6)
    assert "constant_score" in warned(result, heard)
    assert all(math.isfinite(entry.score) for entry in result.log.evaluations)


def test_an_absurd_learning_rate_is_said_of_a_sentence_encoder(recipe_values: dict[str, Any], pairs_file: Path) -> None:
    source = {"path": "pairs.tsv", "label_range": [0, 5]}
    result, heard = run(recipe_values, pairs_file.parent, dev=source, epochs=4, learning_rate=3.0, evaluate_every=4)
    assert set(warned(result, heard)) & {"collapsed", "constant_score", "falling_dev"}


def test_a_healthy_training_is_not_warned_of(cross_values: dict[str, Any], tmp_path: Path) -> None:
    ends = ("maybe", "yes", "no")
    rows = [{"a": a, "b": f"{ends[n % 3]} {b}", "label": ends[n % 3]} for n, (a, b, _) in enumerate(sentence_pairs(96))]
    data = write_rows(tmp_path / "nli.jsonl", rows)
    result, heard = run(cross_values, tmp_path, data=[data], dev=data, epochs=10, learning_rate=3e-3, evaluate_every=15)
    assert warned(result, heard) == []
    assert not [line for line in heard.lines if line.startswith("warning: ")]
    assert result.scores["accuracy"] > 0.9


def test_what_guessing_costs_follows_from_objective_and_labels(recipe_values: dict[str, Any], pairs_file: Path) -> None:
    from munjang.train.build import build_encoder
    from munjang.train.sentence_task import prepare_stage

    folder = pairs_file.parent
    classes = write_rows(folder / "nli.jsonl", [{"a": a, "b": b, "label": "yn"[n % 2]} for n, (a, b, _) in enumerate(sentence_pairs(64))])

    def guessing(**stage: Any) -> Guessing | None:
        values = json.loads(json.dumps(recipe_values))
        values["stage"][0] |= stage
        recipe = make_recipe(values, folder=folder)
        return find_guessing_loss(prepare_stage(recipe.stages[0], build_encoder(recipe), number=0, seed=7))

    found = guessing(objective="classification", data=[classes])
    assert found is not None
    assert (found.loss, found.formula) == (pytest.approx(math.log(2)), " = ln 2")
    texts = {"path": "pairs.tsv", "texts": ["sentence1", "sentence2"]}
    found = guessing(objective="in_batch", data=[texts], batch_size=16)
    assert found is not None
    assert found.loss == pytest.approx(math.log(16), abs=0.1)  # the last batch may be smaller
    assert guessing() is None  # cosines against scores: no answer is the constant one


@pytest.mark.parametrize(
    "found",
    [
        Diagnosis("constant_score", 0, {"answer": "0.512", "spread": 0.001, "labels": 0.3}),
        Diagnosis("constant_class", 0, {"share": 1.0, "answer": "중립", "right": 0.33}),
        Diagnosis("guessing", 0, {"loss": 1.1, "chance": 1.0986, "formula": " = ln 3"}),
        Diagnosis("collapsed", 0, {"cosine": 0.97}),
        diagnose_dev(evaluations(0.8, 0.7, 0.6), 0),
        diagnose_dev(evaluations(0.5, 0.8, 0.7, 0.6, 0.5), 0),
    ],
    ids=lambda found: found.kind,
)
def test_a_korean_report_says_it_in_korean(found: Diagnosis) -> None:
    page = make_report(TrainingLog(), Spread((), (), ()), title="보고서", messages=[], facts=[], diagnoses=[found], language="ko")
    assert english_words(page, frozenset({"munjang", "lint", "ln", "spearman"})) == []
    assert found.to_text("ko") in visible(page)
    assert str(found) == found.to_text("en")
