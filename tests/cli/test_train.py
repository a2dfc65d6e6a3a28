"""`munjang train`: a few steps on small files; every bad input is one message, and what was there before stays."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.cli.data_files import write_pairs, write_sts

pytest.importorskip("torch", reason="the extra train is not installed")
pytest.importorskip("accelerate", reason="the extra train is not installed")

Call = Callable[..., Any]

RECIPE = """
output = "out"
seed = 3
checkpoint_every = 2

[model]
base = {base}

[[stage]]
objective = "regression"
steps = 4
batch_size = 4
learning_rate = 1e-3

[[stage.data]]
path = "sts.tsv"
label_range = [0, 5]

[stage.dev]
path = "sts.tsv"
label_range = [0, 5]
"""


@pytest.fixture
def recipe(tmp_path: Path, tiny_bert_folder: Path) -> Path:
    write_sts(tmp_path / "sts.tsv", scale=5)
    path = tmp_path / "recipe.toml"
    path.write_text(RECIPE.format(base=json.dumps(str(tiny_bert_folder))), encoding="utf-8")
    return path


def files_below(folder: Path) -> dict[str, str]:
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.rglob("*") if path.is_file()}


def refused(munjang: Call, *arguments: str | Path, code: int, says: tuple[str, ...]) -> None:
    outcome = munjang("train", *arguments)
    assert outcome.code == code, outcome.err
    assert outcome.out == ""
    assert outcome.err.count("munjang: ") == 1
    assert "Traceback" not in outcome.err
    for part in says:
        assert part in outcome.err


def test_a_recipe_becomes_a_folder_that_other_commands_read(munjang: Call, recipe: Path, authority: Callable[..., np.ndarray]) -> None:
    outcome = munjang("train", recipe, "--json")
    assert outcome.code == 0, outcome.err
    found = outcome.json
    assert found["steps"] == 4
    assert found["metric"] == "spearman_cosine"
    assert len(found["scores"]) == 8
    assert "regression" in (recipe.parent / "out" / "training" / "recipe.json").read_text(encoding="utf-8")
    assert {"README.md", "report.html", "modules.json"} <= {path.name for path in (recipe.parent / "out").iterdir()}
    ours = munjang("encode", recipe.parent / "sts.tsv", "--text-column", "sentence1", "-m", found["output"], "-o", recipe.parent / "v.npy")
    assert ours.code == 0, ours.err
    texts = [line.split("\t")[0] for line in (recipe.parent / "sts.tsv").read_text(encoding="utf-8").splitlines()[1:]]
    assert np.abs(np.load(recipe.parent / "v.npy") - authority(found["output"], texts)).max() < 1e-5


def test_people_get_facts_and_what_was_understood(munjang: Call, recipe: Path) -> None:
    outcome = munjang("train", recipe, "--set", "stage.0.steps=1")
    assert outcome.code == 0, outcome.err
    assert "spearman_cosine" in outcome.out
    assert "report.html" in outcome.out
    assert "sts.tsv" in outcome.err


def test_flags_win_over_the_recipe(
    munjang: Call, recipe: Path, tiny_folder: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "other").symlink_to(tiny_folder("bert", pooling=("cls",)))
    moved = (tmp_path / "elsewhere" / "recipe.toml").resolve()
    moved.write_text(recipe.read_text(encoding="utf-8").replace('"sts.tsv"', '"../sts.tsv"'), encoding="utf-8")
    changes = ["--set", "stage.0.steps=2", "--set", "seed=9", "--set", "language=ko", "--set", "stage.0.settings={}"]
    # a folder named on the command line is seen from here, not from the recipe's folder
    outcome = munjang("train", moved, "-o", "made", "--model", "other", *changes, "--json")
    assert outcome.code == 0, outcome.err
    assert outcome.json["steps"] == 2
    assert Path(outcome.json["output"]) == tmp_path / "made"
    assert not (tmp_path / "elsewhere" / "out").exists()
    kept = json.loads((tmp_path / "made" / "training" / "recipe.json").read_text(encoding="utf-8"))
    assert (kept["seed"], kept["language"], Path(kept["model"]["base"])) == (9, "ko", tmp_path / "other")
    assert "cls" in (tmp_path / "made" / "README.md").read_text(encoding="utf-8")


def test_a_model_named_takes_the_place_of_sizes(munjang: Call, recipe: Path, tiny_bert_folder: Path) -> None:
    lines = recipe.read_text(encoding="utf-8").splitlines()
    recipe.write_text("\n".join("scratch = { layers = 1 }" if line.startswith("base") else line for line in lines), encoding="utf-8")
    assert munjang("train", recipe, "--model", tiny_bert_folder, "--set", "stage.0.steps=1").code == 0


def test_a_training_is_taken_up_where_it_stopped(munjang: Call, recipe: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from munjang.train.stage_run import Stepper

    assert munjang("train", recipe, "-o", recipe.parent / "whole").code == 0
    steps: list[int] = []
    real = Stepper.run

    def interrupted(self: Stepper, step: int) -> tuple[float, float]:
        steps.append(step)
        if len(steps) == 4:
            raise KeyboardInterrupt
        return real(self, step)

    monkeypatch.setattr(Stepper, "run", interrupted)
    outcome = munjang("train", recipe)
    assert outcome.code == 130
    assert "munjang: interrupted; the last checkpoint is after step " in outcome.err
    assert outcome.err.endswith(f"  resume with: munjang train {recipe} --resume\n")
    refused(munjang, recipe, code=2, says=("not empty", "--resume"))
    assert munjang("train", recipe, "--resume").code == 0
    assert steps == [0, 1, 2, 3, 2, 3]
    for name in ("model.safetensors", "training/log.jsonl"):
        assert (recipe.parent / "out" / name).read_bytes() == (recipe.parent / "whole" / name).read_bytes()


def test_a_resume_of_nothing_starts_at_the_beginning(munjang: Call, recipe: Path) -> None:
    assert munjang("train", recipe, "--resume", "--json").json["steps"] == 4


def test_a_resume_with_a_changed_recipe_is_refused_and_the_difference_shown(munjang: Call, recipe: Path) -> None:
    assert munjang("train", recipe).code == 0
    before = files_below(recipe.parent / "out")
    says = ("another recipe", "stages.0.learning_rate: was '0.001', is '0.002'", "seed: was '3', is '4'")
    refused(munjang, recipe, "--resume", "--set", "stage.0.learning_rate=2e-3", "--set", "seed=4", code=2, says=says)
    assert files_below(recipe.parent / "out") == before


BAD_DATA = [
    (('texts = ["left", "right"]', 'label = "score"', "label_range = [0, 5]"), ("sts.tsv", "'left'")),
    (("label_range = [0, 1]",), ("sts.tsv line", "expected")),
    (("label_range = [0, 5]", 'texts = ["sentence1", "sentence2"]', 'label = "genre"'), ("sts.tsv line 2", "'news'", "number")),
]


@pytest.mark.parametrize(("keys", "says"), BAD_DATA, ids=["wrong columns", "labels out of range", "labels that are no numbers"])
def test_bad_data_is_named_and_leaves_no_output(munjang: Call, recipe: Path, keys: tuple[str, ...], says: tuple[str, ...]) -> None:
    head, _, tail = recipe.read_text(encoding="utf-8").partition("[[stage.data]]")
    dev = tail[tail.index("[stage.dev]") :]
    recipe.write_text(head + "[[stage.data]]\n" + "\n".join(('path = "sts.tsv"', *keys)) + "\n" + dev, encoding="utf-8")
    refused(munjang, recipe, code=3, says=says)
    assert not (recipe.parent / "out").exists()


@pytest.mark.parametrize("label", ["entailment", "1"])
@pytest.mark.parametrize("objective", ["classification", None])
def test_data_of_one_class_is_refused(munjang: Call, recipe: Path, label: str, objective: str | None) -> None:
    write_pairs(recipe.parent / "sts.tsv", same=label, different=label)
    text = recipe.read_text(encoding="utf-8").replace("label_range = [0, 5]", "")
    recipe.write_text(text.replace('objective = "regression"', f'objective = "{objective}"' if objective else ""), encoding="utf-8")
    refused(munjang, recipe, code=3, says=("sts.tsv", f"every label is '{label}'", "two classes or more"))
    assert not (recipe.parent / "out").exists()


def test_bad_data_of_a_later_stage_is_refused_before_the_first_step(munjang: Call, recipe: Path) -> None:
    later = '\n[[stage]]\n[[stage.data]]\npath = "sts.tsv"\nlabel_range = [0, 2]\n'
    recipe.write_text(recipe.read_text(encoding="utf-8") + later, encoding="utf-8")
    refused(munjang, recipe, code=3, says=("sts.tsv line",))
    assert not (recipe.parent / "out").exists()


EXPLODING = ("--set", "stage.0.learning_rate=1e30", "--set", "stage.0.warmup=0", "--set", "stage.0.clip=0")


def test_a_loss_that_is_no_number_stops_and_names_the_batch(munjang: Call, recipe: Path) -> None:
    recipe.write_text(recipe.read_text(encoding="utf-8").partition("[stage.dev]")[0], encoding="utf-8")
    says = ("not a finite number", "the batch holds sts.tsv line", "lower the learning rate")
    refused(munjang, recipe, *EXPLODING, code=3, says=says)
    assert not (recipe.parent / "out").exists()
    # with a checkpoint there is something to keep
    refused(munjang, recipe, *EXPLODING, "--set", "checkpoint_every=1", code=3, says=says)
    assert list((recipe.parent / "out" / "training" / "checkpoints").glob("stage-*"))


@pytest.mark.parametrize(
    ("changes", "code", "says"),
    [
        (("stage.0.learning_rat=1",), 2, ("recipe.toml: stage 1", "unknown setting 'learning_rat'", "did you mean learning_rate?")),
        (("sed=1",), 2, ("did you mean seed?",)),
        (("model.poling=mean",), 2, ("did you mean pooling?",)),
        (("stage.0.data.0.lable=x",), 2, ("did you mean label?",)),
        (('stage.0.settings={"scael"=1}', "stage.0.objective=cosent"), 2, ("unknown setting 'scael'", "did you mean scale?")),
        (("stage.0.objective=regresion",), 2, ("did you mean regression?",)),
        (("stage.0.epochs=two",), 2, ("epochs is 'two', expected a whole number",)),
        (("stage.4.epochs=2",), 2, ("there is no '4' among 1 tables",)),
        (("stage.0=2",), 2, ("expected the number of a table and one of its keys",)),
        (("output.deeper=2",), 2, ("'output' is 'out', expected a table",)),
        (("seed",), 2, ("expected KEY=VALUE",)),
        (("stage.0.data.0.path=none.tsv",), 3, ("none.tsv", "no such file")),
        (("stage.0.dev.path=none.tsv",), 3, ("none.tsv", "no such file")),
        (("model.base=no-such-model",), 3, ("no-such-model",)),
    ],
)
def test_a_wrong_value_is_named_and_leaves_no_output(
    munjang: Call, recipe: Path, changes: tuple[str, ...], code: int, says: tuple[str, ...]
) -> None:
    flags = [part for change in changes for part in ("--set", change)]
    refused(munjang, recipe, *flags, code=code, says=says)
    assert not (recipe.parent / "out").exists()


def test_a_recipe_that_is_missing_or_no_toml_is_bad_input(munjang: Call, recipe: Path) -> None:
    refused(munjang, recipe.parent / "none.toml", code=3, says=("none.toml: no such file",))
    recipe.write_text("a = = b", encoding="utf-8")
    refused(munjang, recipe, code=3, says=("is not TOML",))


@pytest.mark.parametrize("change", [(), ("--set", "stage.0.data.0.path=none.tsv"), ("--resume",)])
def test_a_folder_with_something_in_it_stays_as_it_is(munjang: Call, recipe: Path, change: tuple[str, ...]) -> None:
    (recipe.parent / "out").mkdir()
    (recipe.parent / "out" / "mine.txt").write_text("keep", encoding="utf-8")
    refused(munjang, recipe, *change, code=2, says=("not empty", "name another output"))
    assert [path.name for path in (recipe.parent / "out").iterdir()] == ["mine.txt"]
