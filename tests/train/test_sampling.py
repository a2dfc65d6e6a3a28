from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from munjang.train.sampling import Sampled, plan_epoch, share, share_sizes


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(1, 50), min_size=1, max_size=80), st.integers(1, 9), st.integers(0, 3), st.integers(0, 5))
def test_every_row_is_seen_once_an_epoch(lengths: list[int], size: int, seed: int, window: int) -> None:
    plan = plan_epoch([Sampled(lengths)], batch_size=size, seed=seed, length_window=window)
    assert sorted(row for batch in plan for row in batch.rows) == list(range(len(lengths)))
    assert all(len(batch.rows) <= size for batch in plan)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.frozensets(st.integers(0, 12), min_size=1, max_size=3), min_size=1, max_size=60), st.integers(1, 8))
def test_no_text_meets_itself_in_a_batch_and_no_row_is_lost(keys: list[frozenset[int]], size: int) -> None:
    plan = plan_epoch([Sampled([1] * len(keys), keys)], batch_size=size, seed=1)
    for batch in plan:
        together = [key for row in batch.rows for key in keys[row]]
        assert len(together) == len(set(together))
    assert sorted(row for batch in plan for row in batch.rows) == list(range(len(keys)))


def test_the_plan_follows_from_seed_stage_and_epoch_alone() -> None:
    sets = [Sampled(list(range(1, 40))), Sampled([3] * 25)]
    made = [plan_epoch(sets, batch_size=4, seed=5, stage=1, epoch=2) for _ in range(2)]
    assert made[0] == made[1]
    assert made[0] != plan_epoch(sets, batch_size=4, seed=5, stage=1, epoch=3)
    assert made[0] != plan_epoch(sets, batch_size=4, seed=6, stage=1, epoch=2)


def test_sets_mix_by_size_or_evenly() -> None:
    sets = [Sampled([1] * 80), Sampled([1] * 20)]
    by_size = plan_epoch(sets, batch_size=4, seed=0)
    assert [sum(batch.data == number for batch in by_size) for number in (0, 1)] == [20, 5]
    even = plan_epoch(sets, batch_size=4, seed=0, mix="even")
    assert [batch.data for batch in even] == [0, 1] * 5


def test_rows_of_like_length_meet_where_a_window_is_asked_for() -> None:
    lengths = [1, 100] * 40
    plan = plan_epoch([Sampled(lengths)], batch_size=8, seed=3, length_window=10)
    assert all(len({lengths[row] for row in batch.rows}) == 1 for batch in plan)


def test_a_batch_of_one_row_is_left_out_where_rows_are_compared() -> None:
    plan = plan_epoch([Sampled([1] * 9, least_rows=2)], batch_size=4, seed=0)
    assert [len(batch.rows) for batch in plan] == [4, 4]


def test_one_text_over_and_over_is_planned_in_linear_time() -> None:
    keys = [frozenset({"same"})] * 20_000
    plan = plan_epoch([Sampled([1] * len(keys), keys, least_rows=2)], batch_size=16, seed=0)
    assert plan == []


@given(st.integers(0, 100), st.integers(1, 7))
def test_shares_cover_a_batch_in_order(rows: int, count: int) -> None:
    whole = list(range(rows))
    assert [row for rank in range(count) for row in share(whole, rank=rank, count=count)] == whole
    assert sum(share_sizes(rows, count)) == rows
