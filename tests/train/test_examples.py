from __future__ import annotations

import json
from pathlib import Path

import pytest

from munjang.errors import InputError, UsageError
from munjang.train.examples import DataSource, read_examples


def _jsonl(path: Path, rows: list[dict[str, object]]) -> str:
    path.write_text("\n".join(json.dumps(row) for row in rows), encoding="utf-8")
    return str(path)


def test_scores_are_scaled_from_the_stated_range(tmp_path: Path) -> None:
    path = _jsonl(tmp_path / "a.jsonl", [{"l": "one", "r": "two", "s": 1}, {"l": "three", "r": "four", "s": 4}])
    found = read_examples(DataSource(path, texts=("l", "r"), label="s", label_range=(1, 5)))
    assert found.label_kind == "score"
    assert [example.label for example in found.examples] == [0.0, 0.75]


def test_a_score_out_of_range_names_its_line(tmp_path: Path) -> None:
    path = _jsonl(tmp_path / "a.jsonl", [{"l": "one", "r": "two", "s": 1}, {"l": "three", "r": "four", "s": 7}])
    source = DataSource(path, texts=("l", "r"), label="s", label_range=(0, 5))
    with pytest.raises(InputError, match="a.jsonl line 2.*7"):
        read_examples(source)


def test_bad_rows_are_counted_when_they_are_skipped(tmp_path: Path) -> None:
    path = _jsonl(tmp_path / "a.jsonl", [{"l": "one", "r": "two", "s": 1}, {"l": "three", "r": "", "s": 2}])
    found = read_examples(DataSource(path, texts=("l", "r"), label="s", label_range=(0, 5), skip_bad=True))
    assert len(found) == 1
    assert len(found.skipped) == 1
    assert "line 2" in found.skipped[0]


def test_class_names_become_numbers_in_their_order(tmp_path: Path) -> None:
    rows: list[dict[str, object]] = [{"l": "one", "r": "two", "c": name} for name in ("neutral", "entailment", "contradiction", "neutral")]
    found = read_examples(DataSource(_jsonl(tmp_path / "a.jsonl", rows), texts=("l", "r"), label="c"))
    assert found.classes == ("contradiction", "entailment", "neutral")
    assert [example.label for example in found.examples] == [2.0, 1.0, 0.0, 2.0]
    assert found.shape().label_kind == "class"


def test_one_class_is_refused(tmp_path: Path) -> None:
    rows: list[dict[str, object]] = [{"l": "one", "r": "two", "c": "same"}] * 3
    with pytest.raises(InputError, match="two classes"):
        read_examples(DataSource(_jsonl(tmp_path / "a.jsonl", rows), texts=("l", "r"), label="c"))


def test_a_column_that_is_not_there_is_named(tmp_path: Path) -> None:
    path = _jsonl(tmp_path / "a.jsonl", [{"l": "one", "r": "two"}])
    with pytest.raises(InputError, match="wrong"):
        read_examples(DataSource(path, texts=("l", "wrong")))


def test_triplets_may_have_several_negatives(tmp_path: Path) -> None:
    rows: list[dict[str, object]] = [{"q": "one", "p": "two", "n1": "three", "n2": "four"}, {"q": "five", "p": "six", "n1": "", "n2": "x"}]
    path = _jsonl(tmp_path / "a.jsonl", rows)
    with pytest.raises(InputError, match="line 2.*n1"):
        read_examples(DataSource(path, texts=("q", "p", "n1", "n2")))
    found = read_examples(DataSource(path, texts=("q", "p", "n1", "n2"), skip_bad=True))
    assert found.examples[0].texts == ("one", "two", "three", "four")
    assert len(found.skipped) == 1


def test_labelled_sentences_become_pairs_of_one_group(tmp_path: Path) -> None:
    rows: list[dict[str, object]] = [{"t": f"sentence {number}", "g": str(number % 3)} for number in range(12)]
    found = read_examples(DataSource(_jsonl(tmp_path / "a.jsonl", rows), texts=("t",), label="g"))
    assert found.columns == 2
    group = {f"sentence {number}": str(number % 3) for number in range(12)}
    assert all(group[example.texts[0]] == group[example.texts[1]] == example.group for example in found.examples)


def test_a_limit_keeps_that_many_rows_by_the_seed(tmp_path: Path) -> None:
    path = _jsonl(tmp_path / "a.jsonl", [{"l": f"a {number}", "r": f"b {number}"} for number in range(30)])
    source = DataSource(path, texts=("l", "r"), limit=5)
    first, again, other = (read_examples(source, seed=seed).examples for seed in (1, 1, 2))
    assert len(first) == 5
    assert first == again != other


def test_labels_need_a_named_column(tmp_path: Path) -> None:
    path = _jsonl(tmp_path / "a.jsonl", [{"l": "one", "r": "two"}])
    with pytest.raises(UsageError, match="label"):
        read_examples(DataSource(path, kind="scored", texts=("l", "r")))


@pytest.mark.parametrize(("part", "rows"), [("train", 5749), ("dev", 1500), ("test", 1379)])
def test_korsts_is_read_whole(part: str, rows: int) -> None:
    path = Path(__file__).parents[2].parent / "shared" / "data" / "korsts" / f"sts-{part}.tsv.gz"
    if not path.is_file():
        pytest.skip("the shared data folder is not here")
    found = read_examples(DataSource(str(path)))
    assert len(found) == rows
    assert not found.skipped
    assert found.label_kind == "score"
    labels = [example.label for example in found.examples if example.label is not None]
    assert len(labels) == rows
    assert (min(labels), max(labels)) == (0.0, 1.0)
    assert all(text for example in found.examples for text in example.texts)
