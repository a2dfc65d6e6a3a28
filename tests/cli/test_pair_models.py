"""evaluate, calibrate and compare take cross-encoders and pair classifiers: scikit-learn's numbers, and a label that must be clear."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.cli.data_files import NOUNS, write_pairs, write_sts
from tests.conftest import write_cross_encoder
from tests.kept_head import keep_head

from munjang import CrossEncoder, PairClassifier
from munjang.evaluate.calibrate import load_calibration

sklearn = pytest.importorskip("sklearn.metrics", reason="scikit-learn is the authority")
Munjang = Callable[..., Any]


@pytest.fixture(scope="module")
def models(tiny_bert_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    root = tmp_path_factory.mktemp("models")
    for name, labels in (("score", 1), ("two", 2), ("three", 3)):
        write_cross_encoder(root / name, labels)
    config = root / "three" / "config.json"
    names = {"0": "contradiction", "1": "entailment", "2": "neutral"}
    config.write_text(json.dumps(json.loads(config.read_text(encoding="utf-8")) | {"id2label": names}), encoding="utf-8")
    kept = keep_head(Path(shutil.copytree(tiny_bert_folder, root / "kept")), labels=("contradiction", "entailment", "neutral"))
    return {name: root / name for name in ("score", "two", "three")} | {"encoder": tiny_bert_folder, "kept": kept / "pair_classifier"}


def read_rows(path: Path) -> tuple[list[tuple[str, str]], list[str]]:
    rows = [line.split("\t") for line in path.read_text(encoding="utf-8").splitlines()[1:]]
    return [(a, b) for a, b, *_ in rows], [row[2] for row in rows]


@pytest.fixture
def nli_file(tmp_path: Path) -> Path:
    labels = ("contradiction", "entailment", "neutral")
    lines = [f"the {noun} is in the river\tthe {noun} sleep\t{labels[number % 3]}" for number, noun in enumerate(NOUNS)]
    path = tmp_path / "nli.tsv"
    path.write_text("sentence1\tsentence2\tgold_label\n" + "\n".join(lines) + "\n", encoding="utf-8")
    return path


def test_pairs_are_judged_by_a_cross_encoders_score(munjang: Munjang, models: dict[str, Path], tmp_path: Path) -> None:
    file = write_pairs(tmp_path / "pairs.tsv")
    pairs, labels = read_rows(file)
    done = munjang("evaluate", "pairs", file, "--model", models["score"], "--resamples", 20, "--json")
    scores = CrossEncoder.load(models["score"]).predict(pairs)
    assert done.json["ap"] == pytest.approx(sklearn.average_precision_score([int(label) for label in labels], scores))
    assert set(done.json["ci95"]) == {"accuracy", "ap"}
    shown = munjang("evaluate", "pairs", file, "--model", models["score"], "--resamples", 0)
    assert "F1 threshold" in shown.out


@pytest.mark.parametrize("name", ["three", "kept"])
def test_of_several_labels_one_means_the_same_and_must_be_named(
    munjang: Munjang, models: dict[str, Path], tmp_path: Path, name: str
) -> None:
    file = write_pairs(tmp_path / "pairs.tsv")
    pairs, labels = read_rows(file)
    refused = munjang("evaluate", "pairs", file, "--model", models[name])
    assert (refused.code, "--positive" in refused.err) == (2, True)
    wrong = munjang("evaluate", "pairs", file, "--model", models[name], "--positive", "yes")
    assert (wrong.code, "entailment" in wrong.err) == (2, True)
    done = munjang("evaluate", "pairs", file, "--model", models[name], "--positive", "entailment", "--resamples", 0, "--json")
    model = CrossEncoder.load(models[name]) if name == "three" else PairClassifier.load(models[name])
    scores = model.predict(pairs, score="softmax")[:, 1]
    assert done.json["ap"] == pytest.approx(sklearn.average_precision_score([int(label) for label in labels], scores))


def test_an_obvious_label_need_not_be_named(munjang: Munjang, models: dict[str, Path], tmp_path: Path) -> None:
    file = write_pairs(tmp_path / "pairs.tsv")
    call = ("evaluate", "pairs", file, "--model", models["two"], "--resamples", 0, "--json")
    assert munjang(*call).json["ap"] == munjang(*call, "--positive", "LABEL_1").json["ap"]
    for model in ("score", "encoder"):
        refused = munjang("evaluate", "pairs", file, "--model", models[model], "--positive", "1")
        assert (refused.code, "labels" in refused.err) == (2, True)


def test_nli_takes_a_kept_classifier(munjang: Munjang, models: dict[str, Path], nli_file: Path) -> None:
    pairs, labels = read_rows(nli_file)
    done = munjang("evaluate", "nli", nli_file, "--model", models["kept"], "--resamples", 0, "--json")
    predicted = PairClassifier.load(models["kept"]).predict_with_report(pairs).predicted
    assert done.json["accuracy"] == pytest.approx(sklearn.accuracy_score(labels, predicted))
    refused = munjang("evaluate", "nli", nli_file, "--model", models["encoder"])
    assert (refused.code, "keep_head" in refused.err) == (2, True)


@pytest.mark.parametrize("name", ["score", "kept"])
def test_calibrate_says_what_a_score_means(munjang: Munjang, models: dict[str, Path], tmp_path: Path, name: str) -> None:
    file, target = write_pairs(tmp_path / "pairs.tsv"), tmp_path / "curve.json"
    positive = ["--positive", "entailment"] if name == "kept" else []
    done = munjang("calibrate", file, "--model", models[name], *positive, "--method", "logistic", "-o", target)
    assert "score" in done.out
    assert "cosine" not in done.out
    pairs, labels = read_rows(file)
    model = PairClassifier.load(models[name]).for_label("entailment") if name == "kept" else CrossEncoder.load(models[name])
    gold, curve = [int(label) for label in labels], load_calibration(target)
    called = [int(score >= curve.threshold) for score in model.predict(pairs)]
    best = max(sklearn.f1_score(gold, [int(s >= at) for s in model.predict(pairs)]) for at in model.predict(pairs))
    assert sklearn.f1_score(gold, called) == pytest.approx(best)
    assert json.loads(target.read_text(encoding="utf-8"))["fingerprint"] == model.fingerprint
    scored = munjang("score", file, "--model", models[name], "--calibration", target, "--json").json
    assert [row["probability"] for row in scored] == pytest.approx(curve.probability(model.predict(pairs)).tolist(), abs=2e-5)
    other = munjang("score", file, "--model", models["three"], "--calibration", target)
    assert (other.code, "measured with" in other.err) == (2, True)
    assert munjang("score", file, "--model", models[name], "--calibration", target, "--score", "logits").code == 2


def test_models_of_different_kinds_are_compared_on_pairs(munjang: Munjang, models: dict[str, Path], tmp_path: Path) -> None:
    pairs, sts = write_pairs(tmp_path / "pairs.tsv"), write_sts(tmp_path / "sts.tsv")
    mixed = munjang("compare", models["encoder"], models["score"], pairs, "--resamples", 20, "--json")
    assert (mixed.json["metric"], mixed.json["a"]) == ("ap", 1.0)
    assert mixed.json["model_b"] == "score"
    assert munjang("compare", models["score"], models["encoder"], sts, "--resamples", 20, "--json").json["metric"] == "spearman"


def test_classifiers_are_compared_by_accuracy_on_classes(munjang: Munjang, models: dict[str, Path], nli_file: Path) -> None:
    done = munjang("compare", models["kept"], models["three"], nli_file, "--resamples", 20, "--json")
    alone = munjang("evaluate", "nli", nli_file, "--model", models["three"], "--resamples", 0, "--json")
    assert (done.json["metric"], done.json["b"], done.json["n"]) == ("accuracy", alone.json["accuracy"], len(NOUNS))
    refused = munjang("compare", models["kept"], models["encoder"], nli_file)
    assert (refused.code, "classifier of pairs" in refused.err) == (2, True)
    assert munjang("compare", models["kept"], models["three"], nli_file, "--metric", "ap").code == 3
