"""TREC's two line formats: judgements (`query 0 document grade`) and runs (`query Q0 document rank score tag`), read and written."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from munjang.errors import InputError, UsageError, shown
from munjang.evaluate.datasets.opened import whole_text
from munjang.evaluate.ranking import Run, ranked


def read_qrels(path: str | Path) -> dict[str, dict[str, int]]:
    """Return query → document → grade; a document judged twice for one query is an error."""
    result: dict[str, dict[str, int]] = {}
    for line, (query, _, document, grade) in _fields(path, 4):
        of_query = result.setdefault(query, {})
        if document in of_query:
            raise InputError(f"{Path(path).name} line {line}: document {shown(document)} is judged twice for query {shown(query)}")
        of_query[document] = _whole(grade, path, line)
    return result


def read_run(path: str | Path) -> dict[str, dict[str, float]]:
    """Return query → document → score; the rank column is not used, as in trec_eval."""
    result: dict[str, dict[str, float]] = {}
    for line, (query, _, document, _, score, _) in _fields(path, 6):
        of_query = result.setdefault(query, {})
        if document in of_query:
            raise InputError(f"{Path(path).name} line {line}: document {shown(document)} is ranked twice for query {shown(query)}")
        try:
            of_query[document] = float(score)
        except ValueError:
            raise InputError(f"{Path(path).name} line {line}: the score is {shown(score, 30)}, expected a number") from None
    return result


def write_run(path: str | Path, run: Run, *, tag: str = "munjang") -> None:
    """Write a run so that `read_run` and trec_eval read back the same scores and order."""
    lines = []
    for query, scores in run.items():
        for rank, document in enumerate(ranked(scores), start=1):
            if any(not part or any(ch.isspace() for ch in part) for part in (query, document, tag)):
                raise UsageError(f"query {shown(query)}, document {shown(document)}: TREC ids hold no white space")
            lines.append(f"{query} Q0 {document} {rank} {float(scores[document])!r} {tag}\n")
    Path(path).write_text("".join(lines), encoding="utf-8")


def _fields(path: str | Path, count: int) -> Iterator[tuple[int, list[str]]]:
    for line, text in enumerate(whole_text(path).splitlines(), start=1):
        fields = text.split()
        if not fields:
            continue
        if len(fields) != count:
            raise InputError(f"{Path(path).name} line {line}: {len(fields)} fields, expected {count} separated by spaces")
        yield line, fields


def _whole(text: str, path: str | Path, line: int) -> int:
    try:
        return int(text)
    except ValueError:
        raise InputError(f"{Path(path).name} line {line}: the grade is {shown(text, 30)}, expected a whole number") from None
