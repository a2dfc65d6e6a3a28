"""Two data files (train, test) → what of the test is in the train: exactly, but for case and spaces, with its sides swapped, or nearly.

A pair that is in both makes a test score untrue, so that is an error. A single sentence in both is common where sentences are used in
several pairs, so that is only a warning. Near repeats are found by character n-grams (`shingles.py`).
"""

from __future__ import annotations

from collections.abc import Sequence

from munjang.evaluate.findings import Finding, LintRow, finding, normalised
from munjang.evaluate.shingles import near_duplicates

_NEAR = 0.8


def between(train: Sequence[LintRow], test: Sequence[LintRow]) -> list[Finding]:
    """Return the findings on what two files share; each row of the test is counted under the strictest match only."""
    exact = {row.texts: row.where for row in train}
    folded = {tuple(map(normalised, row.texts)): row.where for row in train}
    swapped = {texts[::-1]: where for texts, where in folded.items() if len(texts) == 2}
    places: dict[str, list[str]] = {"exact": [], "normalised": [], "swapped": []}
    rest: list[LintRow] = []
    for row in test:
        key = tuple(map(normalised, row.texts))
        if row.texts in exact:
            places["exact"].append(f"{row.where} = {exact[row.texts]}")
        elif key in folded:
            places["normalised"].append(f"{row.where} = {folded[key]}")
        elif key in swapped:
            places["swapped"].append(f"{row.where} = {swapped[key]}")
        else:
            rest.append(row)
    return [*_repeats(places, len(test)), *_near(train, rest), *_sentences(train, rest)]


def _repeats(places: dict[str, list[str]], total: int) -> list[Finding]:
    words = {"exact": "word for word", "normalised": "but for case, spaces or Unicode form", "swapped": "with the sides swapped"}
    return [
        finding(
            f"overlap-{how}",
            "error",
            found,
            f"{len(found)} of {total} test rows are in the train file {words[how]}",
            "leave them out of the train file",
        )
        for how, found in places.items()
        if found
    ]


def _near(train: Sequence[LintRow], rest: Sequence[LintRow]) -> list[Finding]:
    left, right = ([_joined(row) for row in rows] for rows in (train, rest))
    found, cut = near_duplicates(left, right, threshold=_NEAR)
    if not found:
        return []
    places = [f"{rest[near.right].where} ≈ {train[near.left].where} ({near.jaccard:.2f})" for near in found]
    message = f"{len(found)}{' or more' if cut else ''} test rows nearly repeat a train row (n-gram overlap ≥ {_NEAR:g})"
    return [finding("overlap-near", "warning", places, message, "look at them; leave true repeats out of the train file")]


def _sentences(train: Sequence[LintRow], rest: Sequence[LintRow]) -> list[Finding]:
    if not rest or len(rest[0].texts) < 2:
        return []
    known = {normalised(text) for row in train for text in row.texts}
    places = [row.where for row in rest if any(normalised(text) in known for text in row.texts)]
    if not places:
        return []
    message = f"{len(places)} further test rows share a sentence with the train file"
    return [finding("overlap-sentence", "warning", places, message, "fine if sentences are used in several pairs on purpose")]


def _joined(row: LintRow) -> str:
    return " ¦ ".join(sorted(map(normalised, row.texts)))
