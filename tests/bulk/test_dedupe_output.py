"""Near-duplicates of a bulk folder, out of core, against `munjang.dedupe`, which holds everything."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from munjang import dedupe
from munjang.bulk import dedupe_output as module
from munjang.bulk.dedupe_output import FolderDeduped, dedupe_output
from munjang.bulk.output import open_output
from munjang.errors import InputError, UsageError
from munjang.vectors import inverted_lists

ROWS = 3_000


@pytest.fixture
def many_lists(monkeypatch: pytest.MonkeyPatch) -> None:
    """Deal small collections into lists too, in several runs and files of pairs."""
    monkeypatch.setattr(inverted_lists, "ALONE", 100)
    monkeypatch.setattr(module, "_RUN_BYTES", 2**16)
    monkeypatch.setattr(module, "_LISTS", 4)


def make_vectors(rows: int = ROWS, *, seed: int = 0) -> np.ndarray:
    """Rows around 100 centres, so that neighbours lie in several lists; some are equal."""
    random = np.random.default_rng(seed)
    centre = random.standard_normal((100, 32)) / 6
    vectors = centre[random.integers(0, 100, rows)] + random.standard_normal((rows, 32)) * 0.05
    vectors[rows // 2 : rows // 2 + 50] = vectors[:50]
    return vectors.astype(np.float32)


def save(folder: Path, vectors: np.ndarray) -> Path:
    np.save(folder / "rows.npy", vectors)
    return folder / "rows.npy"


def kept_rows(found: FolderDeduped) -> list[int]:
    return np.setdiff1d(np.arange(found.rows), found.row_G).tolist()


@pytest.mark.usefixtures("many_lists")
@pytest.mark.parametrize("dtype", [np.float32, np.float16])
@pytest.mark.parametrize("threshold", [0.85, 0.95])
def test_the_same_rows_stay_as_in_memory(tmp_path: Path, dtype: type, threshold: float) -> None:
    vectors = make_vectors().astype(dtype)
    held = dedupe(vectors.astype(np.float32), threshold=threshold)
    found = dedupe_output(save(tmp_path, vectors), threshold=threshold, exact=True)
    assert kept_rows(found) == list(held.kept)
    assert found.row_G.tolist() == [each.row for each in held.dropped]
    assert len(held.dropped) > 100


@pytest.mark.usefixtures("many_lists")
def test_what_goes_repeats_a_row_that_stays(tmp_path: Path) -> None:
    vectors = make_vectors()
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    found = dedupe_output(save(tmp_path, vectors), threshold=0.8)
    assert not set(found.kept_G.tolist()) & set(found.row_G.tolist())
    assert (found.kept_G < found.row_G).all()
    np.testing.assert_allclose((unit[found.row_G] * unit[found.kept_G]).sum(axis=1), found.score_G, atol=1e-5)
    assert (found.score_G >= np.float32(0.8) - 1e-6).all()
    kept = unit[kept_rows(found)]
    left = (np.triu(kept @ kept.T, 1) >= 0.8).sum()
    assert left <= 0.002 * len(found.row_G)  # without `exact`


@pytest.mark.usefixtures("many_lists")
def test_a_crowd_of_near_rows_keeps_no_square_of_pairs(tmp_path: Path) -> None:
    """Each row has hundreds of earlier ones near it, of which eight are kept at a time."""
    random = np.random.default_rng(1)
    vectors = (np.eye(8)[random.integers(0, 2, 1_500)] + random.standard_normal((1_500, 8)) * 0.12).astype(np.float32)
    for threshold in (0.6, 0.9, 0.97):
        held = dedupe(vectors, threshold=threshold)
        assert kept_rows(dedupe_output(save(tmp_path, vectors), threshold=threshold, exact=True)) == list(held.kept)


@pytest.mark.usefixtures("many_lists")
def test_the_order_of_rows_decides_only_which_of_near_rows_stays(tmp_path: Path) -> None:
    """Groups of near rows that are clear (all near each other, none near another group's): the same in any order, one of each stays."""
    random = np.random.default_rng(2)
    centre = random.standard_normal((400, 48))
    group = random.integers(0, 400, 2_000)
    vectors = (centre[group] + random.standard_normal((2_000, 48)) * 0.05).astype(np.float32)
    pairs = set()
    for seed in range(3):
        order = np.random.default_rng(seed).permutation(2_000) if seed else np.arange(2_000)
        found = dedupe_output(save(tmp_path, vectors[order]), threshold=0.95)
        stays = dict(zip(found.row_G.tolist(), found.kept_G.tolist(), strict=True))
        assert all(group[order[row]] == group[order[kept]] for row, kept in stays.items())
        assert sorted(group[order[kept_rows(found)]]) == sorted(set(group.tolist()))
        first = {int(group[order[row]]): row for row in reversed(range(2_000))}
        assert kept_rows(found) == sorted(first.values())
        pairs.add(len(found.row_G))
    assert len(pairs) == 1


def test_rows_of_zeros_and_a_single_row(tmp_path: Path) -> None:
    assert kept_rows(dedupe_output(save(tmp_path, np.zeros((3, 4), dtype=np.float32)))) == [0]
    assert kept_rows(dedupe_output(save(tmp_path, np.ones((1, 4), dtype=np.float32)))) == [0]


def test_bad_rows_are_refused(tmp_path: Path, encode: Callable[..., Path], news: Path) -> None:
    with pytest.raises(InputError, match="NaN"):
        dedupe_output(save(tmp_path, np.full((2, 4), np.nan, dtype=np.float32)))
    with pytest.raises(InputError, match="no row"):
        dedupe_output(save(tmp_path, np.zeros((0, 4), dtype=np.float32)))
    with pytest.raises(InputError, match="neither the folder"):
        dedupe_output(tmp_path)
    with pytest.raises(InputError, match="expected rows of"):
        dedupe_output(save(tmp_path, np.zeros(4, dtype=np.float32)))
    (tmp_path / "no.npy").write_text("no array")
    with pytest.raises(InputError, match=r"is no \.npy file"):
        dedupe_output(tmp_path / "no.npy")
    with pytest.raises(InputError, match="no such file"):
        dedupe_output(tmp_path / "none.npy")
    with pytest.raises(UsageError, match="binary"):
        dedupe_output(encode(news, tmp_path / "bits", precision="binary"))


@pytest.mark.parametrize("precision", ["float32", "int8"])
def test_a_folder_goes_by_its_texts_and_vectors(tmp_path: Path, encode: Callable[..., Path], news: Path, precision: str) -> None:
    folder = encode(news, tmp_path / "out", precision=precision)
    blocks = list(open_output(folder).blocks())
    texts = [text for block in blocks for text in block.texts]
    found = dedupe_output(folder, threshold=0.999)
    assert found.rows == 90
    same = {texts[row] for row in kept_rows(found)}
    assert set(texts) >= same
    if precision == "float32":
        vectors = np.concatenate([block.vectors_ND for block in blocks])
        assert kept_rows(found) == list(dedupe(vectors, texts=texts, threshold=0.999).kept)


def test_a_working_folder_of_others_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "letter.txt").write_text("mine")
    with pytest.raises(InputError, match="not a working folder"):
        dedupe_output(save(tmp_path, make_vectors(200)), work=tmp_path / "work")
    assert (tmp_path / "work" / "letter.txt").read_text() == "mine"


def test_a_removal_that_was_cut_short_is_no_stranger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, work = save(tmp_path, make_vectors(500)), tmp_path / "work"
    unlink, removed = Path.unlink, []

    def die_at_third(self: Path, missing_ok: bool = False) -> None:
        if self.parent == work and not self.name.endswith(".part"):
            removed.append(self)
            if len(removed) == 3:
                raise KeyboardInterrupt
        unlink(self, missing_ok=missing_ok)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "unlink", die_at_third)
        with pytest.raises(KeyboardInterrupt):
            dedupe_output(path, work=work)
    assert work.is_dir()
    assert dedupe_output(path, work=work).row_G.tolist() == dedupe_output(path).row_G.tolist()
    assert not work.exists()


KILLED = """
import sys
from pathlib import Path
from munjang.bulk import dedupe_output as module
from munjang.vectors import inverted_lists
inverted_lists.ALONE, module._RUN_BYTES, module._LISTS = 100, 2**16, 4
print("go", flush=True)
module.dedupe_output(sys.argv[1], threshold=float(sys.argv[3]), work=Path(sys.argv[2]))
print("done", flush=True)
"""


@pytest.mark.usefixtures("many_lists")
def test_a_killed_run_goes_on_and_says_the_same(tmp_path: Path) -> None:
    """Five kills at random moments; then another threshold finds the folder of the killed run and begins anew."""
    chance, path, work = random.Random(3), save(tmp_path, make_vectors(6_000)), tmp_path / "work"
    killed = 0
    for _ in range(5):
        process = subprocess.Popen([sys.executable, "-c", KILLED, path, work, "0.9"], stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(chance.uniform(0.0, 0.3))
        os.kill(process.pid, signal.SIGKILL)
        killed += process.communicate()[0] == ""
    assert killed >= 2
    whole = dedupe_output(path, threshold=0.9)
    again = dedupe_output(path, threshold=0.9, work=work)
    assert (again.row_G.tolist(), again.kept_G.tolist()) == (whole.row_G.tolist(), whole.kept_G.tolist())
    assert not work.exists()
    other = dedupe_output(path, threshold=0.85, work=work)
    assert other.row_G.tolist() == dedupe_output(path, threshold=0.85).row_G.tolist()
