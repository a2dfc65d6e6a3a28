"""The nouns of linting: a row stripped to what every kind of data has (texts, a value, a place), and a finding."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, TypeAlias

from munjang.evaluate.datasets.read import AnyDataset
from munjang.evaluate.datasets.rows import DIFFERENT, SAME, LabelledPair, LabelledText, ScoredPair, TextPair, Triplet
from munjang.wording import brief_repr

Severity: TypeAlias = Literal["error", "warning", "info"]
SEVERITIES: tuple[Severity, ...] = ("error", "warning", "info")
_EXAMPLES = 5


@dataclass(frozen=True, slots=True)
class LintRow:
    """The texts of one row, its label or score in words, how alike it says they are (None: it does not say), and its place."""

    texts: tuple[str, ...]
    label: str
    alike: float | None
    where: str


@brief_repr
@dataclass(frozen=True)
class Finding:
    """One thing that is wrong or worth knowing; `examples` are places (file and line), never texts."""

    check: str
    severity: Severity
    count: int
    message: str
    advice: str
    examples: tuple[str, ...] = ()


def finding(check: str, severity: Severity, places: Iterable[str], message: str, advice: str) -> Finding:
    """Return a finding that counts all places and names the first few."""
    found = list(places)
    return Finding(check, severity, len(found), message, advice, tuple(found[:_EXAMPLES]))


def normalised(text: str) -> str:
    """Return a text as two careless writers would agree on it: NFC, lower case, single spaces.

    >>> normalised("  A  Man ")
    'a man'
    """
    return " ".join(unicodedata.normalize("NFC", text).casefold().split())


def rows_of(data: AnyDataset) -> list[LintRow]:
    """Return any data set's rows in the form that the checks read."""
    return [_row(row) for row in data.rows]


def _row(row: ScoredPair | LabelledPair | TextPair | Triplet | LabelledText) -> LintRow:
    match row:
        case ScoredPair():
            return LintRow((row.a, row.b), f"{row.score:g}", row.score, row.where)
        case LabelledPair():
            alike = {SAME: 1.0, DIFFERENT: 0.0, "entailment": 1.0, "contradiction": 0.0}.get(row.label)
            return LintRow((row.a, row.b), row.label, alike, row.where)
        case TextPair():
            return LintRow((row.a, row.b), "", None, row.where)
        case Triplet():
            return LintRow((row.anchor, row.positive, row.negative), "", None, row.where)
        case LabelledText():
            return LintRow((row.text,), row.label, None, row.where)
