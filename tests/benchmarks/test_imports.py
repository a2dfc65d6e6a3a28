"""What a benchmark takes from another file of benchmarks/ is there: most need packages, or hours, that the tests have not."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
FILES = {path.stem: ast.parse(path.read_text(encoding="utf-8")) for path in sorted(BENCHMARKS.glob("*.py"))}


def list_names(module: ast.Module) -> set[str]:
    """Return the names that a module's own statements define or import."""
    found: set[str] = set()
    for each in ast.walk(module):
        if isinstance(each, ast.FunctionDef | ast.ClassDef):
            found.add(each.name)
        elif isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store):
            found.add(each.id)
        elif isinstance(each, ast.alias):
            found.add(each.asname or each.name)
    return found


@pytest.mark.parametrize("name", FILES)
def test_what_is_imported_from_beside_is_there(name: str) -> None:
    wanted = [each for each in ast.walk(FILES[name]) if isinstance(each, ast.ImportFrom) and each.module in FILES]
    for each in wanted:
        there = list_names(FILES[str(each.module)])
        assert not [alias.name for alias in each.names if alias.name not in there], each.module
