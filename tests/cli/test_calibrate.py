from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.cli.data_files import write_pairs, write_sts

from munjang.evaluate.calibrate import load_calibration

Call = Callable[..., Any]


@pytest.mark.parametrize("method", ["isotonic", "logistic"])
def test_a_calibration_is_written_and_read_back(munjang: Call, tiny_bert_folder: Path, tmp_path: Path, method: str) -> None:
    file, target = write_pairs(tmp_path / "pairs.tsv"), tmp_path / "calibration.json"
    found = munjang("calibrate", file, "--model", tiny_bert_folder, "--method", method, "-o", target, "--json")
    assert found.code == 0, found.err
    assert (found.json["n"], found.json["positives"]) == (20, 10)
    assert found.json["f1"] > 0.9
    curve = load_calibration(target)
    assert curve.method == method
    assert curve.threshold == found.json["calibration"]["threshold"]
    low, high = curve.probability([curve.threshold - 0.5, 1.0])
    assert low < 0.5 < high


def test_people_see_the_curve_and_the_threshold(munjang: Call, tiny_bert_folder: Path, tmp_path: Path) -> None:
    found = munjang("calibrate", write_pairs(tmp_path / "pairs.tsv"), "--model", tiny_bert_folder)
    assert "probability of the same" in found.out
    assert "call it the same" in found.out


def test_graded_scores_need_a_cut(munjang: Call, tiny_bert_folder: Path, tmp_path: Path) -> None:
    file = write_sts(tmp_path / "sts.tsv", scale=5)
    call = ("calibrate", file, "--model", tiny_bert_folder, "--scale", 0, 5)
    refused = munjang(*call)
    assert (refused.code, "--same-at" in refused.err) == (2, True)
    found = munjang(*call, "--same-at", 2.5, "--json")
    assert found.code == 0, found.err
    assert munjang("calibrate", write_pairs(tmp_path / "pairs.tsv"), "--same-at", 1).code == 2


def test_one_class_and_few_pairs_are_refused(munjang: Call, tiny_bert_folder: Path, tmp_path: Path) -> None:
    file = tmp_path / "pairs.csv"
    file.write_text("sentence1,sentence2,label\n" + "the rain,the sun,1\n" * 6, encoding="utf-8")
    found = munjang("calibrate", file, "--model", tiny_bert_folder)
    assert (found.code, "all alike, expected both 0 and 1" in found.err) == (3, True)
    file.write_text(file.read_text(encoding="utf-8") + "cat,dog,0\n", encoding="utf-8")
    assert "expected at least 5" in munjang("calibrate", file, "--model", tiny_bert_folder).err


def test_a_file_of_another_kind_is_named(munjang: Call, tiny_bert_folder: Path, tmp_path: Path) -> None:
    file = tmp_path / "triplets.tsv"
    file.write_text("anchor\tpositive\tnegative\nthe cat\tthe cat\train\n", encoding="utf-8")
    refused = munjang("calibrate", file, "--model", tiny_bert_folder)
    assert refused.code == 3
    assert "expected pairs labelled same or different" in refused.err
