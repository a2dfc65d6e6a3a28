"""`munjang evaluate`, task by task, on small files of our own; KorSTS where it is there."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from tests.cli.data_files import NOUNS, PAIRS, write_beir, write_korsts, write_pairs, write_sts
from tests.cli.doc_pages import run_lines, write_shown_files

from munjang.data.read import ReadOptions, read_scored_pairs
from munjang.evaluate.sts import evaluate_sts
from munjang.models import registry
from munjang.models.sentence_encoder import SentenceEncoder

ROOT = Path(__file__).parents[2]
Call = Callable[..., Any]


def _korsts() -> Path:
    folder = ROOT.parent / "shared" / "data" / "korsts"
    if not folder.is_dir():
        pytest.skip("the shared data folder is not here")
    return folder


def test_sts_as_json_is_what_the_library_says(munjang: Call, tiny_bert_folder: Path, tmp_path: Path) -> None:
    file = write_sts(tmp_path / "sts.tsv", scale=5)
    found = munjang("evaluate", "sts", file, "--scale", 0, 5, "--model", tiny_bert_folder, "--json", "--resamples", 100)
    assert found.code == 0, found.err
    data = read_scored_pairs(file, ReadOptions(scale=(0, 5)))
    expected = evaluate_sts(SentenceEncoder.load(tiny_bert_folder), data.rows, resamples=100).to_json()
    assert {name: found.json[name] for name in expected} == expected
    assert found.json["n"] == len(PAIRS)
    assert len(found.json["ci95"]) == 8
    assert [genre["genre"] for genre in found.json["genres"]] == ["forum", "news"]


def test_sts_for_people_shows_eight_numbers_genres_and_the_worst_pairs(munjang: Call, tiny_bert_folder: Path, tmp_path: Path) -> None:
    file = write_sts(tmp_path / "sts.tsv")
    found = munjang("evaluate", "sts", file, "--model", tiny_bert_folder, "--resamples", 100, "--worst", 2, "--same-at", 0.5)
    assert found.code == 0, found.err
    assert len(re.findall(r"-?\d+\.\d\d to -?\d+\.\d\d", found.out)) == 8
    for word in ("cosine", "dot", "euclidean", "manhattan", "forum", "news", "same or different: F1"):
        assert word in found.out
    assert len(re.findall(r"sts\.tsv line \d+", found.out)) == 2
    assert f"{len(PAIRS)} rows" in found.err


def test_a_text_of_the_worst_pairs_cannot_steer_the_terminal(munjang: Call, tiny_bert_folder: Path, tmp_path: Path) -> None:
    file = write_korsts(tmp_path / "sts.tsv", quoted="rain \x1b[31m snow")
    found = munjang("evaluate", "sts", file, "--model", tiny_bert_folder, "--resamples", 0, "--worst", 50)
    assert "\x1b" not in found.out
    assert r"\x1b[31m" in found.out


def test_a_report_is_written_beside_the_table(munjang: Call, tiny_bert_folder: Path, tmp_path: Path) -> None:
    file, report = write_sts(tmp_path / "sts.tsv"), tmp_path / "report.json"
    found = munjang("evaluate", "sts", file, "--model", tiny_bert_folder, "--resamples", 0, "-o", report)
    assert "Spearman" in found.out
    assert json.loads(report.read_text(encoding="utf-8"))["file"] == "sts.tsv"
    lost = munjang("evaluate", "sts", file, "-o", tmp_path / "nowhere" / "report.json")
    assert (lost.code, lost.out) == (2, "")


def test_an_open_quotation_mark_loses_no_row_of_korsts(munjang: Call, tiny_bert_folder: Path, tmp_path: Path) -> None:
    file = write_korsts(tmp_path / "sts-test.tsv")
    found = munjang("evaluate", "sts", tmp_path, "--model", tiny_bert_folder, "--resamples", 0, "--json")
    assert (found.json["layout"], found.json["n"]) == ("korsts", len(PAIRS) + 1)
    piped = munjang("evaluate", "sts", "-", "--model", tiny_bert_folder, "--resamples", 0, "--json", stdin=file.read_text(encoding="utf-8"))
    assert piped.json["spearman_cosine"] == found.json["spearman_cosine"]


def test_korsts_has_1379_test_rows(munjang: Call, tiny_bert_folder: Path) -> None:
    folder = _korsts()
    found = munjang("evaluate", "sts", folder, "--model", tiny_bert_folder, "--resamples", 0, "--json")
    assert found.json["n"] == 1_379
    assert len(found.json["genres"]) == 3
    assert munjang("evaluate", "sts", folder, "--split", "dev", "--model", tiny_bert_folder, "--resamples", 0, "--json").json["n"] == 1_500


@pytest.mark.parametrize(
    ("line", "options", "code", "message"),
    [
        ("the rain\tthe sun\t7", (), 3, "sts.tsv line 12: the score is 7, expected 0 to 1"),
        ("the rain\tthe sun\twarm", (), 3, "expected a number"),
        ("the rain\t\t1", (), 3, "expected a sentence"),
        ("", ("--layout", "korstss"), 2, "did you mean korsts?"),
        ("", ("--column", "a"), 2, "expected for example --column a=sentence1"),
        ("", ("--column", "a=left", "--column", "b=sentence2", "--column", "score=score"), 3, "no column 'left'"),
        ("", ("--layout", "korsts", "--column", "a=b"), 2, "expected one of them"),
    ],
)
def test_bad_input_is_named_with_its_line(
    munjang: Call, tiny_bert_folder: Path, tmp_path: Path, line: str, options: tuple[str, ...], code: int, message: str
) -> None:
    file = write_sts(tmp_path / "sts.tsv")
    file.write_text(
        file.read_text(encoding="utf-8").replace("\tnews", "").replace("\tforum", "").replace("\tgenre", "") + line, encoding="utf-8"
    )
    found = munjang("evaluate", "sts", file, "--model", tiny_bert_folder, *options)
    assert (found.code, found.out) == (code, "")
    assert message in found.err
    assert "internal" not in found.err


def test_skip_bad_counts_and_names_the_rows(munjang: Call, tiny_bert_folder: Path, tmp_path: Path) -> None:
    file = write_sts(tmp_path / "sts.tsv")
    file.write_text(file.read_text(encoding="utf-8") + "the rain\tthe sun\t7\tnews\n", encoding="utf-8")
    found = munjang("evaluate", "sts", file, "--model", tiny_bert_folder, "--resamples", 0, "--skip-bad", "--json")
    assert (found.json["n"], found.json["skipped"]) == (len(PAIRS), 1)
    assert "the score is 7" in found.err


@pytest.mark.parametrize(("same", "different"), [("1", "0"), ("yes", "no")])
def test_pairs_of_equal_sentences_are_told_apart(munjang: Call, tiny_bert_folder: Path, tmp_path: Path, same: str, different: str) -> None:
    file = write_pairs(tmp_path / "pairs.tsv", same=same, different=different)
    meaning = () if same == "1" else ("--label", f"{same}=same", "--label", f"{different}=different")
    found = munjang("evaluate", "pairs", file, *meaning, "--model", tiny_bert_folder, "--json", "--resamples", 50)
    assert found.code == 0, found.err
    assert (found.json["n"], found.json["positives"]) == (20, 10)
    assert found.json["cosine_ap"] == pytest.approx(1.0)
    assert "F1 threshold" in munjang("evaluate", "pairs", file, *meaning, "--model", tiny_bert_folder, "--resamples", 50).out


def test_labels_without_a_meaning_are_refused(munjang: Call, tiny_bert_folder: Path, tmp_path: Path) -> None:
    file = write_pairs(tmp_path / "pairs.tsv", same="yes", different="no")
    found = munjang("evaluate", "pairs", file, "--model", tiny_bert_folder)
    assert found.code == 3
    assert "'yes', expected 1 (same) or 0 (different)" in found.err
    assert munjang("evaluate", "pairs", file, "--label", "yes=maybe").code == 2


def test_nli_says_that_it_needs_a_classifier_and_scores_predictions(munjang: Call, tmp_path: Path) -> None:
    file = tmp_path / "nli.tsv"
    rows = [("entailment", "a"), ("neutral", "b"), ("-", "c"), ("contradiction", "d")]
    file.write_text("sentence1\tsentence2\tgold_label\n" + "".join(f"the rain {x}\tsun\t{label}\n" for label, x in rows), encoding="utf-8")
    refused = munjang("evaluate", "nli", file)
    assert refused.code == 2
    assert 'kind = "cross"' in refused.err
    predicted = tmp_path / "predicted.txt"
    predicted.write_text("entailment\nneutral\nneutral\n", encoding="utf-8")
    found = munjang("evaluate", "nli", file, "--predictions", predicted, "--json")
    assert found.json["accuracy"] == pytest.approx(2 / 3)
    assert found.json["confusion"]["contradiction"]["neutral"] == 1
    assert "predicted" in munjang("evaluate", "nli", file, "--predictions", predicted).out
    predicted.write_text("entailment\n", encoding="utf-8")
    assert "1 prediction, expected 3" in munjang("evaluate", "nli", file, "--predictions", predicted).err


def test_triplets_whose_positive_is_the_anchor_are_all_right(munjang: Call, tiny_bert_folder: Path, tmp_path: Path) -> None:
    file = tmp_path / "triplets.jsonl"
    rows = [{"anchor": f"the {a}", "positive": f"the {a}", "negative": f"{b} is in winter"} for a, b in pairwise(NOUNS)]
    file.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    found = munjang("evaluate", "triplets", file, "--model", tiny_bert_folder, "--json")
    assert (found.json["n"], found.json["cosine_accuracy"]) == (9, 1.0)
    assert "100.00" in munjang("evaluate", "triplets", file, "--model", tiny_bert_folder).out
    assert munjang("evaluate", "triplets", file, "--model", tiny_bert_folder, "--margin", 2, "--json").json["cosine_accuracy"] == 0.0


def test_clusters_of_repeated_sentences_are_found(munjang: Call, tiny_bert_folder: Path, tmp_path: Path) -> None:
    pytest.importorskip("sklearn", reason="k-means needs the extra topics")
    file = tmp_path / "texts.csv"
    file.write_text("text,label\n" + "the rain is in the river,weather\nsleep cat sleep,pets\n" * 5, encoding="utf-8")
    found = munjang("evaluate", "clustering", file, "--model", tiny_bert_folder, "--seeds", 2, "--json")
    assert (found.json["k"], found.json["v_measure"]) == (2, pytest.approx(1.0))
    assert munjang("evaluate", "clustering", file, "--model", tiny_bert_folder, "-k", 11).code == 2


def test_translations_are_read_from_one_file_or_from_two(munjang: Call, tiny_bert_folder: Path, tmp_path: Path) -> None:
    left, right, both = tmp_path / "news.ko", tmp_path / "news.en", tmp_path / "both.tsv"
    left.write_text("비가 온다\n눈이 온다\n", encoding="utf-8")
    right.write_text("비가 온다\n눈이 온다\n", encoding="utf-8")
    both.write_text("source\ttarget\n비가 온다\t비가 온다\n눈이 온다\t눈이 온다\n", encoding="utf-8")
    of_two = munjang("evaluate", "translation", left, right, "--model", tiny_bert_folder, "--json")
    of_one = munjang("evaluate", "translation", both, "--model", tiny_bert_folder, "--json")
    assert of_two.json["mean_accuracy"] == of_one.json["mean_accuracy"] == 1.0
    right.write_text("비가 온다\n\n", encoding="utf-8")
    assert "news.en line 2: empty" in munjang("evaluate", "translation", left, right, "--model", tiny_bert_folder).err
    right.write_text("비가 온다\n", encoding="utf-8")
    assert munjang("evaluate", "translation", left, right, "--model", tiny_bert_folder).code == 3


def test_a_student_is_as_far_from_its_teacher_as_sentence_transformers_says(
    munjang: Call, tiny_folder: Callable[..., Path], tmp_path: Path
) -> None:
    evaluation = pytest.importorskip("sentence_transformers.sentence_transformer.evaluation")
    from sentence_transformers import SentenceTransformer

    teacher, student = tiny_folder("bert"), tiny_folder("roberta")
    source, target = ["비가 온다", "눈이 온다"], ["it rains", "it snows"]
    pairs = tmp_path / "pairs.tsv"
    pairs.write_text("source\ttarget\n" + "".join(f"{a}\t{b}\n" for a, b in zip(source, target, strict=True)), encoding="utf-8")
    found = munjang("evaluate", "mse", pairs, "--teacher", teacher, "--model", student, "--json").json
    made = evaluation.MSEEvaluator(source, target, teacher_model=SentenceTransformer(str(teacher)), write_csv=False)
    assert found["negative_mse"] == pytest.approx(made(SentenceTransformer(str(student)))["negative_mse"], rel=1e-3)
    assert munjang("evaluate", "mse", pairs, "--teacher", teacher, "--model", teacher, "--json").json["source_mse"] == 0
    assert munjang("evaluate", "mse", pairs, "--model", student).code == 2


def test_retrieval_writes_a_run_that_scores_the_same(munjang: Call, tiny_bert_folder: Path, tmp_path: Path) -> None:
    folder, run = write_beir(tmp_path / "beir"), tmp_path / "run.trec"
    found = munjang("evaluate", "retrieval", folder, "--model", tiny_bert_folder, "-k", 1, "-k", 3, "--save-run", run, "--json")
    assert found.code == 0, found.err
    assert (found.json["queries"], found.json["documents"], found.json["ndcg@1"]) == (4, 10, 1.0)
    again = munjang("evaluate", "retrieval", folder, "--run", run, "-k", 1, "-k", 3, "--json")
    qrels = tmp_path / "qrels.txt"
    qrels.write_text("".join(f"q{number} 0 d{number} 1\n" for number in range(4)), encoding="utf-8")
    alone = munjang("evaluate", "retrieval", qrels, "--run", run, "-k", 1, "-k", 3, "--json")
    assert again.json["recall@3"] == alone.json["recall@3"] == found.json["recall@3"]
    assert "95 % of ndcg" in munjang("evaluate", "retrieval", folder, "--model", tiny_bert_folder).out
    assert munjang("evaluate", "retrieval", folder, "--run", run, "--model", tiny_bert_folder).code == 2
    assert "there is test.tsv" in munjang("evaluate", "retrieval", folder, "--split", "dev").err


def test_reranking_mends_a_run_that_is_upside_down(munjang: Call, tiny_bert_folder: Path, tmp_path: Path) -> None:
    folder, run = write_beir(tmp_path / "beir"), tmp_path / "first.trec"
    run.write_text(
        "".join(f"q{q} Q0 d{d} {d + 1} {-d - (50 if d == q else 0)} first\n" for q in range(4) for d in range(10)), encoding="utf-8"
    )
    found = munjang("evaluate", "rerank", folder, "--run", run, "--model", tiny_bert_folder, "-k", 1, "--json")
    assert found.code == 0, found.err
    assert (found.json["before"]["ndcg@1"], found.json["ndcg@1"]) == (0.0, 1.0)
    assert "+100.00" in munjang("evaluate", "rerank", folder, "--run", run, "--model", tiny_bert_folder, "-k", 1).out
    same = munjang("evaluate", "rerank", folder, "--first", tiny_bert_folder, "--model", tiny_bert_folder, "-k", 3, "--json")
    assert same.json["gain"]["difference"] == pytest.approx(0.0)
    assert munjang("evaluate", "rerank", folder).code == 2


def test_no_task_and_an_unknown_task_are_usage_errors(munjang: Call) -> None:
    assert munjang("evaluate").code == munjang("evaluate", "stss", "file").code == 2
    assert "sts" in munjang("evaluate").err
    assert munjang("evaluate", "sts", "no-such-file.tsv").code == 3


def test_every_line_of_the_documentation_works(
    munjang: Call, tiny_bert_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tiny = registry.Found("all-MiniLM-L6-v2", tiny_bert_folder, "package")
    monkeypatch.setattr(registry, "_find_in_package", lambda name: tiny if name == tiny.name else None)
    monkeypatch.setattr(registry, "_find_default", lambda: tiny)
    monkeypatch.chdir(tmp_path)
    page = ROOT / "docs/evaluate.md"
    write_shown_files(page, tmp_path)
    assert run_lines(page, munjang) >= 12
