"""`llm`, the command, with Munjang's models as a plugin."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.adapters.conftest import SHORT, library

from munjang import SentenceEncoder

library("llm")
ROOT = Path(__file__).parents[2]
Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def llm(model: SentenceEncoder, make_reranker: Any, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Run `llm` in a home of its own, where one sentence encoder and one cross-encoder have names."""
    home, plugin = tmp_path_factory.mktemp("home"), tmp_path_factory.mktemp("plugin")
    shutil.copytree(model.folder.path, home / "models/tiny")
    shutil.copytree(make_reranker(1), home / "models/cross")
    entry = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["entry-points"]["llm"]
    info = plugin / "munjang_plugin-0.dist-info"  # as pip would write it from pyproject.toml
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: munjang-plugin\nVersion: 0\n", encoding="utf-8")
    (info / "entry_points.txt").write_text("[llm]\n" + "".join(f"{name} = {target}\n" for name, target in entry.items()), encoding="utf-8")
    paths = os.pathsep.join([str(plugin), str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])
    settings = {"MUNJANG_HOME": str(home), "LLM_USER_PATH": str(home / "llm"), "LLM_LOAD_PLUGINS": "munjang-plugin", "PYTHONPATH": paths}

    def run(*arguments: str, text: str = "") -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "llm", *arguments]
        done = subprocess.run(
            command, input=text, capture_output=True, text=True, env=os.environ | settings, cwd=home, check=False, timeout=300
        )
        assert done.returncode == 0, done.stderr
        return done

    return run


def test_llm_embeds_a_text_with_the_offline_vector(llm: Run, model: SentenceEncoder) -> None:
    found = json.loads(llm("embed", "-m", "munjang/tiny", "-c", SHORT[1]).stdout)
    np.testing.assert_allclose(found, model.encode(SHORT[1]), atol=1e-6)


def test_llm_knows_the_default_and_the_named_models_but_no_cross_encoder(llm: Run) -> None:
    listed = llm("embed-models").stdout
    assert "MunjangEmbeddingModel: munjang\n" in listed
    assert "munjang/tiny" in listed
    assert "munjang/cross" not in listed


def test_a_collection_is_filled_and_asked(llm: Run) -> None:
    rows = "".join(json.dumps({"id": str(number), "text": text}) + "\n" for number, text in enumerate(SHORT))
    llm("embed-multi", "ours", "-", "--format", "nl", "-m", "munjang/tiny", "--store", text=rows)
    found = [json.loads(line) for line in llm("similar", "ours", "-c", SHORT[3], "-n", "1").stdout.splitlines()]
    assert [(each["id"], each["content"]) for each in found] == [("3", SHORT[3])]
    assert found[0]["score"] == pytest.approx(1, abs=1e-5)


def test_asking_llm_for_anything_else_loads_no_engine() -> None:
    code = "import sys, munjang.adapters.llm; print([name for name in ('onnxruntime', 'tokenizers', 'torch') if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120)
    assert done.stdout.strip() == "[]"
