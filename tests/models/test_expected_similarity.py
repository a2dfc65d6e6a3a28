from __future__ import annotations

import json
import shutil
from functools import cache
from pathlib import Path

import pytest

from munjang.errors import DamagedFile
from munjang.models.expected_similarity import FILE, FORMAT, SimilarityCurve, describe_expected, detect_languages, find_curve, read_curves
from munjang.models.registry import resolve
from munjang.models.sentence_encoder import SentenceEncoder

BUNDLED = "ko-en-small"


@cache
def load_bundled(compute: str) -> SentenceEncoder:
    return SentenceEncoder.load(BUNDLED, compute=compute)  # type: ignore[arg-type]


def write(folder: Path, **fields: object) -> Path:
    curve = {"fingerprint": "f", "languages": "ko-ko", "points": [[0.4, 0.0], [0.9, 4.0]], **fields}
    (folder / FILE).write_text(json.dumps({"format": FORMAT, "curves": [curve]}), encoding="utf-8")
    return folder


@pytest.mark.parametrize("compute", ["float32", "int8"])
@pytest.mark.parametrize(
    ("a", "b", "languages"), [("비", "눈", "ko-ko"), ("rain", "snow", "en-en"), ("비", "rain", "en-ko"), ("rain", "비", "en-ko")]
)
def test_the_bundled_model_has_a_curve_for_every_pair_of_its_languages(a: str, b: str, languages: str, compute: str) -> None:
    model = load_bundled(compute)
    curve = find_curve(model.folder.path, fingerprint=model.fingerprint, a=a, b=b)
    assert curve is not None
    assert curve.languages == languages
    steps = [curve.expect(cosine / 100) for cosine in range(-100, 101)]
    assert steps == sorted(steps)
    assert 0 <= steps[0] < 0.5
    assert 4.5 < steps[-1] <= 5


def test_the_file_says_what_it_was_measured_on() -> None:
    told = json.loads((resolve(BUNDLED).path / FILE).read_text(encoding="utf-8"))
    assert "KorSTS dev" in told["source"]
    assert "STS benchmark dev" in told["source"]
    assert all(curve["pairs"] >= 1500 and 0 < curve["error"] < 0.8 for curve in told["curves"])


def test_a_curve_of_other_vectors_does_not_count(tmp_path: Path) -> None:
    write(tmp_path)
    assert find_curve(tmp_path, fingerprint="f", a="비", b="눈") is not None
    assert find_curve(tmp_path, fingerprint="g", a="비", b="눈") is None
    assert find_curve(tmp_path, fingerprint="f", a="비", b="rain") is None
    assert find_curve(tmp_path / "elsewhere", fingerprint="f", a="비", b="눈") is None


def test_a_folder_made_from_the_bundled_one_with_other_vectors_gets_no_verdict(tmp_path: Path) -> None:
    copied = tmp_path / "copy"
    shutil.copytree(resolve(BUNDLED).path, copied)
    other = SentenceEncoder.load(copied, max_length=16)
    assert find_curve(copied, fingerprint=other.fingerprint, a="비", b="눈") is None


def test_a_curve_is_straight_between_its_points_and_flat_beyond_them() -> None:
    curve = SimilarityCurve("f", "ko-ko", ((0.4, 0.0), (0.8, 4.0)))
    assert [round(curve.expect(cosine), 6) for cosine in (-1.0, 0.4, 0.5, 0.8, 1.0)] == [0, 0, 1, 4, 4]


def test_words_stand_for_the_nearest_whole_score() -> None:
    said = [describe_expected(score) for score in (5, 4.5, 4.49, 3.5, 2.5, 1.5, 1.49, 0)]
    assert said == [
        "nearly the same",
        "nearly the same",
        "very similar",
        "very similar",
        "similar",
        "somewhat similar",
        "not similar",
        "not similar",
    ]


@pytest.mark.parametrize(
    ("a", "b", "pair"),
    [
        ("비가 온다", "It rains", "en-ko"),
        ("iPhone 14 Pro 케이스 추천해 주세요", "아이폰 케이스", "ko-ko"),
        ("The Korean word 비 means rain", "Rain", "en-en"),
        ("雨が降る", "It rains", None),
        ("Идёт дождь", "비가 온다", None),
        ("12345 !!", "비가 온다", None),
        ("", "", None),
    ],
)
def test_languages_are_told_by_letters(a: str, b: str, pair: str | None) -> None:
    assert detect_languages(a, b) == pair


@pytest.mark.parametrize(
    "points",
    [
        [],
        [[0.5, 2.0], [0.5, 3.0]],
        [[0.4, 3.0], [0.5, 2.0]],
        [[0.4, -1.0]],
        [[0.4, 5.5]],
        [["x", 1.0]],
        [[0.4]],
        None,
        [[float("nan"), 1.0]],
    ],
)
def test_a_damaged_curve_is_refused(tmp_path: Path, points: object) -> None:
    with pytest.raises(DamagedFile, match=FILE):
        read_curves(write(tmp_path, points=points))


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"format": "other", "curves": []}', "[" * 100_000])
def test_a_file_that_is_something_else_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / FILE).write_text(text, encoding="utf-8")
    with pytest.raises(DamagedFile, match=FILE):
        read_curves(tmp_path)
