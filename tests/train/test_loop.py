"""Whose a training's output is: new, resumed, moved, half claimed by a killed process, or somebody else's."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from munjang.errors import DamagedFile, UsageError
from munjang.train import train
from munjang.train.loop import claim_output, release_output
from munjang.train.processes import Processes
from munjang.train.recipe import Recipe, make_recipe
from munjang.train.stage_run import Stepper

pytest.importorskip("torch", reason="the extra train is not installed")


def recipe_in(folder: Path, **more: object) -> Recipe:
    stage = {"objective": "regression", "steps": 1, "data": [{"path": "pairs.tsv", "label_range": [0, 5]}]}
    sizes = {"vocabulary": 60, "layers": 1, "width": 8, "heads": 1, "inner": 8, "positions": 16}
    return make_recipe({"output": "out", "model": {"scratch": sizes}, "stage": [stage], **more}, folder=folder)


def claimed(folder: Path, *, resume: bool, **more: object) -> bool:
    return claim_output(recipe_in(folder, **more), folder / "out/training", processes=Processes(), resume=resume)


@pytest.mark.parametrize("resume", [False, True])
@pytest.mark.parametrize("left", [(), ("training/",), ("training/", "training/.partial-recipe.json-17")])
def test_what_a_kill_while_claiming_left_is_not_in_the_way(tmp_path: Path, left: tuple[str, ...], resume: bool) -> None:
    (tmp_path / "out").mkdir()
    for name in left:
        path = tmp_path / "out" / name
        path.mkdir() if name.endswith("/") else path.write_text("{half")
    assert claimed(tmp_path, resume=resume)
    assert [path.name for path in (tmp_path / "out/training").iterdir()] == ["recipe.json"]


@pytest.mark.parametrize("name", ["notes.txt", "training/notes.txt", ".partial-mine"])
def test_files_of_others_are_never_taken(tmp_path: Path, name: str) -> None:
    (tmp_path / "out/training").mkdir(parents=True)
    (tmp_path / "out" / name).write_text("mine")
    for resume in (False, True):
        with pytest.raises(UsageError, match=r"is there already and not empty\n  name another output"):
            claimed(tmp_path, resume=resume)
    assert (tmp_path / "out" / name).read_text() == "mine"


def test_a_claimed_output_is_gone_on_with_only_when_asked_and_by_the_same_recipe(tmp_path: Path) -> None:
    assert claimed(tmp_path, resume=True)
    assert not claimed(tmp_path, resume=True)
    with pytest.raises(UsageError, match="use --resume to go on with it"):
        claimed(tmp_path, resume=False)
    with pytest.raises(UsageError, match="was started with another recipe"):
        claimed(tmp_path, resume=True, seed=9)


def test_a_training_that_was_moved_goes_on(tmp_path: Path) -> None:
    claim_output(recipe_in(tmp_path), tmp_path / "out/training", processes=Processes(), resume=False)
    shutil.move(tmp_path / "out", tmp_path / "elsewhere")
    moved = recipe_in(tmp_path, output="elsewhere")
    assert not claim_output(moved, tmp_path / "elsewhere/training", processes=Processes(), resume=True)


@pytest.mark.parametrize("content", ["{half", "[1, 2]", "7"])
def test_a_damaged_recipe_is_named(tmp_path: Path, content: str) -> None:
    claimed(tmp_path, resume=False)
    (tmp_path / "out/training/recipe.json").write_text(content)
    with pytest.raises(DamagedFile, match=r"recipe\.json: is not a JSON object"):
        claimed(tmp_path, resume=True)


def test_an_output_is_given_back_as_it_was_found(tmp_path: Path) -> None:
    claimed(tmp_path, resume=False)
    folder = tmp_path / "out/training"
    (folder / "checkpoints").mkdir()
    (folder / "tokenizer.json").write_text(json.dumps({}))
    release_output(tmp_path / "out", folder)
    assert not (tmp_path / "out").exists()
    (tmp_path / "out/training").mkdir(parents=True)
    (tmp_path / "out/mine").write_text("mine")
    release_output(tmp_path / "out", folder)
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["mine"]


@pytest.mark.parametrize("error", [IndexError("index out of range"), KeyboardInterrupt()])
def test_a_training_that_fails_in_any_way_before_its_first_checkpoint_leaves_nothing(
    pairs_file: Path, recipe_values: dict[str, object], monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    def failing(*_: object) -> None:
        raise error

    monkeypatch.setattr(Stepper, "run", failing)
    recipe = make_recipe(recipe_values, folder=pairs_file.parent)
    with pytest.raises(type(error)):
        train(recipe)
    assert not Path(recipe.output).exists()


@pytest.mark.parametrize("seed", [-1, 2**32, 99999999999999999999999])
def test_a_seed_that_no_generator_takes_is_refused(tmp_path: Path, seed: int) -> None:
    with pytest.raises(UsageError, match=r"seed is -?\d+, expected 0 to 4,294,967,295"):
        recipe_in(tmp_path, seed=seed)
