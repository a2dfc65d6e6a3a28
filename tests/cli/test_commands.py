"""Laws that hold for every command."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from munjang.cli import speed
from munjang.cli.commands import COMMANDS, CommandEntry, find, load_command
from munjang.models import registry

ROOT = Path(__file__).parents[2]
NEWS = "id,text\na,오늘은 하루 종일 비가 온다\nb,It has been raining since the morning\nc,The match ended in a draw\n"


def leaves() -> Iterator[tuple[str, Any]]:
    for entry in COMMANDS:
        command = load_command(entry)
        inner = getattr(command, "commands", None)
        yield from ((f"{entry.name} {name}", leaf) for name, leaf in inner.items()) if inner else [(entry.name, command)]


LEAVES = list(leaves())


@pytest.mark.parametrize(("name", "command"), LEAVES, ids=[name for name, _ in LEAVES])
def test_every_command_speaks_json_and_shows_an_example(name: str, command: Any) -> None:
    assert any("--json" in parameter.opts for parameter in command.params)
    assert f"munjang {name}" in (command.epilog or "")


@pytest.mark.parametrize("entry", COMMANDS, ids=lambda entry: entry.name)
def test_the_table_says_what_the_command_says(entry: CommandEntry) -> None:
    assert load_command(entry).help.startswith(entry.help)


@pytest.mark.parametrize(("name", "command"), LEAVES, ids=[name for name, _ in LEAVES])
def test_every_command_is_in_the_documentation(name: str, command: Any) -> None:
    pages = [path for path in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))) if path.is_file()]
    assert any(f"munjang {name}" in path.read_text(encoding="utf-8") for path in pages)


def test_a_command_is_found_by_its_name() -> None:
    assert find("encode") is COMMANDS[0]
    assert find("nothing") is None


def documented() -> list[str]:
    lines = (ROOT / "docs/cli.md").read_text(encoding="utf-8").split("```sh\n")[1:]
    return [line for block in lines for line in block.split("```")[0].splitlines() if " pull " not in line]


@pytest.fixture
def tiny_default(tiny_bert_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A tiny model in the place of the default one, so that the lines run quickly and without a package."""
    tiny = registry.Found("all-MiniLM-L6-v2", tiny_bert_folder, "package")
    monkeypatch.setattr(registry, "_find_in_package", lambda name: tiny if name == tiny.name else None)
    monkeypatch.setattr(registry, "_find_default", lambda: tiny)
    monkeypatch.setattr(speed, "PEAK_SIDE", 256)


@pytest.mark.usefixtures("tiny_default")
def test_every_documented_line_works(munjang: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "news.csv").write_text(NEWS, encoding="utf-8")
    assert NEWS in (ROOT / "docs/cli.md").read_text(encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    assert len(documented()) >= 18
    for line in documented():
        program, *arguments = shlex.split(line)
        assert program == "munjang"
        outcome = munjang(*arguments)
        assert outcome.code == 0, f"{line}: {outcome.err}"
        assert outcome.out or "-o" in arguments, line
