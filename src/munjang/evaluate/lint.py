"""One data file or two (train, test) → findings: what in the data would spoil a training or make a score untrue.

In: paths (read by `data`), or rows. Out: findings with severity, count, examples by file and line, and advice, gravest first. The checks
of one file are in `lint_checks.py`. Between two files: which rows of the test are in the train, exactly, but for case and spaces, with
sides swapped, or nearly (by character n-grams, `shingles.py`). A pair in both files makes a test score untrue, so it is an error; a single
sentence in both is common where sentences stand in several pairs, so it is a warning.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from munjang.data.read import AS_FOUND, AnyDataset, ReadOptions, read_any
from munjang.evaluate import lint_checks
from munjang.evaluate.bootstrap import to_jsonable
from munjang.evaluate.lint_checks import SEVERITIES, LintFinding, LintRow, make_lint_rows, normalise_text, report_places
from munjang.evaluate.shingles import find_near_duplicates
from munjang.wording import brief_repr

_NEAR = 0.8


def find_overlap(train: Sequence[LintRow], test: Sequence[LintRow]) -> list[LintFinding]:
    """Return the findings on what two files share; each row of the test is counted under the strictest match only."""
    exact = {row.texts: row.where for row in train}
    folded = {tuple(map(normalise_text, row.texts)): row.where for row in train}
    swapped = {texts[::-1]: where for texts, where in folded.items() if len(texts) == 2}
    places: dict[str, list[str]] = {"exact": [], "normalised": [], "swapped": []}
    rest: list[LintRow] = []
    for row in test:
        key = tuple(map(normalise_text, row.texts))
        if row.texts in exact:
            places["exact"].append(f"{row.where} = {exact[row.texts]}")
        elif key in folded:
            places["normalised"].append(f"{row.where} = {folded[key]}")
        elif key in swapped:
            places["swapped"].append(f"{row.where} = {swapped[key]}")
        else:
            rest.append(row)
    return [*_report_repeats(places, len(test)), *_report_near(train, rest), *_report_sentences(train, rest)]


def _report_repeats(places: dict[str, list[str]], total: int) -> list[LintFinding]:
    words = {"exact": "word for word", "normalised": "but for case, spaces or Unicode form", "swapped": "with the sides swapped"}
    found = []
    for how, repeats in places.items():
        message = f"{len(repeats)} of {total} test rows are in the train file {words[how]}"
        found += report_places(f"overlap-{how}", "error", repeats, message, "leave them out of the train file")
    return found


def _report_near(train: Sequence[LintRow], rest: Sequence[LintRow]) -> list[LintFinding]:
    left, right = ([_join_texts(row) for row in rows] for rows in (train, rest))
    found, cut = find_near_duplicates(left, right, threshold=_NEAR)
    places = [f"{rest[near.right].where} ≈ {train[near.left].where} ({near.jaccard:.2f})" for near in found]
    message = f"{len(found)}{' or more' if cut else ''} test rows nearly repeat a train row (n-gram overlap ≥ {_NEAR:g})"
    return report_places("overlap-near", "warning", places, message, "look at them; leave true repeats out of the train file")


def _report_sentences(train: Sequence[LintRow], rest: Sequence[LintRow]) -> list[LintFinding]:
    if not rest or len(rest[0].texts) < 2:
        return []
    known = {normalise_text(text) for row in train for text in row.texts}
    places = [row.where for row in rest if any(normalise_text(text) in known for text in row.texts)]
    message = f"{len(places)} further test rows share a sentence with the train file"
    return report_places("overlap-sentence", "warning", places, message, "fine if sentences are used in several pairs on purpose")


def _join_texts(row: LintRow) -> str:
    return " ¦ ".join(sorted(map(normalise_text, row.texts)))


_CHECKS: tuple[Callable[[Sequence[LintRow]], list[LintFinding]], ...] = (
    lint_checks.check_identical,
    lint_checks.check_overlap,
    lint_checks.check_balance,
    lint_checks.check_duplicates,
    lint_checks.check_wordless,
    lint_checks.check_languages,
    lint_checks.check_lengths,
)


@brief_repr
@dataclass(frozen=True)
class LintReport:
    """What was read, and everything found, gravest first."""

    files: tuple[str, ...]
    layouts: tuple[str, ...]
    rows: tuple[int, ...]
    findings: tuple[LintFinding, ...]

    @property
    def worst(self) -> str | None:
        """The gravest severity found, or None."""
        return self.findings[0].severity if self.findings else None

    def to_json(self) -> dict[str, Any]:
        """Return files, layouts, row counts and findings."""
        return dict(to_jsonable(self))


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
    rows = [make_lint_rows(data) for data in sets]
    found = [finding for data, part in zip(sets, rows, strict=True) for finding in (*lint_checks.check_reading(data), *lint_rows(part))]
    if len(rows) == 2:
        found += find_overlap(rows[0], rows[1])
    found.sort(key=lambda finding: SEVERITIES.index(finding.severity))
    return LintReport(tuple(data.source for data in sets), tuple(data.detected for data in sets), tuple(map(len, rows)), tuple(found))


def lint_rows(rows: Sequence[LintRow]) -> list[LintFinding]:
    """Return what the checks of one file find."""
    return [finding for check in _CHECKS for finding in check(rows)]
