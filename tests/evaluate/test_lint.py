"""Findings in data files that were made to have them."""

from __future__ import annotations

import json
import unicodedata

import pytest

from munjang.data.read import ReadOptions
from munjang.data.rows import Dataset, LabelledPair, LabelledText, ScoredPair, TextPair, Triplet
from munjang.evaluate.lint import LintRow, check_balance, check_languages, check_lengths, check_reading, lint_files, make_lint_rows


def _write(path, rows, header=("sentence1", "sentence2", "label")):
    path.write_text("\n".join("\t".join(row) for row in [header, *rows]) + "\n", encoding="utf-8")
    return path


def _checks(report):
    return {found.check: found for found in report.findings}


def _good(n=40):
    same = [(f"number {i} is here", f"number {i} is here now", "1") for i in range(n // 2)]
    return same + [(f"cup {i} on a shelf", f"dog {i} under one tree", "0") for i in range(n // 2)]


def test_good_data_has_no_findings(tmp_path):
    report = lint_files(_write(tmp_path / "a.tsv", _good()))
    assert report.findings == ()
    assert report.worst is None
    assert report.rows == (40,)


def test_inverted_labels_are_found_in_two_ways(tmp_path):
    rows = [(a, b, "0" if label == "1" else "1") for a, b, label in _good()] + [("same", "same", "0"), ("twin", "twin", "0")]
    report = lint_files(_write(tmp_path / "a.tsv", rows))
    kinds = [(found.check, found.severity) for found in report.findings]
    assert ("inverted-labels", "error") in kinds
    assert ("inverted-labels", "warning") in kinds
    assert report.findings[0].examples[0] == "a.tsv line 42"
    assert report.worst == "error"


def test_repeats_and_contradictions_are_told_apart(tmp_path):
    rows = [*_good(), ("apple pie", "pear cake", "1"), ("Pear  cake", "apple pie", "1"), ("up", "down", "0"), ("down", "up", "1")]
    found = _checks(lint_files(_write(tmp_path / "a.tsv", rows)))
    assert found["duplicates"].count == 1
    assert found["duplicates"].examples == ("a.tsv line 43",)
    assert found["contradictory-duplicates"].examples == ("a.tsv line 44 and a.tsv line 45",)


def test_bad_rows_are_all_listed_by_line(tmp_path):
    rows = [*_good(), ("only one column",), ("a", "", "1")]
    found = _checks(lint_files(_write(tmp_path / "a.tsv", rows)))["bad-rows"]
    assert found.count == 2
    assert found.severity == "error"
    assert {"line 42", "line 43"} == {" ".join(example.split(":")[0].split()[1:]) for example in found.examples}


def test_scores_beyond_and_far_below_the_scale_are_found(tmp_path):
    rows = [(f"a {i}", f"b {i}", str(i / 40)) for i in range(40)]
    small = lint_files(_write(tmp_path / "a.tsv", rows, ("sentence1", "sentence2", "score")), options=ReadOptions(scale=(0, 5)))
    assert _checks(small)["scale"].severity == "warning"
    large = lint_files(_write(tmp_path / "b.tsv", [*rows, ("x", "y", "7")], ("sentence1", "sentence2", "score")))
    assert _checks(large)["bad-rows"].count == 1


def test_one_class_wordless_long_and_foreign_rows_are_found(tmp_path):
    rows = [(f"word {i} here", f"other {i} there", "1") for i in range(30)] + [
        ("...", "!?", "1"),
        ("가나다 라마", "바사", "1"),
        ("x" * 5000, "y", "1"),
    ]
    found = _checks(lint_files(_write(tmp_path / "a.tsv", rows)))
    assert found["one-class"].severity == "error"
    assert found["wordless"].examples == ("a.tsv line 32",)
    assert found["language-mix"].examples == ("a.tsv line 33",)
    assert found["long-texts"].examples == ("a.tsv line 34",)


def test_overlap_of_train_and_test_is_found_in_every_form(tmp_path):
    nfc = "한국어 문장 하나", "다른 문장 하나"
    train = [
        *_good(),
        (*nfc, "1"),
        ("left side", "right side", "0"),
        ("the quick brown fox jumps over the dog", "a completely other sentence", "0"),
    ]
    test = [
        ("cup 3 on a shelf", "dog 3 under one tree", "0"),
        (unicodedata.normalize("NFD", nfc[0]), nfc[1].upper() + " ", "1"),
        ("right side", "left side", "0"),
        ("the quick brown fox jumps over the dogs", "a completely other sentence", "0"),
        ("cup 5 on a shelf", "nothing like it", "0"),
        ("all new words", "never seen before", "1"),
    ]
    report = lint_files(_write(tmp_path / "train.tsv", train), _write(tmp_path / "test.tsv", test))
    found = {check: one for check, one in _checks(report).items() if check.startswith("overlap")}
    assert {check: one.count for check, one in found.items()} == {
        "overlap-exact": 1,
        "overlap-normalised": 1,
        "overlap-swapped": 1,
        "overlap-near": 1,
        "overlap-sentence": 2,
    }
    assert found["overlap-exact"].examples == ("test.tsv line 2 = train.tsv line 25",)


def test_the_report_is_json(tmp_path):
    body = lint_files(_write(tmp_path / "a.tsv", [*_good(), ("up", "up", "0")])).to_json()
    assert json.loads(json.dumps(body, allow_nan=False)) == body
    assert body["findings"][0]["advice"]


def test_the_korean_question_pairs_show_their_inverted_labels(shared_data):
    file = shared_data / "question-pair-ko" / "train.txt.gz"
    raw = lint_files(file, options=ReadOptions(labels={"0": "0", "1": "1"}))
    assert raw.findings[0].check == "inverted-labels"
    assert raw.findings[0].count == pytest.approx(759)
    assert "inverted-labels" not in _checks(lint_files(file))


def test_repeats_with_labels_of_no_scale_contradict_by_their_words(tmp_path):
    rows = [(f"text {number}", f"other {number}", "neutral") for number in range(20)]
    rows += [("up", "down", "neutral"), ("up", "down", "entailment"), ("in", "out", "neutral"), ("in", "out", "neutral")]
    path = tmp_path / "a.tsv"
    path.write_text("sentence1\tsentence2\tgold_label\n" + "".join("\t".join(row) + "\n" for row in rows), encoding="utf-8")
    found = _checks(lint_files(path))
    assert found["contradictory-duplicates"].examples == ("a.tsv line 22 and a.tsv line 23",)
    assert found["duplicates"].examples == ("a.tsv line 25",)


def test_a_test_file_of_its_own_words_overlaps_nowhere(tmp_path):
    test = [("all new words", "never seen before", "1"), ("quite another thing", "said in its own way", "0")]
    report = lint_files(_write(tmp_path / "train.tsv", _good()), _write(tmp_path / "test.tsv", test))
    assert not [check for check in _checks(report) if check.startswith("overlap")]


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
