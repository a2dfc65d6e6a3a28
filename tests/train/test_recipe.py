from __future__ import annotations

from pathlib import Path
from typing import Any, get_args

import pytest

from munjang.errors import InputError, UsageError
from munjang.train.adapt.run import STAGES
from munjang.train.recipe import ModelRecipe, TextMethod, list_differences, make_recipe, read_recipe
from munjang.train.sentence_task import TEXT_OBJECTIVES

WRITTEN = """
output = "out"
seed = 3

[model]
base = "all-MiniLM-L6-v2"
pooling = "cls"

[[stage]]
name = "nli"
objective = "classification"
settings = { parts = ["u", "v"] }
[[stage.data]]
path = "nli.tsv"

[[stage]]
name = "sts"
epochs = 4
[[stage.data]]
path = "sts.tsv"
label_range = [0, 5]
[stage.dev]
path = "dev.tsv"
"""


def test_a_recipe_has_stages_with_data_beside_it(tmp_path: Path) -> None:
    (tmp_path / "r.toml").write_text(WRITTEN, encoding="utf-8")
    recipe = read_recipe(tmp_path / "r.toml", overrides={"stage.1.epochs": 2, "seed": 9})
    assert recipe.seed == 9
    assert [stage.name for stage in recipe.stages] == ["nli", "sts"]
    assert recipe.stages[1].epochs == 2
    assert recipe.stages[1].data[0].label_range == (0.0, 5.0)
    assert recipe.stages[0].data[0].path == str(tmp_path / "nli.tsv")
    assert recipe.output == str(tmp_path / "out")
    assert recipe.model.base == "all-MiniLM-L6-v2"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"sead": 1}, "did you mean seed"),
        ({"model": {"base": "x", "poling": "mean"}}, "did you mean pooling"),
        ({"stage": [{"data": [{"path": "a"}], "epoch": 3}]}, "did you mean epochs"),
        ({"stage": [{"data": [{"path": "a", "lable": "x"}]}]}, "did you mean label"),
        ({"stage": [{"data": []}]}, "no data"),
        ({"stage": []}, "no \\[\\[stage\\]\\]"),
        ({"model": {}}, "neither base"),
        ({"model": {"base": "x", "scratch": {}}}, "both base .* and scratch"),
        ({"stage": [{"data": [{"path": "a"}], "batch_size": 0}]}, "batch_size is 0"),
        ({"stage": [{"data": [{"path": "a"}], "patience": 2}]}, "patience needs a dev file"),
        ({"stage": {"data": []}}, "expected a list"),
        ({"seed": "x"}, "expected a whole number"),
    ],
)
def test_what_is_wrong_is_named(change: dict[str, Any], message: str) -> None:
    values: dict[str, Any] = {"output": "o", "model": {"base": "x"}, "stage": [{"data": [{"path": "a"}]}]} | change
    with pytest.raises(UsageError, match=message):
        make_recipe(values)


def test_what_is_not_toml_is_an_input_error(tmp_path: Path) -> None:
    (tmp_path / "r.toml").write_text("a = = b", encoding="utf-8")
    with pytest.raises(InputError, match="is not TOML"):
        read_recipe(tmp_path / "r.toml")
    with pytest.raises(InputError, match="no such file"):
        read_recipe(tmp_path / "missing.toml")


def test_two_recipes_differ_in_named_places() -> None:
    values: dict[str, Any] = {"output": "o", "model": {"base": "x"}, "stage": [{"data": [{"path": "a"}], "epochs": 2}]}
    one = make_recipe(values).to_json()
    values["stage"][0]["epochs"] = 3
    assert list_differences(one, make_recipe(values).to_json()) == ["stages.0.epochs: was '2', is '3'"]
    assert list_differences(one, one) == []


@pytest.mark.parametrize(
    ("written", "message"),
    [
        (("[model]", "[modle]"), "r.toml: unknown table 'modle'\n  did you mean model?"),
        (("[[stage]]", "[[stages]]"), "unknown table 'stages'\n  did you mean stage?"),
        (('output = "out"', 'outptu = "out"'), "unknown setting 'outptu'\n  did you mean output?"),
        (("base =", "bsae ="), "model: unknown setting 'bsae'\n  did you mean base?"),
        (("[[stage.data]]", "[[stage.dta]]"), "stage 1: unknown table 'dta'\n  did you mean data?"),
        (("path = ", "pth = "), "stage 1, data 1: unknown setting 'pth'\n  did you mean path?"),
        (("epochs = 4", "num_train_epochs = 4"), "stage 2: unknown setting 'num_train_epochs'\n  did you mean epochs?"),
        (('pooling = "cls"', 'pooling = "median"'), "pooling is 'median', expected one of cls, max, mean, mean_sqrt_len"),
        (('pooling = "cls"', "scratch = 3"), "model.scratch is '3', expected a table"),
        (("[model]", "[[model]]"), r"write \[model\] instead"),
        (("[stage.dev]", '[stage.teacher]\nmodle = "x"\n[stage.dev]'), "teacher: unknown setting 'modle'\n  did you mean model?"),
        (("epochs = 4", "dev = 4\n"), "stage 2, dev is '4', expected a table"),
    ],
)
def test_a_misspelt_table_or_key_is_named_with_the_nearest_one(written: tuple[str, str], message: str, tmp_path: Path) -> None:
    text = WRITTEN.replace(*written)
    (tmp_path / "r.toml").write_text(
        text if "dev = 4" not in text else text.replace('[stage.dev]\npath = "dev.tsv"\n', ""), encoding="utf-8"
    )
    with pytest.raises(UsageError, match=message):
        read_recipe(tmp_path / "r.toml")


def test_data_that_is_no_table_is_refused() -> None:
    with pytest.raises(UsageError, match=r"data is 'pairs.tsv', expected tables\n  write \[\[stage.data\]\]"):
        make_recipe({"output": "out", "model": {"base": "x"}, "stage": [{"data": "pairs.tsv"}]})


def test_a_pooling_that_there_is_not_is_refused_in_python_too() -> None:
    with pytest.raises(UsageError, match="pooling='median', expected one of cls, max, mean"):
        ModelRecipe(base="x", pooling="median")  # type: ignore[arg-type]


def test_the_methods_over_plain_text_are_the_objectives_over_plain_text() -> None:
    assert set(get_args(TextMethod)) == set(TEXT_OBJECTIVES) == set(STAGES)
