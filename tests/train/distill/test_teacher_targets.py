"""Projection of a wider teacher: orthonormal directions, the same as scikit-learn's, the best that there are."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from munjang.errors import InputError
from munjang.train.distill.teacher_targets import VectorBlocks, encode_with_teacher, find_principal_axes, load_axes, open_array, share_kept
from munjang.types import Vectors


@pytest.fixture(scope="module")
def rows() -> np.ndarray:
    chance = np.random.default_rng(5)
    return (chance.normal(size=(200, 12)) * np.linspace(3, 0.1, 12) @ np.linalg.qr(chance.normal(size=(12, 12)))[0]).astype(np.float32)


def test_directions_are_orthonormal_and_keep_the_most(rows: np.ndarray) -> None:
    axes = find_principal_axes(rows, 5)
    assert np.allclose(axes.T @ axes, np.eye(5), atol=1e-5)
    best = share_kept(rows, axes)
    chance = np.random.default_rng(1)
    others = [np.linalg.qr(chance.normal(size=(12, 5)))[0].astype(np.float32) for _ in range(20)]
    assert best > max(share_kept(rows, other) for other in others)
    assert share_kept(rows, find_principal_axes(rows, 12)) == pytest.approx(1, abs=1e-5)


def test_directions_are_those_of_scikit_learn(rows: np.ndarray) -> None:
    decomposition = pytest.importorskip("sklearn.decomposition", reason="the authority scikit-learn is not installed")
    found = decomposition.TruncatedSVD(5, algorithm="arpack", random_state=0).fit(rows.astype(np.float64)).components_
    assert np.allclose(np.abs((find_principal_axes(rows, 5) * found.T).sum(axis=0)), 1, atol=1e-4)


def test_too_few_texts_for_the_dimensions_are_refused(rows: np.ndarray) -> None:
    with pytest.raises(InputError, match="give 5 texts or more"):
        find_principal_axes(rows[:4], 5)


def test_directions_are_kept_and_computed_again_when_damaged(rows: np.ndarray, tmp_path: Path) -> None:
    blocks = VectorBlocks((rows,), 200, "key")
    first = np.array(load_axes(blocks, 5, tmp_path))
    path = next(tmp_path.glob("*.npy"))
    path.write_bytes(path.read_bytes()[:-1])
    assert np.array_equal(load_axes(blocks, 5, tmp_path), first)
    assert load_axes(blocks, 4, tmp_path).shape == (12, 4)


class Counting:
    """An encoder that counts what it is asked; a text's vector is made of its characters."""

    dimension = 3

    def __init__(self, fingerprint: str = "one") -> None:
        self.fingerprint = fingerprint
        self.asked = 0

    def encode(self, texts: Iterable[str], /) -> Vectors:
        listed = list(texts)
        self.asked += len(listed)
        return np.array([[len(text), sum(map(ord, text)), len(self.fingerprint)] for text in listed], np.float32)


TEXTS = [f"text {number}" for number in range(10)]


def test_texts_are_encoded_once(tmp_path: Path) -> None:
    teacher = Counting()
    first = encode_with_teacher(teacher, TEXTS, tmp_path, block=4)
    again = encode_with_teacher(teacher, TEXTS, tmp_path, block=4)
    assert teacher.asked == 10
    rows = np.array([9, 0, 5, 5])
    assert np.array_equal(first.rows(rows), again.rows(rows))
    assert np.array_equal(first.rows(rows), Counting().encode([TEXTS[row] for row in rows]))
    assert len(first) == 10
    assert first.key == again.key


def test_texts_added_at_the_end_cost_only_themselves(tmp_path: Path) -> None:
    teacher = Counting()
    encode_with_teacher(teacher, TEXTS[:8], tmp_path, block=4)
    encode_with_teacher(teacher, TEXTS, tmp_path, block=4)
    assert teacher.asked == 10


@pytest.mark.parametrize("change", ["teacher", "text", "order"])
def test_anything_else_changed_is_computed_anew(tmp_path: Path, change: str) -> None:
    before = encode_with_teacher(Counting(), TEXTS, tmp_path)
    teacher = Counting("other" if change == "teacher" else "one")
    texts = {"teacher": TEXTS, "text": ["changed", *TEXTS[1:]], "order": TEXTS[::-1]}[change]
    after = encode_with_teacher(teacher, texts, tmp_path)
    assert teacher.asked == 10
    assert before.key != after.key
    assert np.array_equal(after.rows(np.arange(10)), teacher.encode(texts))


@pytest.mark.parametrize("damage", ["bit", "cut", "gone", "no checksum", "empty checksum", "pickle"])
def test_a_damaged_block_is_computed_again_and_the_others_are_not(tmp_path: Path, damage: str) -> None:
    teacher = Counting()
    whole = encode_with_teacher(teacher, TEXTS, tmp_path, block=4).rows(np.arange(10))
    path = next(path for path in sorted(tmp_path.glob("*.npy")) if len(np.load(path)) == 4)
    data = bytearray(path.read_bytes())
    data[-3] ^= 1
    actions = {
        "bit": lambda: path.write_bytes(data),
        "cut": lambda: path.write_bytes(data[:-5]),
        "gone": path.unlink,
        "no checksum": path.with_suffix(".sha256").unlink,
        "empty checksum": lambda: path.with_suffix(".sha256").write_text(""),
        "pickle": lambda: np.save(path, np.array([{}], dtype=object)),
    }
    actions[damage]()
    again = encode_with_teacher(teacher, TEXTS, tmp_path, block=4)
    assert teacher.asked == 14
    assert np.array_equal(again.rows(np.arange(10)), whole)


def test_an_interrupted_teacher_goes_on_where_it_stopped(tmp_path: Path) -> None:
    class Stopping(Counting):
        def encode(self, texts: Iterable[str], /) -> Vectors:
            if self.asked >= 8:
                raise KeyboardInterrupt
            return super().encode(texts)

    with pytest.raises(KeyboardInterrupt):
        encode_with_teacher(Stopping(), TEXTS, tmp_path, block=4)
    (tmp_path / ".partial-x-1").write_bytes(b"what a killed process left")
    teacher = Counting()
    encode_with_teacher(teacher, TEXTS, tmp_path, block=4)
    assert teacher.asked == 2
    assert not list(tmp_path.glob(".partial-*"))


def test_a_teacher_with_broken_numbers_is_refused_and_nothing_is_kept(tmp_path: Path) -> None:
    class Broken(Counting):
        def encode(self, texts: Iterable[str], /) -> Vectors:
            return super().encode(texts) * np.float32(np.nan)

    with pytest.raises(InputError, match="not finite"):
        encode_with_teacher(Broken(), TEXTS, tmp_path)
    assert not list(tmp_path.iterdir())
    with pytest.raises(InputError, match="no texts"):
        encode_with_teacher(Counting(), [], tmp_path)


def test_a_long_job_says_how_far_it_is(tmp_path: Path) -> None:
    times = iter(range(0, 10_000, 40))
    said: list[str] = []
    encode_with_teacher(Counting(), TEXTS, tmp_path, block=4, show=said.append, clock=lambda: float(next(times)))
    assert said[0] == "teacher: encodes 10 texts (0 were encoded before)"
    assert said[1].startswith("teacher: 4 of 10 texts")


def test_an_array_of_another_shape_or_type_is_not_taken(tmp_path: Path) -> None:
    encode_with_teacher(Counting(), TEXTS, tmp_path)
    path = next(tmp_path.glob("*.npy"))
    assert open_array(path, (10, 3)) is not None
    assert open_array(path, (10, 4)) is None
    assert open_array(tmp_path / "missing.npy", (10, 3)) is None


@given(st.integers(1, 7), st.lists(st.integers(0, 12), max_size=20))
def test_blocks_read_like_one_array(size: int, asked: list[int]) -> None:
    whole = np.arange(39, dtype=np.float32).reshape(13, 3)
    blocks = VectorBlocks(tuple(whole[start : start + size] for start in range(0, 13, size)), size, "")
    assert np.array_equal(blocks.rows(np.array(asked, np.int64)), whole[asked].reshape(-1, 3))
