"""Every layout, written small here, is recognised, read and scaled; every kind of bad row is named by file and line."""

from __future__ import annotations

import gzip
import json

import pytest

from munjang.data.layouts import BY_NAME
from munjang.data.read import (
    ReadOptions,
    read_any,
    read_labelled_pairs,
    read_labelled_texts,
    read_scored_pairs,
    read_text_pairs,
    read_triplets,
)
from munjang.data.rows import LabelledPair, LabelledText, ScoredPair, TextPair, Triplet
from munjang.errors import InputError, UsageError

STSB = "genre\tfilename\tyear\tid\tscore\tsentence1\tsentence2\n"
GLUE = "index\tgenre\tfilename\tyear\told_index\tsource1\tsource2\tsentence1\tsentence2\tscore\n"

SCORED = {
    "korsts": ("a.tsv", STSB + 'news\tf\t2012\t1\t2.500\t"비가 온다\t눈이 온다\n', ("news", '"비가 온다', "눈이 온다")),
    "glue-stsb": ("a.tsv", GLUE + "0\tnews\tf\t2012\t1\tn\tn\tRain falls.\tSnow falls.\t2.500\n", ("news", "Rain falls.", "Snow falls.")),
    "stsb-original": (
        "sts-dev.csv",
        'news\tf\t2012\t1\t2.5\tRain "falls\tSnow falls\nforum\tf\t2014\t2\t5\tx\ty\tlicence\tlink\n',
        ("news", 'Rain "falls', "Snow falls"),
    ),
    "stsb-csv": ("a.csv", '"Rain, snow",Snow falls.,2.5\r\nx,y,0\r\n', ("", "Rain, snow", "Snow falls.")),
    "klue-sts": ("a.csv", 'sentence1,sentence2,label\n비가 온다,"눈, 비",2.5\n', ("", "비가 온다", "눈, 비")),
}


def _file(tmp_path, name, text):
    path = tmp_path / name
    path.write_bytes(text.encode())
    return path


@pytest.mark.parametrize("layout", SCORED)
def test_scored_layouts_are_recognised_and_scaled_to_one(layout, tmp_path):
    name, text, (genre, a, b) = SCORED[layout]
    found = read_scored_pairs(_file(tmp_path, name, text))
    line = 1 if not BY_NAME[layout].header else 2
    assert found.layout == layout
    assert found.scale == (0, 5)
    assert found.rows[0] == ScoredPair(a, b, 0.5, genre, f"{name} line {line}")
    assert found.detected.startswith(layout)


def test_klue_sts_json_uses_the_unrounded_label(tmp_path):
    item = {"guid": "g", "source": "weather", "sentence1": "비", "sentence2": "눈"}
    item["labels"] = {"label": 2.4, "real-label": 2.5, "binary-label": 0}
    found = read_scored_pairs(_file(tmp_path, "a.json", json.dumps([item], ensure_ascii=False)))
    assert found.layout == "klue-sts-json"
    assert (found.rows[0].score, found.rows[0].genre) == (0.5, "weather")


def test_a_gzip_file_reads_like_a_plain_one(tmp_path):
    plain = read_scored_pairs(_file(tmp_path, "a.tsv", SCORED["korsts"][1]))
    (tmp_path / "a.tsv.gz").write_bytes(gzip.compress(SCORED["korsts"][1].encode()))
    assert [row.a for row in read_scored_pairs(tmp_path / "a.tsv.gz").rows] == [row.a for row in plain.rows]


LABELLED = {
    "kornli": ("a.tsv", "sentence1\tsentence2\tgold_label\n비\t눈\tneutral\n", "neutral"),
    "snli-tsv": ("a.tsv", "premise\thypothesis\tlabel\nrain\tsnow\tcontradiction\n", "contradiction"),
    "xnli": ("a.tsv", "rain\tsnow\tentailment\n", "entailment"),
    "snli-jsonl": ("a.jsonl", '{"sentence1": "r", "sentence2": "s", "gold_label": "neutral", "pairID": 3}\n', "neutral"),
    "klue-nli": ("a.json", '[{"guid": "g", "premise": "비", "hypothesis": "눈", "gold_label": "neutral", "label2": "neutral"}]', "neutral"),
    "pawsx": ("a.tsv", "id\tsentence1\tsentence2\tlabel\n4\train\tsnow\t1\n", "1"),
    "pawsx-xtreme": ("a.tsv", "rain falls\tsnow falls\t0\n", "0"),
    "question-pair-ko": ("a.txt", "question1\tquestion2\tis_duplicate\n비가 오나\t눈이 오나\t1\n", "0"),
    "question-pairs": ("a.tsv", "id\tqid1\tqid2\tquestion1\tquestion2\tis_duplicate\n0\t1\t2\tRain?\tSnow?\t1\n", "1"),
}


@pytest.mark.parametrize("layout", LABELLED)
def test_labelled_layouts_are_recognised(layout, tmp_path):
    name, text, label = LABELLED[layout]
    found = read_labelled_pairs(_file(tmp_path, name, text))
    assert found.layout == layout
    assert [row.label for row in found.rows] == [label]


def test_inverted_labels_are_turned_and_that_is_said(tmp_path):
    found = read_labelled_pairs(_file(tmp_path, "a.txt", LABELLED["question-pair-ko"][1]))
    assert "inverted" in found.notes[0]
    english = read_labelled_pairs(_file(tmp_path, "b.txt", "question1\tquestion2\tis_duplicate\nRain?\tSnow?\t1\n"))
    assert (english.layout, english.rows[0].label, english.notes) == ("question-pairs", "1", ())


def test_a_pair_that_its_makers_left_unlabelled_is_counted_not_guessed(tmp_path):
    found = read_labelled_pairs(_file(tmp_path, "a.tsv", LABELLED["snli-tsv"][1] + "x\ty\t-\n"))
    assert len(found) == 1
    assert found.skipped == ("a.tsv line 3: without a label",)


def test_groups_are_counted_by_ten(tmp_path):
    text = "\r\n".join(f"0\t1\t문장 {i}" for i in range(20))
    found = read_labelled_texts(_file(tmp_path, "a.txt", text))
    assert found.layout == "paraKQC"
    assert [row.label for row in found.rows] == ["0"] * 10 + ["1"] * 10
    with pytest.raises(InputError, match="whole groups of 10"):
        read_labelled_texts(_file(tmp_path, "b.txt", text + "\r\n0\t1\t하나 더"))


def test_plain_files_say_their_columns_by_usual_names(tmp_path):
    triplets = read_triplets(_file(tmp_path, "t.jsonl", '{"anchor": "a", "positive": "b", "negative": "c"}\n'))
    assert triplets.rows == (Triplet("a", "b", "c", "t.jsonl line 1"),)
    scored = read_scored_pairs(_file(tmp_path, "s.csv", "sentence1,sentence2,score\nx,y,0.25\n"))
    assert (scored.layout, scored.scale, scored.rows[0].score) == ("plain", (0.0, 1.0), 0.25)
    pairs = read_text_pairs(_file(tmp_path, "p.tsv", "query\tpositive\nq\tp\n"))
    assert pairs.rows == (TextPair("q", "p", "p.tsv line 2"),)
    texts = read_labelled_texts(_file(tmp_path, "l.csv", "text,label\nhello,greeting\n"))
    assert texts.rows == (LabelledText("hello", "greeting", "l.csv line 2"),)


def test_a_header_of_two_languages_is_no_pair(tmp_path):
    path = tmp_path / "pairs.tsv"
    path.write_text("korean\tenglish\n비가 온다.\tIt rains.\n", encoding="utf-8")
    [row] = read_text_pairs(path).rows
    assert (row.a, row.b) == ("It rains.", "비가 온다.")


def test_parquet_columns_are_read_by_name(tmp_path):
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    pq.write_table(pa.table({"left": ["a", "b"], "right": ["c", "d"], "gold": [1, 0]}), tmp_path / "x.parquet")
    found = read_labelled_pairs(tmp_path / "x.parquet", ReadOptions(columns={"a": "left", "b": "right", "label": "gold"}))
    assert [(row.a, row.b, row.label) for row in found.rows] == [("a", "c", "1"), ("b", "d", "0")]


def test_columns_can_be_numbers_where_there_is_no_header(tmp_path):
    found = read_text_pairs(_file(tmp_path, "x.csv", "1,one,eins\n2,two,zwei\n"), ReadOptions(columns={"a": 1, "b": 2}))
    assert [(row.a, row.b) for row in found.rows] == [("one", "eins"), ("two", "zwei")]


def test_a_stated_scale_or_layout_wins_over_the_recognised(tmp_path):
    path = _file(tmp_path, "s.csv", "sentence1,sentence2,score\nx,y,3\n")
    assert read_scored_pairs(path, ReadOptions(scale=(1, 5))).rows[0].score == 0.5
    named = read_scored_pairs(_file(tmp_path, "k.tsv", SCORED["korsts"][1]), ReadOptions(layout="korsts"))
    assert named.detected == "named by the caller"


def test_a_score_outside_the_scale_names_file_and_line_and_is_never_rescaled(tmp_path):
    path = _file(tmp_path, "s.csv", "sentence1,sentence2,score\nx,y,0.5\nx,z,3.5\n")
    with pytest.raises(InputError, match=r"s.csv line 3: the score is 3.5, expected 0 to 1\n.*state the scale"):
        read_scored_pairs(path)


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ("news\tf\t2012\t1\tx\ta\tb", "line 3: score is 'x', expected a number"),
        ("news\tf\t2012\t1\tnan\ta\tb", "line 3: score is 'nan'"),
        ("news\tf\t2012\t1\t1.0\t \tb", "line 3: sentence1 is empty"),
        ("news\tf\t2012\t1\t1.0\ta", "line 3: 6 columns, expected 7"),
        ("news\tf\t2012\t1\t5.1\ta\tb", "line 3: the score is 5.1"),
    ],
)
def test_a_bad_row_is_named_or_skipped_and_counted(row, said, tmp_path):
    path = _file(tmp_path, "a.tsv", STSB + "news\tf\t2012\t1\t2.0\ta\tb\n" + row + "\nnews\tf\t2012\t1\t3.0\tc\td\n")
    with pytest.raises(InputError, match=said):
        read_scored_pairs(path)
    found = read_scored_pairs(path, ReadOptions(skip_bad=True))
    assert [pair.a for pair in found.rows] == ["a", "c"]
    assert len(found.skipped) == 1
    assert said in found.skipped[0]


def test_an_unknown_label_and_numbers_for_nli_labels_are_not_guessed(tmp_path):
    path = _file(tmp_path, "a.tsv", "sentence1\tsentence2\tgold_label\na\tb\tmaybe\n")
    with pytest.raises(InputError, match="line 2: the label is 'maybe', expected contradiction, entailment, neutral"):
        read_labelled_pairs(path)
    numbered = _file(tmp_path, "b.tsv", "sentence1\tsentence2\tgold_label\na\tb\t0\n")
    assert read_labelled_pairs(numbered, ReadOptions(labels={"0": "entailment"})).rows == (
        LabelledPair("a", "b", "entailment", "b.tsv line 2"),
    )


def test_unknown_columns_layouts_and_empty_files_are_refused_with_advice(tmp_path):
    with pytest.raises(InputError, match="columns 'x', 'y'"):
        read_scored_pairs(_file(tmp_path, "a.csv", "x,y\n1,2\n"))
    with pytest.raises(UsageError, match="did you mean korsts"):
        read_scored_pairs(tmp_path / "a.csv", ReadOptions(layout="korst"))
    with pytest.raises(UsageError, match="holds labelled"):
        read_scored_pairs(tmp_path / "a.csv", ReadOptions(layout="kornli"))
    with pytest.raises(InputError, match="no column 'z'"):
        read_text_pairs(tmp_path / "a.csv", ReadOptions(columns={"a": "x", "b": "z"}))
    with pytest.raises(UsageError, match="expected a, b"):
        read_text_pairs(tmp_path / "a.csv", ReadOptions(columns={"a": "x"}))
    with pytest.raises(InputError, match="empty"):
        read_scored_pairs(_file(tmp_path, "e.tsv", ""))
    with pytest.raises(InputError, match="no such file"):
        read_scored_pairs(tmp_path / "missing.tsv")


def test_scores_that_use_half_the_scale_are_wondered_about(tmp_path):
    rows = "".join(f"a{i},b{i},{i / 30}\n" for i in range(30))
    assert "is the scale right" in read_scored_pairs(_file(tmp_path, "a.csv", rows)).notes[0]


def test_any_kind_is_told_from_the_columns_that_are_named(tmp_path):
    path = _file(tmp_path, "q.csv", "Q,A,label\nwhy,because,0\n")
    assert read_any(path, ReadOptions(columns={"a": "Q", "b": "A"})).rows == (TextPair("why", "because", "q.csv line 2"),)
    with pytest.raises(UsageError, match="expected one of"):
        read_any(path, ReadOptions(columns={"a": "Q"}))


def test_any_kind_is_told_from_the_file(tmp_path):
    triplets = "anchor\tpositive\tnegative\na\tb\tc\n"
    cases = {"k.tsv": SCORED["korsts"][1], "p.tsv": LABELLED["pawsx"][1], "t.tsv": triplets}
    kinds = [type(read_any(_file(tmp_path, name, text)).rows[0]) for name, text in cases.items()]
    assert kinds == [ScoredPair, LabelledPair, Triplet]
    ambiguous = _file(tmp_path, "l.tsv", "sentence1\tsentence2\tlabel\nx\ty\t1\n")
    assert isinstance(read_any(ambiguous).rows[0], LabelledPair)


def test_bare_zeros_and_ones_under_klues_header_are_labels_not_scores(tmp_path):
    file = tmp_path / "mine.csv"
    file.write_text("sentence1,sentence2,label\nrain,sun,1\ncat,dog,0\n", encoding="utf-8")
    assert [row.label for row in read_any(file).rows] == ["1", "0"]
    file.write_text("sentence1,sentence2,label\nrain,sun,1.0\ncat,dog,5.0\n", encoding="utf-8")
    assert read_any(file).layout == "klue-sts"


def test_a_scale_that_does_not_rise_is_refused(tmp_path):
    with pytest.raises(UsageError, match="scale 5 to 0, expected a lower and a higher number"):
        read_scored_pairs(_file(tmp_path, "a.csv", "sentence1,sentence2,score\na,b,1\n"), ReadOptions(scale=(5, 0)))


@pytest.mark.parametrize("label", ["true", "1", "1.0"])
def test_one_label_is_one_word_however_json_writes_it(label, tmp_path):
    path = _file(tmp_path, "a.jsonl", f'{{"sentence1": "a", "sentence2": "b", "label": {label}}}\n')
    assert [row.label for row in read_labelled_pairs(path).rows] == ["1"]


def test_an_empty_label_is_refused_with_its_place(tmp_path):
    with pytest.raises(InputError, match="a.jsonl line 1: .*is empty, expected a label"):
        read_labelled_pairs(_file(tmp_path, "a.jsonl", '{"sentence1": "a", "sentence2": "b", "label": " "}\n'))
