"""Re-ranking: the scorer's order, and a budget that stops between blocks and says how far it got."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from munjang.library.hits import Hit
from munjang.library.rerank import AT_ONCE, BudgetWarning, rerank_hits


def _hits(count: int) -> list[Hit]:
    return [Hit(str(n), 1 - n / 1000, f"text {n}", {}, start=0, stop=len(f"text {n}")) for n in range(count)]


class Slow:
    """Takes a second for a block, and likes later hits better."""

    def __init__(self) -> None:
        self.now = 0.0

    def clock(self) -> float:
        return self.now

    def predict(self, pairs):
        self.now += 1
        return np.array([float(text.split()[1]) for _, text in pairs], dtype=np.float32)


@given(count=st.integers(0, 100), budget=st.integers(0, 8))
def test_what_the_budget_allows_is_reordered_and_the_rest_follows(count: int, budget: int) -> None:
    slow, hits = Slow(), _hits(count)
    reached = min(count, budget * AT_ONCE)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = rerank_hits("query", hits, slow, budget_seconds=budget, clock=slow.clock)
    assert [hit.id for hit in found] == [*map(str, reversed(range(reached))), *map(str, range(reached, count))]
    assert [hit.reranked for hit in found] == [True] * reached + [False] * (count - reached)
    assert found[reached:] == hits[reached:]
    said = [str(one.message) for one in caught if one.category is BudgetWarning]
    if reached < count:
        expected = f"the budget of {budget} s was up after re-ranking {reached} of {count} documents; the rest follow in their old order"
        assert said == [expected]
    else:
        assert not said


def test_without_a_budget_all_are_scored() -> None:
    slow = Slow()
    assert all(hit.reranked for hit in rerank_hits("query", _hits(50), slow, clock=slow.clock))


def test_the_warning_can_be_made_an_error() -> None:
    slow = Slow()
    warnings.simplefilter("error", BudgetWarning)
    with pytest.raises(BudgetWarning, match="16 of 20"):
        rerank_hits("query", _hits(20), slow, budget_seconds=1, clock=slow.clock)
