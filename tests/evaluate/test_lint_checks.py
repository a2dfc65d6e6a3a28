"""Single checks of the linter on rows made here, and how every kind of row becomes one that they read."""

from __future__ import annotations

import pytest

from munjang.data.rows import Dataset, LabelledPair, LabelledText, ScoredPair, TextPair, Triplet
from munjang.evaluate.lint_checks import LintRow, check_balance, check_languages, check_lengths, check_reading, make_lint_rows

KINDS = [
    (ScoredPair("a", "b", 0.25, where="f 1"), LintRow(("a", "b"), "0.25", 0.25, "f 1")),
    (LabelledPair("a", "b", "1", "f 2"), LintRow(("a", "b"), "1", 1.0, "f 2")),
    (LabelledPair("a", "b", "0", "f 2"), LintRow(("a", "b"), "0", 0.0, "f 2")),
    (LabelledPair("a", "b", "entailment", "f 2"), LintRow(("a", "b"), "entailment", 1.0, "f 2")),
    (LabelledPair("a", "b", "contradiction", "f 2"), LintRow(("a", "b"), "contradiction", 0.0, "f 2")),
    (LabelledPair("a", "b", "neutral", "f 2"), LintRow(("a", "b"), "neutral", None, "f 2")),
    (TextPair("a", "b", "f 3"), LintRow(("a", "b"), "", None, "f 3")),
    (Triplet("a", "b", "c", "f 4"), LintRow(("a", "b", "c"), "", None, "f 4")),
    (LabelledText("a", "news", "f 5"), LintRow(("a",), "news", None, "f 5")),
]


@pytest.mark.parametrize(("row", "expected"), KINDS, ids=lambda value: type(value).__name__)
def test_every_kind_of_row_is_read(row, expected):
    assert make_lint_rows(Dataset((row,), "f", "layout", "by its columns")) == [expected]


def rows(*labels: str, text: str = "a text") -> list[LintRow]:
    return [LintRow((text,), label, None, f"f {number}") for number, label in enumerate(labels, start=1)]


def test_labels_of_one_kind_are_an_error_and_rows_without_labels_are_none():
    (found,) = check_balance(rows("a", "a", "a"))
    assert (found.check, found.severity, found.count) == ("one-class", "error", 3)
    assert "'a'" in found.message
    assert check_balance(rows("", "")) == []
    assert check_balance(rows("a", "b")) == []


def test_a_label_that_hardly_occurs_is_named_with_its_place():
    (found,) = check_balance(rows(*["yes", "no"] * 50, "nо"))
    assert (found.check, found.severity, found.count, found.examples) == ("rare-label", "info", 1, ("f 101",))
    assert "1 time" in found.message
    assert check_balance(rows(*["yes", "no"] * 50, *map(str, range(30)))) == []  # so many labels are groups, not classes


def test_rows_without_a_label_are_told_from_rows_that_cannot_be_read():
    skipped = ("f line 1: without a label", "f line 2: the score is 'x', expected a number", "f line 3: 2 columns")
    data = Dataset((), "f", "layout", "by its columns", skipped=skipped, notes=("scores look like a scale of 0 to 5", "a note"))
    found = {one.check: one for one in check_reading(data)}
    assert (found["bad-rows"].severity, found["bad-rows"].count) == ("error", 2)
    assert (found["unlabelled"].severity, found["unlabelled"].count) == ("info", 1)
    assert (found["scale"].severity, found["reading"].severity) == ("warning", "info")


def test_a_few_rows_in_another_script_are_named_and_many_are_a_mixed_set():
    few = [*rows(*"abcdefghi", text="English"), *rows("k", text="한국어")]
    (found,) = check_languages(few)
    assert (found.check, found.count) == ("language-mix", 1)
    assert "with Hangul where most have none" in found.message
    (other,) = check_languages([*rows(*"abcdefghi", text="한국어"), *rows("k", text="English")])
    assert "without Hangul where most have it" in other.message
    assert check_languages([*rows(*"ab", text="English"), *rows(*"cd", text="한국어")]) == []
    assert check_languages([]) == []


def test_texts_far_longer_than_the_rest_are_named():
    (found,) = check_lengths([*rows("a", "b", "c"), *rows("d", text="x" * 2_001)])
    assert (found.check, found.count, found.examples) == ("long-texts", 1, ("f 1",))
    assert check_lengths(rows("a", text="x" * 2_000)) == []
    assert check_lengths([]) == []
