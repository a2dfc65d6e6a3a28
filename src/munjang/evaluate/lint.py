"""One data file or two → findings: what in the data would spoil a training or make a score untrue.

Comes in: paths (read by `datasets`), or rows. Goes out: findings with severity, count, examples by file and line, and advice, gravest
first. The checks of one file are in `lint_checks.py`, those between two in `overlap.py`; this file only gathers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from munjang.evaluate import lint_checks, overlap
from munjang.evaluate.datasets.read import AS_FOUND, AnyDataset, ReadOptions, read_any
from munjang.evaluate.findings import SEVERITIES, Finding, LintRow, rows_of
from munjang.evaluate.result import jsonable
from munjang.wording import brief_repr

_CHECKS: tuple[Callable[[Sequence[LintRow]], list[Finding]], ...] = (
    lint_checks.identical_but_different,
    lint_checks.overlap_against_label,
    lint_checks.label_balance,
    lint_checks.duplicates,
    lint_checks.wordless_texts,
    lint_checks.language_mix,
    lint_checks.long_texts,
)


@brief_repr
@dataclass(frozen=True)
class LintReport:
    """What was read, and everything found, gravest first."""

    files: tuple[str, ...]
    layouts: tuple[str, ...]
    rows: tuple[int, ...]
    findings: tuple[Finding, ...]

    @property
    def worst(self) -> str | None:
        """The gravest severity found, or None."""
        return self.findings[0].severity if self.findings else None

    def to_json(self) -> dict[str, Any]:
        """Return files, layouts, row counts and findings."""
        return dict(jsonable(self))


def lint_files(
    path: str | Path, other: str | Path | None = None, *, options: ReadOptions = AS_FOUND, other_options: ReadOptions | None = None
) -> LintReport:
    """Return the findings in a file and, with a second (train first, then test), in both and between them.

    The second file is read like the first unless `other_options` says how.
    """
    # Bad rows are what a linter is for: it lists them all instead of stopping at the first.
    files = ((path, options), (other, other_options or options))
    sets = [read_any(file, replace(how, skip_bad=True)) for file, how in files if file is not None]
    return lint_datasets(*sets)


def lint_datasets(first: AnyDataset, second: AnyDataset | None = None) -> LintReport:
    """Return the findings in data already read."""
    sets = [first] if second is None else [first, second]
    rows = [rows_of(data) for data in sets]
    found = [finding for data, part in zip(sets, rows, strict=True) for finding in (*lint_checks.reading(data), *lint_rows(part))]
    if len(rows) == 2:
        found += overlap.between(rows[0], rows[1])
    found.sort(key=lambda finding: SEVERITIES.index(finding.severity))
    return LintReport(tuple(data.source for data in sets), tuple(data.detected for data in sets), tuple(map(len, rows)), tuple(found))


def lint_rows(rows: Sequence[LintRow]) -> list[Finding]:
    """Return what the checks of one file find."""
    return [finding for check in _CHECKS for finding in check(rows)]
