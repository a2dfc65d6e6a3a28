"""No message says "1 clusters": a number that varies is joined to its noun by `count` or `plural`."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src/munjang"
ROOMS = ("cli", "library", "report", "serve")
"""What speaks to people; pages of topics are said in their own language elsewhere."""
NOUNS = [
    "bytes",
    "cells",
    "characters",
    "classes",
    "clusters",
    "columns",
    "connections",
    "copies",
    "cores",
    "dimensions",
    "documents",
    "duplicates",
    "entries",
    "examples",
    "fields",
    "files",
    "findings",
    "folders",
    "groups",
    "heads",
    "hits",
    "inputs",
    "judged",
    "keywords",
    "labels",
    "labelled",
    "layers",
    "lines",
    "matches",
    "models",
    "names",
    "notes",
    "numbers",
    "outliers",
    "pairs",
    "paragraphs",
    "parameters",
    "parts",
    "passages",
    "pieces",
    "places",
    "points",
    "predictions",
    "problems",
    "queries",
    "records",
    "rows",
    "samples",
    "scores",
    "sentences",
    "shards",
    "steps",
    "tensors",
    "texts",
    "things",
    "threads",
    "tokens",
    "topics",
    "uploads",
    "values",
    "vectors",
    "versions",
    "words",
    "workers",
]
PLURAL = re.compile(rf" (?:[a-z]+ )?({'|'.join(NOUNS)})\b")
SAID = {"count", "plural", "hundred", "size_text", "shown", "place", "duration", "shape"}
"""Functions whose value is no bare number."""
BOUND = re.compile(r"limit|LIMIT|self\.bytes|[A-Z]{3,}|most|max_|fewest|least|budget|share|per_second|seconds|shape|quota")
"""A limit, a constant and a rate are never one."""


def bare_counts(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if not isinstance(node, ast.JoinedStr):
            continue
        for before, value, after in zip([None, *node.values], node.values, node.values[1:], strict=False):
            if isinstance(before, ast.Constant) and re.search(r" [x×] $", str(before.value)):
                continue  # 3 x 1 scores
            if not isinstance(value, ast.FormattedValue) or not isinstance(after, ast.Constant):
                continue
            said = ast.unparse(value.value)
            is_number = re.search(r"len\(|count|number|sum\(|\.n\b|^n$", said) or value.format_spec is not None
            format = ast.unparse(value.format_spec) if value.format_spec else ""
            is_plural = PLURAL.match(str(after.value)) and is_number and not BOUND.search(said) and "." not in format
            if is_plural and not any(said.startswith(f"{name}(") for name in SAID):
                yield f"{path.relative_to(SOURCE.parent)} line {node.lineno}: {{{said}}}{str(after.value)[:40]}"


def _files(room: str) -> list[Path]:
    return sorted(path for path in (SOURCE / room).rglob("*.py") if not path.name.startswith("topics_"))


def test_no_number_is_followed_by_a_plural_that_is_wrong_for_one() -> None:
    assert [found for room in ROOMS for path in _files(room) for found in bare_counts(path)] == []


def test_the_check_sees_a_bare_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.test_plurals.SOURCE", tmp_path / "src")
    file = tmp_path / "said.py"
    lines = ['f"{len(found)} clusters"', 'f"{n:,} judged queries"', 'f"{count(n, 1)} rows"', 'f"{LIMIT:,} rows"', 'f"{n:,} x {m:,} scores"']
    file.write_text("\n".join(lines), encoding="utf-8")
    assert len(list(bare_counts(file))) == 2
