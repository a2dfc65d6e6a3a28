"""Distillation through the trainer: laws of the loss, dimensions, resuming, mixed stages."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.conftest import Dense

from munjang.errors import InputError, UsageError
from munjang.models.sentence_encoder import SentenceEncoder
from munjang.train import train
from munjang.train.distill.run import run_distillation
from munjang.train.durable import hash_file
from munjang.train.examples import DataSource, TeacherRecipe
from munjang.train.recipe import ModelRecipe, make_recipe
from munjang.train.stage_run import Stepper


def _values(folder: Path, output: str, **changes: Any) -> dict[str, Any]:
    stage = {
        "teacher": {"model": str(folder)},
        "epochs": 1,
        "batch_size": 8,
        "learning_rate": 1e-3,
        "data": [{"path": "parallel.tsv", "kind": "parallel", "where": ["split=train"]}],
    }
    return {"output": output, "seed": 3, "checkpoint_every": 4, "model": {"base": str(folder), "dropout": 0.0}, "stage": [stage | changes]}


def _interrupted(values: dict[str, Any], folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Train, and be stopped by Ctrl-C in the seventh step; test_resume.py has kill -9."""

    def stopping(self: Stepper, step: int, real: Any = Stepper.run) -> Any:
        if step == 6:
            raise KeyboardInterrupt
        return real(self, step)

    with monkeypatch.context() as patched:
        patched.setattr(Stepper, "run", stopping)
        with pytest.raises(KeyboardInterrupt):
            train(make_recipe(values, folder=folder))


def _plain(path: Path, columns: tuple[str, ...]) -> DataSource:
    return DataSource(str(path), "plain", texts=columns)


def test_a_student_that_is_the_teacher_has_nothing_to_learn(tiny_bert_folder: Path, parallel_file: Path) -> None:
    data = [{"path": "parallel.tsv", "kind": "plain", "texts": ["en", "ko"]}]
    values = _values(tiny_bert_folder, "same", data=data, learning_rate=1e-6)
    losses = [entry.loss for entry in train(make_recipe(values, folder=parallel_file.parent)).log.steps]
    assert losses[0] < 1e-10
    assert max(losses) < 1e-7  # Adam makes steps of one size, out of rounding noise too


def test_translations_move_to_the_teachers_vector_of_the_source(tiny_bert_folder: Path, parallel_file: Path) -> None:
    pairs = DataSource(str(parallel_file), "parallel", texts=("en", "ko"), where=("split=train",))
    held = DataSource(str(parallel_file), "parallel", texts=("en", "ko"), where=("split=dev", "source!=other"))
    scored = parallel_file.parent / "scored.tsv"
    scored.write_text("sentence1\tsentence2\tscore\nthe cat\ta cat\t1\nthe cat\tthe river\t0.2\nrain\tsnow\t0.5\n", encoding="utf-8")
    result = run_distillation(
        teacher=TeacherRecipe(str(tiny_bert_folder)),
        student=ModelRecipe(str(tiny_bert_folder), dropout=0.0, prompts=False),
        output=str(parallel_file.parent / "student"),
        data=(pairs,),
        dev_sts=(DataSource(str(scored)),),
        dev_parallel=held,
        stage={"epochs": 6, "batch_size": 8, "learning_rate": 2e-3},
    )
    measures = {one.name: one for one in result.measures}
    moved = measures["MSE, translation, parallel.tsv"]
    assert moved.after < 0.5 * moved.before
    assert measures["MSE, source, parallel.tsv"].before < 1e-9
    assert sum(name.startswith("accuracy") for name in measures) == 2
    assert "Spearman, scored.tsv" in measures
    written = json.loads((parallel_file.parent / "student" / "distillation.json").read_text(encoding="utf-8"))
    assert written == json.loads(json.dumps(result.to_json()))
    assert written["steps"] == 60


def test_the_loss_follows_the_formula(tiny_bert_folder: Path, tiny_folder: Callable[..., Path], parallel_file: Path) -> None:
    student = tiny_folder("bert", pooling=("cls",))
    values = _values(tiny_bert_folder, "formula", batch_size=80, steps=1)
    values["model"]["base"] = str(student)
    loss = train(make_recipe(values, folder=parallel_file.parent)).log.steps[0].loss
    rows = [line.split("\t") for line in parallel_file.read_text(encoding="utf-8").splitlines()[1:81]]
    teacher, learner = SentenceEncoder.load(tiny_bert_folder), SentenceEncoder.load(student)
    taught = teacher.encode([row[2] for row in rows])
    distances = [np.square(taught - learner.encode([row[column] for row in rows])).sum(axis=1).mean() for column in (2, 3)]
    assert loss == pytest.approx(np.mean(distances), rel=1e-4)


def test_a_wider_teacher_is_projected_to_the_students_dimension(
    tiny_bert_folder: Path, tiny_folder: Callable[..., Path], parallel_file: Path
) -> None:
    wide = tiny_folder("bert", modules=(Dense(48), "normalize"))
    values = _values(wide, "narrow", epochs=4)
    values["model"]["base"] = str(tiny_bert_folder)
    result = train(make_recipe(values, folder=parallel_file.parent))
    assert SentenceEncoder.load(result.output).dimension == 32
    assert any("48 dimensions projected to 32 (PCA)" in line for line in result.messages)
    assert result.log.steps[-1].loss < 0.7 * result.log.steps[0].loss


@pytest.mark.parametrize(("width", "projection", "expected"), [(48, "pca", 32), (48, "dense", 48), (16, "pca", 16)])
def test_dimensions_that_differ_are_brought_together(
    width: int, projection: Any, expected: int, tiny_bert_folder: Path, tiny_folder: Callable[..., Path], parallel_file: Path
) -> None:
    other = tiny_folder("bert", modules=(Dense(width), "normalize"))
    result = run_distillation(
        teacher=TeacherRecipe(str(other)),
        student=ModelRecipe(str(tiny_bert_folder), dropout=0.0, prompts=False),
        projection=projection,
        output=str(parallel_file.parent / "student"),
        data=(_plain(parallel_file, ("en",)),),
        stage={"steps": 2, "batch_size": 8},
    )
    student = SentenceEncoder.load(result.training.output)
    assert student.dimension == expected
    assert student.normalized
    assert [one.name for one in result.measures] == ["MSE, text, 96 rows of parallel.tsv"]


def test_a_narrower_teacher_of_a_recipe_asks_for_a_dense_layer(
    tiny_bert_folder: Path, tiny_folder: Callable[..., Path], parallel_file: Path
) -> None:
    values = _values(tiny_folder("bert", modules=(Dense(16), "normalize")), "refused")
    values["model"]["base"] = str(tiny_bert_folder)
    with pytest.raises(InputError, match="dense = 16"):
        train(make_recipe(values, folder=parallel_file.parent))
    assert not (parallel_file.parent / "refused").exists()


def test_a_teacher_that_does_not_normalise_is_compared_in_the_students_space(
    tiny_bert_folder: Path, tiny_folder: Callable[..., Path], parallel_file: Path
) -> None:
    data = [{"path": "parallel.tsv", "kind": "plain", "texts": ["en"]}]
    values = _values(tiny_folder("bert", modules=()), "unit", data=data, learning_rate=1e-6)
    values["model"]["base"] = str(tiny_bert_folder)  # the same weights, normalised
    assert train(make_recipe(values, folder=parallel_file.parent)).log.steps[0].loss < 1e-10


def test_interrupted_and_resumed_it_ends_the_same_and_asks_the_teacher_once(
    tiny_bert_folder: Path, tiny_folder: Callable[..., Path], parallel_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = parallel_file.parent
    wide = tiny_folder("bert", modules=(Dense(48), "normalize"))

    def values(output: str) -> dict[str, Any]:
        made = _values(wide, output, epochs=2)
        made["model"]["base"] = str(tiny_bert_folder)
        return made

    train(make_recipe(values("whole"), folder=folder))
    _interrupted(values("broken"), folder, monkeypatch)
    kept = sorted((folder / "broken/training/teacher").glob("*.npy"))
    times = [path.stat().st_mtime_ns for path in kept]
    assert len(kept) == 2  # the vectors and the directions of the projection
    train(make_recipe(values("broken"), folder=folder), resume=True)
    for name in ("model.safetensors", "training/log.jsonl"):
        assert hash_file(folder / "whole" / name) == hash_file(folder / "broken" / name), name
    assert [path.stat().st_mtime_ns for path in kept] == times


def test_a_resume_with_another_teacher_in_the_same_folder_is_refused(
    tiny_bert_folder: Path, tiny_folder: Callable[..., Path], parallel_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = parallel_file.parent
    shutil.copytree(tiny_bert_folder, folder / "teacher")
    values = _values(folder / "teacher", "broken", epochs=2)
    _interrupted(values, folder, monkeypatch)
    shutil.rmtree(folder / "teacher")
    shutil.copytree(tiny_folder("bert", pooling=("cls",)), folder / "teacher")
    with pytest.raises(UsageError, match="data files are not those"):
        train(make_recipe(values, folder=folder), resume=True)


def test_a_stage_mixes_distillation_with_another_objective(tiny_bert_folder: Path, parallel_file: Path) -> None:
    data = [
        {"path": "parallel.tsv", "kind": "parallel"},
        {"path": "parallel.tsv", "kind": "plain", "texts": ["en"]},
        {"path": "parallel.tsv", "kind": "parallel", "objective": "in_batch", "where": ["split=train"]},
    ]
    result = train(make_recipe(_values(tiny_bert_folder, "mixed", data=data), folder=parallel_file.parent))
    assert len(result.log.steps) == 12 + 12 + 10
    assert sum("distillation: squared distance" in line for line in result.messages) == 2


def test_each_file_learns_the_vectors_of_its_own_teacher(
    tiny_bert_folder: Path, tiny_folder: Callable[..., Path], parallel_file: Path
) -> None:
    # of its own vectors the student has nothing to learn, of the other teacher's it has
    other = {"model": str(tiny_folder("bert", pooling=("cls",)))}
    data = [
        {"path": "parallel.tsv", "kind": "plain", "texts": ["en"]},
        {"path": "parallel.tsv", "kind": "plain", "texts": ["en"], "teacher": other},
    ]
    recipe = make_recipe(_values(tiny_bert_folder, "two", data=data, learning_rate=1e-7), folder=parallel_file.parent)
    result = train(recipe)
    losses = sorted(entry.loss for entry in result.log.steps)
    assert len(losses) == 24
    assert max(losses[:12]) < 1e-4 < 1e-3 < min(losses[12:])
    assert "teacher" not in recipe.to_json()["stages"][0]["data"][0]  # so that trainings begun before can be resumed


@pytest.mark.parametrize("columns", [["en", "ko"], ["ko"]])
def test_scores_are_learnt_from_a_teacher_of_another_space(
    tiny_bert_folder: Path, tiny_folder: Callable[..., Path], parallel_file: Path, columns: list[str]
) -> None:
    # of its own scores the student has nothing to learn, of a teacher with other vectors it has, in every column
    kind = "parallel" if len(columns) == 2 else "plain"
    data = [{"path": "parallel.tsv", "kind": kind, "texts": columns, "objective": "score_distillation"}]

    def losses(teacher: Path, name: str) -> list[float]:
        values = _values(tiny_bert_folder, name, data=data, learning_rate=1e-7, teacher=str(teacher))
        return [entry.loss for entry in train(make_recipe(values, folder=parallel_file.parent)).log.steps]

    assert max(losses(tiny_bert_folder, "own")) < 1e-5
    assert min(losses(tiny_folder("bert", pooling=("cls",)), "other")) > 1e-4


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"teacher": None, "objective": "distillation"}, "the stage has none"),
        ({"objective": "in_batch"}, "no objective of its data learns from one"),
        (
            {"data": [{"path": "parallel.tsv", "kind": "parallel", "objective": "in_batch", "teacher": "x"}]},
            "its objective does not learn from one",
        ),
        ({"teacher": {"modell": "x"}}, "did you mean model"),
        ({"teacher": {"model": "x", "prompts": "y"}}, "did you mean prompt"),
    ],
    ids=["no-teacher", "idle-teacher", "idle-teacher-of-a-file", "no-model", "unknown-key"],
)
def test_a_stage_whose_teacher_makes_no_sense_is_refused(
    changes: dict[str, Any], message: str, tiny_bert_folder: Path, parallel_file: Path
) -> None:
    with pytest.raises((InputError, UsageError), match=message):
        train(make_recipe(_values(tiny_bert_folder, "refused", **changes), folder=parallel_file.parent))


def test_half_the_layers_of_the_teacher_make_a_student(tiny_bert_folder: Path, parallel_file: Path) -> None:
    values = _values(tiny_bert_folder, "half", epochs=3)
    values["model"]["layers"] = [1]
    result = train(make_recipe(values, folder=parallel_file.parent))
    config = json.loads((result.output / "config.json").read_text(encoding="utf-8"))
    assert config["num_hidden_layers"] == 1
    assert np.isfinite(SentenceEncoder.load(result.output).encode("the cat")).all()
    values["output"], values["model"]["layers"] = "refused", [1, 0]
    with pytest.raises(UsageError, match="expected numbers from 0 to"):
        train(make_recipe(values, folder=parallel_file.parent))


def test_a_student_can_forget_the_prompts_of_its_base(tiny_folder: Callable[..., Path], parallel_file: Path) -> None:
    base = tiny_folder("bert", settings=json.dumps({"prompts": {"query": "query: "}}))
    for wanted in (True, False):
        values = _values(base, f"prompts-{wanted}", steps=1)
        values["model"]["prompts"] = wanted
        result = train(make_recipe(values, folder=parallel_file.parent))
        assert bool(SentenceEncoder.load(result.output).prompts.get("query")) == wanted
