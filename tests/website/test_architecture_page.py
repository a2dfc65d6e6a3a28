"""docs/architecture.md names every room, and what it says a room may import covers what the room imports."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.website.conftest import ROOT

SOURCE = ROOT / "src/munjang"
ROW = re.compile(r"^\| `(\w+)/` \| .+ \| (.+) \|$", re.MULTILINE)
FOR_EVERYONE = {"errors", "limits", "other_names", "types", "whole_file", "wording"}
ROOMS = sorted(path.parent.name for path in SOURCE.glob("*/__init__.py"))
STATED = dict(ROW.findall((ROOT / "docs/architecture.md").read_text(encoding="utf-8")))


def imported(room: str) -> set[str]:
    found: set[str] = set()
    for path in (SOURCE / room).rglob("*.py"):
        found |= set(re.findall(r"^\s*(?:from|import) munjang\.(\w+)", path.read_text(encoding="utf-8"), re.MULTILINE))
    return found - {room} - FOR_EVERYONE


def allowed(cell: str) -> set[str]:
    if cell.startswith("all but "):
        return set(ROOMS) - set(cell.removeprefix("all but ").split(", "))
    return set(ROOMS) if cell == "all" else set(cell.split(", "))


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_imports_what_the_page_says(room: str) -> None:
    assert room in STATED, f"docs/architecture.md does not name {room}/"
    assert imported(room) <= allowed(STATED[room])


def test_the_page_names_no_room_that_is_not_there() -> None:
    assert sorted(STATED) == ROOMS


@pytest.mark.parametrize("name", ["folder.py", "weights.py", "backbone.py", "encoder_graph.py", "head_graph.py", "linear.py", "session.py"])
def test_the_files_that_the_page_walks_through_exist(name: str) -> None:
    assert f"`{name}`" in Path(ROOT / "docs/architecture.md").read_text(encoding="utf-8")
    assert (SOURCE / "engine" / name).is_file()
