"""docs/architecture.md names every room, and says of each exactly what the import contracts in pyproject.toml allow."""

from __future__ import annotations

import re
import tomllib

import pytest
from tests.website.conftest import ROOT

SOURCE = ROOT / "src/munjang"
PAGE = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
ROW = re.compile(r"^\| `(\w+)/` \| .+ \| (.+) \|$", re.MULTILINE)
[MODULES_ROW] = re.findall(r"^\| ((?:`\w+`(?:, )?)+) \| .+ \| no room \|$", PAGE, re.MULTILINE)
MODULES = set(re.findall(r"\w+", MODULES_ROW))
"""The modules that stand beside the rooms and that every room may import."""
ROOMS = sorted(path.parent.name for path in SOURCE.glob("*/__init__.py"))
STATED = dict(ROW.findall(PAGE))
CONTRACTS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]["contracts"]


def stated(room: str) -> set[str]:
    """Return what the page says that a room may import; adapters, which nothing may, need not be named."""
    cell = STATED[room]
    if cell == "no room":
        return set()
    if cell == "all" or cell.startswith("all but "):
        return set(ROOMS) - set(cell.removeprefix("all but ").split(", ")) - {room, "adapters"}
    return set(cell.split(", "))


def contracted(room: str) -> set[str]:
    """Return what the contracts let a room or module import."""
    forbidden: set[str] = set()
    for contract in CONTRACTS:
        if f"munjang.{room}" in contract.get("source_modules", ()):
            forbidden |= {name.removeprefix("munjang.") for name in contract["forbidden_modules"]}
        if contract["type"] == "independence" and f"munjang.{room}" in contract["modules"]:
            forbidden |= {name.removeprefix("munjang.") for name in contract["modules"]}
    return set(ROOMS) - forbidden - {room}


@pytest.mark.parametrize("room", ROOMS)
def test_the_page_and_the_contracts_let_a_room_import_the_same(room: str) -> None:
    assert room in STATED, f"docs/architecture.md does not name {room}/"
    assert stated(room) == contracted(room)


def test_the_page_names_every_room_and_module_and_no_other() -> None:
    assert sorted(STATED) == ROOMS
    assert {path.stem for path in SOURCE.glob("*.py")} - {"__init__"} == MODULES


def test_the_modules_beside_the_rooms_import_no_room() -> None:
    assert all(not contracted(name) for name in MODULES)


def test_the_contracts_are_held_without_exceptions() -> None:
    assert not any("ignore_imports" in contract for contract in CONTRACTS)


@pytest.mark.parametrize("name", ["folder.py", "weights.py", "backbone.py", "encoder_graph.py", "head_graph.py", "linear.py", "session.py"])
def test_the_files_that_the_page_walks_through_exist(name: str) -> None:
    assert f"`{name}`" in PAGE
    assert (SOURCE / "engine" / name).is_file()
