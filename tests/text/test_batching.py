"""Laws of batches: every text once, the budget kept, the order of texts of no importance."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from munjang.limits import LIMITS
from munjang.text.batching import GRID_FACTOR, plan_batches

LENGTHS = st.lists(st.integers(0, 600), max_size=60)
BUDGET = st.integers(1, 1024)
EFFICIENT = st.integers(1, 1024)


@given(LENGTHS, BUDGET, EFFICIENT)
def test_every_index_stands_once(lengths, budget, efficient):
    planned = [index for batch in plan_batches(lengths, budget=budget, efficient=efficient) for index in batch]
    assert sorted(planned) == list(range(len(lengths)))


@given(LENGTHS, BUDGET, EFFICIENT)
def test_no_batch_is_empty_or_over_budget(lengths, budget, efficient):
    for batch in plan_batches(lengths, budget=budget, efficient=efficient):
        tokens = [lengths[index] for index in batch]
        assert batch
        assert len(batch) == 1 or sum(tokens) <= budget
        assert len(batch) == 1 or len(batch) * max(tokens) <= GRID_FACTOR * budget


@given(LENGTHS, st.randoms(use_true_random=False))
def test_the_order_of_texts_does_not_change_the_plan(lengths, random):
    shuffled = list(lengths)
    random.shuffle(shuffled)
    plans = [[[of[index] for index in batch] for batch in plan_batches(of)] for of in (lengths, shuffled)]
    assert plans[0] == plans[1]


@given(LENGTHS)
def test_longer_texts_come_first(lengths):
    planned = [lengths[index] for batch in plan_batches(lengths) for index in batch]
    assert planned == sorted(lengths, reverse=True)


@given(st.integers(1, 64), st.integers(1, 500))
def test_texts_of_one_length_fill_their_batches(length, count):
    batches = plan_batches([length] * count, budget=1024)
    assert len(batches) == -(-count // min(1024 // length, 2048 // length))


def test_no_texts_need_no_batch():
    assert plan_batches([]) == []


def test_where_lengths_mix_the_grid_may_be_full_but_not_larger():
    assert plan_batches([10, 1, 1, 1], budget=20, efficient=100) == [[0, 1, 2, 3]]  # a grid of 4 × 10 = 2 budgets
    assert plan_batches([10, 1, 1, 1, 1], budget=20, efficient=100) == [[0, 1, 2, 3], [4]]


def test_a_batch_is_cut_where_the_length_changes_as_soon_as_it_is_efficient():
    assert plan_batches([5, 5, 4], budget=100, efficient=10) == [[0, 1], [2]]
    assert plan_batches([5, 5, 4], budget=100, efficient=11) == [[0, 1, 2]]
    assert plan_batches([5, 5, 5], budget=100, efficient=10) == [[0, 1, 2]]
    assert plan_batches([6, 5, 5, 5], budget=100, efficient=11) == [[0, 1, 2, 3]]  # the change came before it was efficient


def test_a_text_over_the_budget_stands_alone():
    assert plan_batches([4, 9, 4], budget=8, efficient=100) == [[1], [0, 2]]


def test_the_usual_bounds_are_those_of_limits():
    lengths = list(range(1, 700)) * 9
    assert plan_batches(lengths) == plan_batches(lengths, budget=LIMITS.batch_tokens, efficient=LIMITS.efficient_tokens)


def test_the_budget_is_counted_anew_in_every_batch():
    assert plan_batches([3] * 7, budget=8, efficient=8) == [[0, 1], [2, 3], [4, 5], [6]]
