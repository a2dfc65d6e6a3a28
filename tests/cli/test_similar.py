from __future__ import annotations

import csv
import xml.etree.ElementTree as ET
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from munjang.models.sentence_encoder import SentenceEncoder


def test_two_sentences_get_the_cosine_of_their_vectors(munjang: Callable[..., Any], tiny_bert_folder: Path) -> None:
    u, v = SentenceEncoder.load(tiny_bert_folder).encode(["the rain", "비가 온다"]).astype(np.float64)
    cosine = u @ v / np.linalg.norm(u) / np.linalg.norm(v)
    outcome = munjang("similar", "the rain", "비가 온다", "--json", "--model", tiny_bert_folder)
    assert outcome.json == {"score": pytest.approx(cosine, abs=5e-6)}


def test_a_model_without_measured_curves_shows_only_the_number(munjang: Callable[..., Any], tiny_bert_folder: Path) -> None:
    outcome = munjang("similar", "-", "the rain", "--model", tiny_bert_folder, stdin="the rain\n")
    assert outcome.out == "1.00\n"


@pytest.mark.parametrize("compute", ["float32", "int8"])
@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("비가 온다", "주가가 폭락했다"),
        ("It is raining", "The stock market crashed"),
        ("비가 온다", "The stock market crashed"),
        ("It is raining", "주가가 폭락했다"),
    ],
)
def test_rain_and_a_stock_crash_are_not_similar(munjang: Callable[..., Any], a: str, b: str, compute: str) -> None:
    answer = munjang("similar", a, b, "--compute", compute, "--json").json
    assert answer["words"] == "not similar"
    assert 0 <= answer["expected"] < 1.5
    assert munjang("similar", a, b, "--compute", compute).out == f"{answer['score']:.2f} (not similar)\n"


def test_the_same_said_differently_is_very_similar(munjang: Callable[..., Any]) -> None:
    assert munjang("similar", "비가 온다", "비가 내린다").out == "0.95 (very similar)\n"
    assert munjang("similar", "A man is playing guitar", "A man plays the guitar").out == "0.99 (nearly the same)\n"


def test_texts_in_other_alphabets_get_only_the_number(munjang: Callable[..., Any]) -> None:
    assert set(munjang("similar", "雨が降っている", "It is raining", "--json").json) == {"score"}


@pytest.fixture
def own_calibration(munjang: Callable[..., Any], tiny_bert_folder: Path, tmp_path: Path) -> Path:
    labelled = tmp_path / "pairs.csv"
    same = [f"the rain {word},the rain {word},1" for word in ("cat", "dog", "sun", "snow", "book")]
    different = [f"the {word},{other},0" for word, other in zip(("cat", "dog", "sun"), ("비가 온다", "겨울", "train of"), strict=True)]
    different += ["winter,coffee is,0", "눈이 온다,river,0"]
    labelled.write_text("\n".join(["sentence1,sentence2,label", *same, *different]) + "\n", encoding="utf-8")
    target = tmp_path / "calibration.json"
    outcome = munjang("calibrate", labelled, "--method", "logistic", "--model", tiny_bert_folder, "-o", target)
    assert outcome.code == 0, outcome.err
    return target


def test_the_users_own_calibration_says_a_probability(munjang: Callable[..., Any], tiny_bert_folder: Path, own_calibration: Path) -> None:
    options = ("--model", tiny_bert_folder, "--calibration", own_calibration)
    probability = munjang("similar", "the rain", "the rain", *options, "--json").json["probability"]
    assert 0.5 < probability <= 1
    assert munjang("similar", "the rain", "the rain", *options).out == f"1.00 (the same with probability {probability:.2f})\n"


def test_a_calibration_of_another_model_is_refused(munjang: Callable[..., Any], own_calibration: Path) -> None:
    outcome = munjang("similar", "the rain", "the rain", "--calibration", own_calibration)
    assert outcome.code == 2
    assert "measured with" in outcome.err
    assert "munjang calibrate" in outcome.err


def test_a_calibration_goes_with_two_sentences_and_their_cosine(
    munjang: Callable[..., Any], texts_file: Path, own_calibration: Path
) -> None:
    assert munjang("similar", "--matrix", texts_file, "--calibration", own_calibration).code == 2
    assert munjang("similar", "a", "b", "--metric", "dot", "--calibration", own_calibration).code == 2


def test_a_cut_is_said_with_the_commands_option(munjang: Callable[..., Any], tiny_bert_folder: Path) -> None:
    outcome = munjang("similar", "cat", "sleep " * 100, "--model", tiny_bert_folder)
    assert "longer than 24 tokens; only the beginning was read (munjang encode --long-text window reads all)" in outcome.err
    assert "encode_with_report" not in outcome.err


def test_meaning_beats_words(munjang: Callable[..., Any], minilm: str) -> None:
    near = munjang("similar", "The cat sleeps", "A kitten is napping", "--model", minilm, "--json").json["score"]
    far = munjang("similar", "The cat sleeps", "The bank closes", "--model", minilm, "--json").json["score"]
    assert near > far + 0.2


@pytest.mark.parametrize("suffix", [".npy", ".csv", ".svg", ".html"])
def test_a_matrix_is_written_in_every_form(
    munjang: Callable[..., Any], tiny_bert_folder: Path, texts_file: Path, tmp_path: Path, suffix: str
) -> None:
    target = tmp_path / f"m{suffix}"
    outcome = munjang("similar", "--matrix", texts_file, "-o", target, "--model", tiny_bert_folder, "--json")
    assert outcome.code == 0, outcome.err
    scores = munjang("similar", "--matrix", texts_file, "--model", tiny_bert_folder, "--json").json["scores"]
    np.testing.assert_allclose(np.diag(scores), 1, atol=1e-5)
    if suffix == ".npy":
        np.testing.assert_allclose(np.load(target), scores, atol=1e-6)
    elif suffix == ".csv":
        rows = list(csv.reader(target.read_text(encoding="utf-8").splitlines()))
        assert rows[0] == ["", "the rain is in the river", "비가 많이 온다", "cat"]
        np.testing.assert_allclose(np.array([row[1:] for row in rows[1:]], float), scores, atol=1e-6)
    elif suffix == ".svg":
        ET.parse(target)
    else:
        assert "비가 많이 온다" in target.read_text(encoding="utf-8")


def test_a_matrix_is_a_table_in_the_terminal(munjang: Callable[..., Any], tiny_bert_folder: Path, texts_file: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.txt"
    other.write_text("dog\nsnow\n")
    outcome = munjang("similar", "--matrix", texts_file, other, "--model", tiny_bert_folder)
    assert outcome.code == 0, outcome.err
    assert "1  dog" in outcome.out
    assert "비가 많이 온다" in outcome.out


def test_one_sentence_or_an_empty_file_is_refused(munjang: Callable[..., Any], tiny_bert_folder: Path) -> None:
    assert munjang("similar", "a").code == 2
    assert munjang("similar", "a", "b", "-o", "x.html").code == 2
    assert munjang("similar", "-", "-", "--model", tiny_bert_folder).code == 2
    assert munjang("similar", "--matrix", "-", "-o", "m.txt").code == 2
    assert munjang("similar", "--matrix", "-").code == 3


def test_a_large_table_is_shown_in_part_and_a_huge_one_refused(
    munjang: Callable[..., Any], tiny_bert_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "many.txt"
    file.write_text("".join(f"the cat {number}\n" for number in range(60)), encoding="utf-8")
    shown = munjang("similar", "--matrix", file, "--model", tiny_bert_folder)
    assert shown.code == 0
    assert "60 x 60 scores; the first 50 rows and columns are shown (-o writes all)" in shown.err
    assert "the cat 49" in shown.out
    assert "the cat 50" not in shown.out
    monkeypatch.setattr("munjang.cli.similar.MAX_CELLS", 3_599)
    refused = munjang("similar", "--matrix", file, "--model", tiny_bert_folder)
    assert refused.code == 2
    assert "60 x 60 scores are more than 3,599\n  give smaller files" in refused.err


@pytest.mark.parametrize("metric", ["cosine", "dot", "euclidean", "manhattan"])
def test_metrics_are_those_of_sentence_transformers(
    munjang: Callable[..., Any], tiny_bert_folder: Path, tmp_path: Path, metric: str
) -> None:
    util = pytest.importorskip("sentence_transformers.util")
    texts = ["the rain", "the sun and the moon"]
    vectors = SentenceEncoder.load(tiny_bert_folder).encode(texts)
    compare = {"cosine": util.cos_sim, "dot": util.dot_score, "euclidean": util.euclidean_sim, "manhattan": util.manhattan_sim}[metric]
    expected = compare(vectors, vectors).numpy()
    found = munjang("similar", *texts, "--metric", metric, "--model", tiny_bert_folder, "--json").json
    assert found == {"score": pytest.approx(float(expected[0, 1]), abs=1e-4)}
    (tmp_path / "a.txt").write_text("\n".join(texts))
    whole = munjang("similar", "--matrix", tmp_path / "a.txt", "--metric", metric, "--model", tiny_bert_folder, "--json").json
    np.testing.assert_allclose(whole["scores"], expected, atol=2e-3)


def test_an_empty_standard_input_is_no_sentence(munjang: Callable[..., Any], tiny_bert_folder: Path) -> None:
    found = munjang("similar", "rain", "-", "--model", tiny_bert_folder, stdin="\n")
    assert (found.code, "holds no text" in found.err) == (3, True)
