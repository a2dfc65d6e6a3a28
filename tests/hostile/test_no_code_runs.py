"""Folders that want to run code or reach outside themselves: refused, and nothing ran."""

from __future__ import annotations

import pickle
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from tests.conftest import write_json
from tests.hostile.conftest import WORDS, Canary, edit, module, refused, rewrite_header


def test_pickled_weights_are_not_opened(folder, tmp_path):
    (folder / "model.safetensors").unlink()
    (folder / "pytorch_model.bin").write_bytes(pickle.dumps(Canary(tmp_path / "canary")))
    refused(folder, "pytorch_model.bin", "can run code")
    assert not (tmp_path / "canary").exists()


@pytest.mark.parametrize(
    "kind",
    [
        "os.system",
        "sentence_transformers.models.Evil",
        "sentence_transformers.models.Transformer.os.system",
        "builtins.eval",
        "",
        None,
        5,
        ["x"],
    ],
)
def test_modules_outside_the_table_are_refused(kind, folder):
    module(folder, 1, type=kind)
    refused(folder, "modules.json")


@pytest.mark.parametrize("path", ["/etc", "../model/1_Pooling", "1_Pooling/../..", "..", "link"])
def test_module_paths_that_leave_the_folder_are_refused(path, folder, tmp_path):
    (tmp_path / "outside").mkdir()
    write_json(tmp_path / "outside/config.json", {"pooling_mode_mean_tokens": True})
    (folder / "link").symlink_to(tmp_path / "outside")
    module(folder, 1, path=path)
    refused(folder, "leaves the model folder")


@pytest.mark.parametrize("path", ["a\x00b", "9" * 5_000, "\ud800", "a/" * 3_000], ids=["nul", "long", "half a character", "deep"])
def test_module_paths_that_no_disk_has_are_refused(path, folder):
    module(folder, 1, path=path)
    refused(folder, "is no path on any disk")


def test_remote_code_is_refused(folder):
    edit(folder / "config.json", auto_map={"AutoModel": "evil.Evil"})
    (folder / "evil.py").write_text("raise SystemExit('ran')")
    refused(folder, "auto_map", "config.json")


WATCHED = """
    import sys
    seen = []
    watched = ("socket.", "subprocess.", "os.system", "os.exec", "os.posix_spawn", "os.fork", "pty.", "pickle.", "urllib.", "ftplib.")
    from munjang.models.sentence_encoder import SentenceEncoder
    from munjang.errors import MunjangError
    import munjang.engine.transformer, munjang.text.tokenizer
    armed = [True]
    def hook(event, arguments):
        foreign = event == "import" and arguments[0] in ("evil", "torch", "transformers", "sentence_transformers")
        if armed[0] and (event.startswith(watched) or foreign):
            seen.append(event)
    sys.addaudithook(hook)
    for path in sys.argv[1:]:
        try:
            SentenceEncoder.load(path)
        except MunjangError as error:
            print(type(error).__name__)
        else:
            print("loaded")
    armed[0] = False
    print("events", seen)
"""


def test_no_code_runs_and_no_network_is_touched(tiny_bert_folder, tmp_path):
    canary = tmp_path / "canary"

    def copy(name):
        return Path(shutil.copytree(tiny_bert_folder, tmp_path / name))

    pickled, typed, mapped, lied = copy("pickled"), copy("typed"), copy("mapped"), copy("lied")
    (pickled / "model.safetensors").unlink()
    (pickled / "pytorch_model.bin").write_bytes(pickle.dumps(Canary(canary)))
    module(typed, 1, type="os.system", path=f"touch {canary}")
    edit(mapped / "config.json", auto_map={"AutoModel": "evil.Evil"})
    (mapped / "evil.py").write_text(f"open({str(canary)!r}, 'w')")
    rewrite_header(lied, lambda header: header[WORDS].update(shape=[10**9, 10**9]))
    folders = [str(path) for path in (pickled, typed, mapped, lied, tiny_bert_folder)]
    code = textwrap.dedent(WATCHED)
    done = subprocess.run([sys.executable, "-c", code, *folders], capture_output=True, text=True, cwd=mapped, check=False, timeout=60)
    assert done.stdout.split("\n") == ["FolderError"] * 4 + ["loaded", "events []", ""], done.stdout + done.stderr
    assert not canary.exists()
