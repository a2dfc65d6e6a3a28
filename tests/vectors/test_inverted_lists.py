"""Rows dealt into lists: near rows meet in one, whatever the order, and what is written is read back."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from munjang.vectors.centres import find_centres
from munjang.vectors.content_sample import ContentSample, choose_covering, find_first_rows, list_contents, make_content_keys
from munjang.vectors.inverted_lists import EXACT, InvertedLists, Placed, measure_margin
from munjang.vectors.list_runs import ListRuns
from munjang.vectors.near_pairs import EARLIER, find_list_pairs


def make_unit(rows: int, dimensions: int, seed: int) -> np.ndarray:
    vectors = np.random.default_rng(seed).standard_normal((rows, dimensions)).astype(np.float32)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def members(placed: Placed, lists: int) -> list[set[int]]:
    found = [set(np.flatnonzero(placed.own_N == number).tolist()) for number in range(lists)]
    for row, number in zip(placed.row_V.tolist(), placed.list_V.tolist(), strict=True):
        found[number].add(row)
    return found


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 1_000), dimensions=st.integers(2, 6), threshold=st.floats(0.5, 0.99))
def test_near_rows_meet_in_a_list_where_none_may_be_missed(seed: int, dimensions: int, threshold: float) -> None:
    unit = make_unit(200, dimensions, seed)
    lists = InvertedLists(find_centres(unit, 9), measure_margin(threshold, EXACT) + 1e-5)
    together = members(lists.place(len(unit), lambda rows: unit[rows]), 9)
    for a, b in zip(*np.nonzero(np.triu(unit @ unit.T, 1) >= threshold), strict=True):
        assert any(a in each and b in each for each in together)


def test_a_row_of_zeros_visits_nothing() -> None:
    unit = np.vstack([make_unit(50, 4, 0), np.zeros((1, 4), dtype=np.float32)])
    placed = InvertedLists(find_centres(unit[:50], 5), 0.5).place(51, lambda rows: unit[rows])
    assert len(placed.own_N) == 51
    assert 50 not in placed.row_V


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.int8])
def test_runs_give_back_what_was_written_list_by_list(tmp_path: Path, dtype: type) -> None:
    vectors = (make_unit(300, 8, 1) * 100).astype(dtype)
    unit = vectors.astype(np.float32) / np.linalg.norm(vectors.astype(np.float32), axis=1, keepdims=True)
    lists = InvertedLists(find_centres(unit, 7), 0.2)
    runs = ListRuns(tmp_path, np.dtype(dtype), 8, 7)
    for run, start in enumerate((0, 100, 200)):
        part = slice(start, start + 100)
        assert not runs.has(run)
        runs.write(run, np.arange(start, start + 100), vectors[part], lists.place(100, lambda rows, part=part: unit[part][rows]))
    again = ListRuns(tmp_path, np.dtype(dtype), 8, 7)
    assert all(again.has(run) for run in range(3))
    together = members(lists.place(300, lambda rows: unit[rows]), 7)
    for number in range(7):
        found = again.read(number)
        assert set(found.row_E.tolist()) == together[number]
        assert (found.vectors_ED == vectors[found.row_E]).all()
        assert found.row_E[: found.own].tolist() == sorted(found.row_E[: found.own].tolist())
    assert again.sizes()[0].sum() == 300


def test_a_cut_run_does_not_count(tmp_path: Path) -> None:
    runs = ListRuns(tmp_path, np.dtype(np.float32), 4, 1)
    none = np.empty(0, dtype=np.int64)
    runs.write(0, np.arange(5), make_unit(5, 4, 0), Placed(np.zeros(5, dtype=np.int64), none, none))
    path = tmp_path / "run-000000.rows"
    path.write_bytes(path.read_bytes()[:-1])
    assert not ListRuns(tmp_path, np.dtype(np.float32), 4, 1).has(0)


def test_the_earliest_pairs_of_a_row_are_kept_and_more_are_told(tmp_path: Path) -> None:
    vectors = np.tile(np.array([[1, 0]], dtype=np.float32), (EARLIER + 3, 1))
    runs, none = ListRuns(tmp_path, vectors.dtype, 2, 1), np.empty(0, dtype=np.int64)
    runs.write(0, np.arange(len(vectors)), vectors, Placed(np.zeros(len(vectors), dtype=np.int64), none, none))
    every = lambda rows: np.ones(len(rows), dtype=bool)  # noqa: E731
    found = find_list_pairs(runs, 0, 0.9, lambda rows: rows, counts=every, asks=every)
    assert found.cut.tolist() == [EARLIER + 1, EARLIER + 2]
    last = found.pairs_P[found.pairs_P["later"] == EARLIER + 2]
    assert last["earlier"].tolist() == list(range(EARLIER))


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 1_000), size=st.integers(1, 80), block=st.integers(1, 50))
def test_a_sample_holds_the_smallest_keys_in_any_order_and_any_blocks(seed: int, size: int, block: int) -> None:
    random = np.random.default_rng(seed)
    texts = [f"text {number}" for number in random.integers(0, 60, 100)]
    vectors = np.array([[float(text[5:]), 1] for text in texts], dtype=np.float32)
    order = random.permutation(100)
    kept = []
    for places in (np.arange(100), order):
        sample = ContentSample(size, 2)
        for start in range(0, 100, block):
            part = places[start : start + block]
            sample.offer(make_content_keys(list_contents(vectors, [texts[at] for at in part])), vectors[part], start)
        place, rows = sample.rows()
        assert [texts[places[at]] for at in place] == [f"text {int(row[0])}" for row in rows]
        kept.append(rows.tolist())
    assert kept[0] == kept[1]
    assert len(kept[0]) == min(size, len(set(texts)))


def test_a_covering_choice_keeps_rows_of_a_rare_region() -> None:
    random = np.random.default_rng(0)
    many = np.array([1, 0, 0]) + random.standard_normal((5_000, 3)) * 0.1
    few = np.array([0, 0, 1]) + random.standard_normal((12, 3)) * 0.02
    order = random.permutation(5_012)
    vectors = np.vstack([many, few])[order].astype(np.float32)
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    chosen = choose_covering(unit, 400, least=10)
    assert len(set(chosen.tolist())) == 400
    assert (order[chosen] >= 5_000).sum() >= 10
    assert choose_covering(unit[:50], 400, least=10).tolist() == list(range(50))


def test_first_rows_of_equal_contents() -> None:
    contents = [b"a", b"b", b"a", b"c", b"b", b"a"]
    assert find_first_rows(make_content_keys(contents)).tolist() == [0, 1, 0, 3, 1, 0]
    assert find_first_rows(make_content_keys([])).tolist() == []
