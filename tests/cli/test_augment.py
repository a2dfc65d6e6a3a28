"""`munjang augment`, and `munjang evaluate` with a cross-encoder."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.cli.data_files import write_beir, write_sts

from munjang import CrossEncoder

Munjang = Callable[..., Any]


def make_cross(folder: Path, names: list[str]) -> Path:
    transformers = pytest.importorskip("transformers", reason="the tiny cross-encoder is made with transformers")
    from tests.conftest import POSITIONS, Tiny, make_config, quiet, randomise, write_tokenizer

    size = write_tokenizer(folder, "bert", 48)
    with quiet():
        config = make_config(Tiny(positions=POSITIONS), size)
        config.id2label = dict(enumerate(names))
        config.label2id = {name: number for number, name in enumerate(names)}
        model = transformers.AutoModelForSequenceClassification.from_config(config).eval()
        randomise(model)
        model.save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def cross(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_cross(tmp_path_factory.mktemp("cross"), ["LABEL_0"])


@pytest.fixture(scope="module")
def classifier(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_cross(tmp_path_factory.mktemp("classifier"), ["neutral", "entailment", "contradiction"])


def test_texts_become_silver_pairs(munjang: Munjang, texts_file: Path, cross: Path, tiny_bert_folder: Path, tmp_path: Path) -> None:
    target = tmp_path / "silver.jsonl"
    found = munjang("augment", texts_file, "--cross", cross, "--model", tiny_bert_folder, "--per-text", "2", "-o", target, "--json")
    assert found.code == 0, found.err
    rows = [json.loads(line) for line in target.read_text(encoding="utf-8").splitlines()]
    assert found.json["pairs"] == len(rows) > 2
    scores = CrossEncoder.load(cross).predict([(row["sentence1"], row["sentence2"]) for row in rows])
    np.testing.assert_allclose([row["score"] for row in rows], scores, atol=1e-6)
    assert "quartiles" in munjang("augment", texts_file, "--cross", cross, "-m", tiny_bert_folder, "-o", tmp_path / "s.csv").out


def test_the_pairs_of_a_file_are_known(munjang: Munjang, cross: Path, tmp_path: Path) -> None:
    gold = tmp_path / "gold.tsv"
    gold.write_text("sentence1\tsentence2\tscore\nthe rain\tthe sun\t4.5\nthe snow\tthe cat\t1\n", encoding="utf-8")
    target = tmp_path / "silver.csv"
    found = munjang("augment", gold, "--cross", cross, "--strategy", "bm25", "-o", target, "--json")
    assert found.code == 0, found.err
    assert found.json["known"] == 2
    lines = target.read_text(encoding="utf-8").splitlines()
    assert lines[0] == "sentence1,sentence2,score"
    assert len(lines) == 1 + 4
    assert not any(line.startswith(("the rain,the sun", "the sun,the rain")) for line in lines)


def test_what_cannot_label_is_refused(munjang: Munjang, texts_file: Path, tiny_bert_folder: Path, classifier: Path, tmp_path: Path) -> None:
    target = tmp_path / "silver.csv"
    assert "holds a sentence encoder" in munjang("augment", texts_file, "--cross", tiny_bert_folder, "-o", target).err
    several = munjang("augment", texts_file, "--cross", classifier, "-m", tiny_bert_folder, "-o", target)
    assert several.code == 3
    assert "one label" in several.err
    assert munjang("augment", texts_file, "--cross", classifier, "-o", tmp_path / "silver.xlsx").code == 2
    assert not target.exists()


def test_sts_of_a_cross_encoder_is_two_correlations(munjang: Munjang, cross: Path, classifier: Path, tmp_path: Path) -> None:
    from munjang.data.read import read_scored_pairs

    scipy = pytest.importorskip("scipy.stats")
    file = write_sts(tmp_path / "sts.tsv")
    found = munjang("evaluate", "sts", file, "--model", cross, "--json", "--resamples", "200")
    assert found.code == 0, found.err
    rows = read_scored_pairs(file).rows
    scores, gold = CrossEncoder.load(cross).predict([(row.a, row.b) for row in rows]), [row.score for row in rows]
    assert found.json["pearson"] == pytest.approx(scipy.pearsonr(scores, gold)[0])
    assert found.json["spearman"] == pytest.approx(scipy.spearmanr(scores, gold)[0])
    assert set(found.json["ci95"]) == {"pearson", "spearman"}
    assert "spearman" in munjang("evaluate", "sts", file, "--model", cross).out
    assert "one label" in munjang("evaluate", "sts", file, "--model", classifier).err


def test_nli_of_a_cross_encoder_goes_by_the_names_of_its_labels(
    munjang: Munjang, classifier: Path, tiny_bert_folder: Path, tmp_path: Path
) -> None:
    names = ["neutral", "entailment", "contradiction"]
    rows = [("the rain is cold", f"the {noun} is in winter", names[n % 3]) for n, noun in enumerate(("sun", "cat", "dog", "book", "snow"))]
    file = tmp_path / "nli.tsv"
    file.write_text("sentence1\tsentence2\tgold_label\n" + "".join("\t".join(row) + "\n" for row in rows), encoding="utf-8")
    found = munjang("evaluate", "nli", file, "--model", classifier, "--json")
    assert found.code == 0, found.err
    logits = CrossEncoder.load(classifier).predict([(a, b) for a, b, _ in rows])
    right = [names[best] == gold for best, (_, _, gold) in zip(logits.argmax(axis=1), rows, strict=True)]
    assert found.json["accuracy"] == pytest.approx(np.mean(right))
    renamed = munjang("evaluate", "nli", file, "--model", classifier, "--labels", "entailment, contradiction,neutral", "--json")
    assert renamed.code == 0, renamed.err
    other = munjang("evaluate", "nli", file, "--model", classifier, "--labels", "yes,no,maybe")
    assert other.code == 3
    assert "none of the model's: yes, no, maybe" in other.err
    refused = munjang("evaluate", "nli", file, "--model", tiny_bert_folder)
    assert refused.code == 2
    assert 'kind = "cross"' in refused.err


def test_a_first_run_is_put_into_the_order_of_a_cross_encoder(
    munjang: Munjang, cross: Path, tiny_bert_folder: Path, tmp_path: Path
) -> None:
    folder = write_beir(tmp_path / "beir")
    found = munjang("evaluate", "rerank", folder, "--first", tiny_bert_folder, "--model", cross, "--json", "--resamples", "50")
    assert found.code == 0, found.err
    assert found.json["pairs"] > 0
    assert "before" in found.json


def test_two_who_label_are_refused(munjang: Munjang, texts_file: Path, cross: Path, tmp_path: Path) -> None:
    refused = munjang("augment", texts_file, "--cosine", "--cross", cross, "-o", tmp_path / "s.csv")
    assert refused.code == 2
    assert "--cosine and --cross both choose the labels\n  leave out one of them" in refused.err


def test_triplets_give_both_of_their_pairs(munjang: Munjang, cross: Path, tmp_path: Path) -> None:
    file = tmp_path / "triplets.tsv"
    file.write_text("anchor\tpositive\tnegative\nthe cat\tthe dog\train\nthe book\tthe train\tsnow\n", encoding="utf-8")
    found = munjang("augment", file, "--cross", cross, "--strategy", "bm25", "-o", tmp_path / "silver.csv", "--json")
    assert found.code == 0, found.err
    assert "6 different texts, 4 pairs of them are known" in found.err
