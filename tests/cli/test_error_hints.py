"""Wrong calls: each one is one message, its exit code, and what to do next."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from munjang.cli.commands import find
from munjang.cli.error_hints import OTHER_NAMES

WRONG = [
    ("serach news.db rain", 2, "did you mean 'search'?"),
    ("embed news.csv", 2, "did you mean 'encode'?"),
    ("help", 2, "did you mean '--help'?"),
    ("zzz", 2, "munjang --help describes them"),
    ("--json models", 2, "put a command's options after its name"),
    ("encode", 2, "Missing argument 'FILE'"),
    ("encode newz.csv", 3, "did you mean 'newz.csv'?".replace("newz", "news")),
    ("encode other.csv", 3, "there are: 'news.csv'"),
    ("encode other.jsonl", 3, "check the path; you are in"),
    ("encode nowhere/news.csv", 3, "there is no folder 'nowhere'"),
    ("encode news.csv --modle x", 2, "--model"),
    ("encode news.csv --model no-such-model", 3, "known names:"),
    ("encode news.csv --compute int4", 2, "'int4' is not one of 'float32', 'float16', 'bfloat16', 'int8', 'auto'."),
    ("encode news.csv --text-column tex", 3, "did you mean 'text'?"),
    ("encode news.csv -o vectors.xyz", 2, "expected a name that ends in .npy"),
    ("encode news.csv -o nowhere/vectors.npy", 2, "make it first"),
    ("similar It is raining", 2, "put a text of several words in quotes"),
    ("similar rain", 2, "expected two"),
    ("search none.db rain", 3, "make it with munjang add"),
    ("search news.csv rain", 2, "munjang add news.db news.csv makes one"),
    ("check news.csv", 2, "munjang add news.db news.csv makes one"),
    ("search", 2, "munjang search --help explains the call"),
    ("add new.db other.csv", 3, "there are: 'news.csv'"),
    ("topics", 2, "munjang topics news.csv -o model/"),
    ("topics shw", 2, "did you mean 'show'?"),
    ("topics show nothing", 3, "expected a folder that `munjang topics FILE -o FOLDER` wrote"),
    ("train recipe.tml", 3, "did you mean 'recipe.toml'?"),
    ("evaluate", 2, "expected one of sts"),
    ("evaluate stss news.csv", 2, "Did you mean 'sts'?"),
    ("evaluate sts newss.csv", 3, "did you mean 'news.csv'?"),
    ("models shw", 2, "Did you mean 'show'?"),
    ("completion tcsh", 2, "'tcsh' is not one of 'bash', 'zsh', 'fish'."),
]


@pytest.mark.parametrize(("line", "code", "step"), WRONG, ids=[line for line, _, _ in WRONG])
def test_a_wrong_call_says_what_to_do(
    munjang: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str, code: int, step: str
) -> None:
    (tmp_path / "news.csv").write_text("id,text\na,rain\n", encoding="utf-8")
    (tmp_path / "recipe.toml").write_text("", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    told = munjang(*line.split())
    assert (told.code, told.out) == (code, ""), told.err
    assert told.err.startswith("munjang: ")
    assert step in told.err
    assert "Traceback" not in told.err


@pytest.mark.parametrize("name", sorted(OTHER_NAMES))
def test_what_other_tools_call_it_leads_to_a_command_that_exists(name: str) -> None:
    assert find(name) is None
    meant = OTHER_NAMES[name].split()[0]
    assert find(meant) is not None or meant in ("--help", "--version")
