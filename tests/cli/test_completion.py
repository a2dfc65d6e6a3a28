from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from munjang.cli.commands import COMMANDS

ASK = """
eval "$(munjang completion bash)"
COMP_WORDS=("$@")
COMP_CWORD=$(($# - 1))
_munjang_completion munjang
printf '%s\\n' "${COMPREPLY[@]}"
"""


def in_bash(*words: str) -> list[str]:
    """Return what bash offers for the last of these words."""
    bash = shutil.which("bash")
    if bash is None:
        pytest.skip("there is no bash here")
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run([bash, "-c", ASK, "bash", *words], capture_output=True, text=True, timeout=60, env=environment)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.split()


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (("munjang", "sea"), ["search"]),
        (("munjang", "models", "sh"), ["show"]),
        (("munjang", "search", "news.db", "rain", "--by"), ["--by"]),
        (("munjang", "encode", "--compute", ""), ["float32", "float16", "bfloat16", "int8", "auto"]),
        (("munjang", "nothing", "x"), []),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_bash_completes(words: tuple[str, ...], offered: list[str]) -> None:
    assert in_bash(*words) == offered


def asked(munjang: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, line: str, *, shell: str) -> str:
    monkeypatch.setenv("_MUNJANG_COMPLETE", f"complete_{shell}")
    monkeypatch.setenv("_TYPER_COMPLETE_ARGS", line)
    monkeypatch.setenv("_TYPER_COMPLETE_FISH_ACTION", "get-args")
    told = munjang()
    assert (told.code, told.err) == (0, "")
    return str(told.out)


def test_fish_and_zsh_get_names_with_their_help(munjang: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    assert asked(munjang, monkeypatch, "munjang sea", shell="fish").startswith("search\tSearch a library")
    assert '"search":"Search a library' in asked(munjang, monkeypatch, "munjang sea", shell="zsh")


def test_nothing_typed_offers_every_command(munjang: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    offered = [line.split("\t")[0] for line in asked(munjang, monkeypatch, "munjang ", shell="fish").splitlines()]
    assert offered == [entry.name for entry in COMMANDS]


def test_models_are_completed_by_name(
    munjang: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, munjang_home: Path, tiny_bert_folder: Path
) -> None:
    place = munjang_home / "models" / "my-own-model"
    shutil.copytree(tiny_bert_folder, place)
    try:
        assert asked(munjang, monkeypatch, "munjang encode --model my-o", shell="fish").split() == ["my-own-model"]
    finally:
        shutil.rmtree(place)


def test_a_wrong_question_is_silent(munjang: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("_MUNJANG_COMPLETE", "complete_bash")
    monkeypatch.delenv("COMP_WORDS", raising=False)
    told = munjang()
    assert (told.code, told.out, told.err) == (1, "", "")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_script_is_printed(munjang: Callable[..., Any], shell: str) -> None:
    script = munjang("completion", shell).out
    assert f"_MUNJANG_COMPLETE=complete_{shell}" in script
    assert munjang("completion", shell, "--json").json == {"shell": shell, "script": script.rstrip("\n")}
