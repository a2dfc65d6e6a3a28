"""Two files of lines as pairs."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from munjang.data.rows import TextPair
from munjang.data.unlabelled import make_row_filter, read_condition, read_parallel, read_parallel_pairs
from munjang.errors import InputError, UsageError
from munjang.train.examples import DataSource, read_examples


def _files(tmp_path, left: str, right: str):
    a, b = tmp_path / "news.ko", tmp_path / "news.en"
    a.write_text(left, encoding="utf-8")
    b.write_text(right, encoding="utf-8")
    return a, b


def test_lines_are_paired_by_their_number(tmp_path):
    data = read_parallel(*_files(tmp_path, "비\n\n눈\r\n", "rain\n\nsnow"))
    assert data.rows == (TextPair("비", "rain", "news.ko line 1"), TextPair("눈", "snow", "news.ko line 3"))


def test_a_missing_translation_is_named_or_counted(tmp_path):
    files = _files(tmp_path, "비\n눈\n", "rain\n\n")
    with pytest.raises(InputError, match=r"news\.en line 2: empty"):
        read_parallel(*files)
    assert len(read_parallel(*files, skip_bad=True).skipped) == 1


def test_files_of_unequal_length_are_refused(tmp_path):
    with pytest.raises(InputError, match="2 lines.*1 lines"):
        read_parallel(*_files(tmp_path, "비\n눈\n", "rain\n"))


def written(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    data = text.encode()
    path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    return path


def pairs_of(path: Path, **options: object) -> list[tuple[str, str]]:
    return [(pair.a, pair.b) for pair in read_parallel_pairs(path, **options).pairs]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("header.tsv", "source\tsplit\ten\tko\nours\ttrain\tIt rains.\t비가 온다.\n"),
        ("numbered.tsv", "id\ten\tko\n1\tIt rains.\t비가 온다.\n"),
        ("regions.tsv", "en-GB\tko_KR\nIt rains.\t비가 온다.\n"),
        ("gzipped.tsv.gz", "en\tko\r\nIt rains.\t비가 온다.\r\n"),
        ("bom.tsv", "\ufeffen\tko\nIt rains.\t비가 온다.\n"),
        ("bare.tsv", "It rains.\t비가 온다.\n"),
        ("usual.csv", 'sentence1,sentence2\n"It rains.",비가 온다.\n'),
        ("lines.jsonl", '{"en": "It rains.", "ko": "비가 온다."}\n'),
    ],
)
def test_languages_are_found_without_being_named(tmp_path: Path, name: str, text: str) -> None:
    assert pairs_of(written(tmp_path, name, text)) == [("It rains.", "비가 온다.")]


def test_a_first_pair_of_short_words_is_not_taken_for_a_header(tmp_path: Path) -> None:
    assert pairs_of(written(tmp_path, "short.tsv", "hello\t안녕\nrain\t비\n")) == [("hello", "안녕"), ("rain", "비")]


def test_columns_are_taken_in_the_order_named(tmp_path: Path) -> None:
    path = written(tmp_path, "many.tsv", "ko\ten\tja\n비\train\t雨\n눈\tsnow\t\n")
    assert pairs_of(path, columns=("en", "ko")) == [("rain", "비"), ("snow", "눈")]
    # each translation makes a pair, an empty one none
    assert pairs_of(path, columns=("en", "ko", "ja")) == [("rain", "비"), ("rain", "雨"), ("snow", "눈")]


def test_columns_of_a_file_without_header_are_numbered(tmp_path: Path) -> None:
    path = written(tmp_path, "three.tsv", "rain\t비\tour own\nsnow\t눈\tour own\n")
    assert pairs_of(path, columns=("0", "1")) == [("rain", "비"), ("snow", "눈")]
    with pytest.raises(InputError, match="name them in order"):
        read_parallel_pairs(path)


def test_quotes_in_tsv_are_characters(tmp_path: Path) -> None:
    path = written(tmp_path, "quotes.tsv", 'en\tko\n"Rain\t"비\nsnow\t눈\n')
    assert pairs_of(path) == [('"Rain', '"비'), ("snow", "눈")]


def test_repeated_pairs_and_rows_without_translation_are_counted(tmp_path: Path) -> None:
    path = written(tmp_path, "again.tsv", "en\tko\nrain\t비\nrain\t비\nrain\t빗물\nsnow\t \n")
    found = read_parallel_pairs(path)
    assert len(found.pairs) == 2
    assert found.notes() == ["columns en → ko", "1 pair that came before left out", "1 row without a translation left out"]


def test_a_translation_without_source_is_an_error_that_names_the_line(tmp_path: Path) -> None:
    path = written(tmp_path, "hole.tsv", "en\tko\nrain\t비\n\t눈\n")
    with pytest.raises(InputError, match=r"hole\.tsv line 3: en is empty"):
        read_parallel_pairs(path)
    assert len(read_parallel_pairs(path, skip_bad=True).skipped) == 1
    ragged = written(tmp_path, "ragged.tsv", "en\tko\nrain\t비\textra\n")
    with pytest.raises(InputError, match="line 2: 3 columns"):
        read_parallel_pairs(ragged)


def test_wrong_columns_are_refused(tmp_path: Path) -> None:
    path = written(tmp_path, "plain.tsv", "en\tko\nrain\t비\n")
    with pytest.raises(InputError, match="there is no column 'de'"):
        read_parallel_pairs(path, columns=("en", "de"))
    with pytest.raises(InputError, match="one or more translations"):
        read_parallel_pairs(path, columns=("en",))
    with pytest.raises(InputError, match="one or more translations"):
        read_parallel_pairs(path, columns=("en", "en"))
    with pytest.raises(InputError, match="no such file"):
        read_parallel_pairs(tmp_path / "missing.tsv")


def test_rows_are_chosen_by_other_columns(tmp_path: Path) -> None:
    rows = "source\tsplit\ten\tko\na\ttrain\train\t비\na\tdev\tsnow\t눈\nb\ttrain\tsun\t해\nc\ttrain\tice\t얼음\n"
    path = written(tmp_path, "splits.tsv", rows)
    assert pairs_of(path, where=("split=train", "source!=b,c")) == [("rain", "비")]
    assert pairs_of(path, where=("split=dev",)) == [("snow", "눈")]
    with pytest.raises(InputError, match="no column 'splitt' to choose rows by"):
        read_parallel_pairs(path, where=("splitt=train",))
    source = DataSource(str(path), "plain", texts=("en", "ko"), where=("source=b,c",))
    assert [example.texts[0] for example in read_examples(source).examples] == ["sun", "해", "ice", "얼음"]
    with pytest.raises(InputError, match="no rows to learn from"):
        read_examples(DataSource(str(path), "parallel", where=("split=test",)))
    with pytest.raises(UsageError, match="where chooses rows of parallel and plain files"):
        read_examples(DataSource(str(path), "pairs", texts=("en", "ko"), where=("split=dev",)))


@pytest.mark.parametrize("text", ["split", "=train", "split=", "split!=", "!=a"])
def test_a_condition_that_cannot_be_read_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="expected COLUMN=VALUE"):
        read_condition(text)


def test_no_condition_wants_every_row() -> None:
    assert make_row_filter(())({}, "line 1")
