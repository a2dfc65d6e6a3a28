"""Re-ranking: the scorer's order, and a budget that stops between blocks and says how far it got."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from munjang.errors import UsageError
from munjang.library.rerank import AT_ONCE, BudgetWarning, rerank_hits
from munjang.library.results import Hit


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
        documents = "1 document" if count == 1 else f"{count} documents"
        expected = f"the budget of {budget} s was up after re-ranking {reached} of {documents}; the rest follow in their old order"
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


def test_a_scorer_that_minds_the_time_is_told_and_nothing_is_warned_of() -> None:
    class Minding(Slow):
        def time_was_up(self, scored: int, candidates: int) -> None:
            self.told = scored, candidates

    minding = Minding()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        rerank_hits("query", _hits(20), minding, budget_seconds=1, clock=minding.clock)
    assert minding.told == (16, 20)


class Given:
    """Scores that were agreed on."""

    def __init__(self, scores: list[float]) -> None:
        self.scores = scores

    def predict(self, pairs):
        return np.array([self.scores[int(text.split()[1])] for _, text in pairs], dtype=np.float32)


def scored(*scores: float) -> list[Hit]:
    return [Hit(str(n), score, f"text {n}", {}, start=0, stop=len(f"text {n}")) for n, score in enumerate(scores)]


def test_a_weight_below_one_leaves_the_rest_to_the_first_ranking() -> None:
    found = rerank_hits("query", scored(0.8, 0.6, 0.2), Given([0.1, 0.9, 1.0]), weight=0.5)
    assert [hit.id for hit in found] == ["1", "2", "0"]
    assert [hit.score for hit in found] == pytest.approx([0.5 * 0.9 + 0.5 * 0.75, 0.5 * 1.0 + 0.5 * 0.25, 0.5 * 0.1 + 0.5])
    assert [hit.id for hit in rerank_hits("query", scored(0.8, 0.6, 0.2), Given([0.1, 0.9, 1.0]), weight=0.05)] == ["0", "1", "2"]


def test_negative_cosines_and_logits_keep_their_order() -> None:
    hits = scored(-0.1, -0.2, -0.9)
    assert [hit.id for hit in rerank_hits("query", hits, Given([5.0, 5.0, 5.0]), weight=0.2, least=-1.0)] == ["0", "1", "2"]
    assert [hit.id for hit in rerank_hits("query", hits, Given([-90.0, 90.0, -90.0]), weight=0.9, least=-1.0)] == ["1", "0", "2"]


@given(scores=st.lists(st.floats(-1, 1), min_size=1, max_size=20), weight=st.floats(0.01, 0.99))
def test_a_scorer_without_an_opinion_changes_nothing(scores: list[float], weight: float) -> None:
    hits = scored(*sorted(scores, reverse=True))
    found = rerank_hits("query", hits, Given([0.5] * len(scores)), weight=weight, least=-1.0)
    assert [hit.id for hit in found] == [hit.id for hit in hits]
    assert all(0 <= hit.score <= 1 for hit in found)


@pytest.mark.parametrize("weight", [0.0, -1.0, 1.5, float("nan")])
def test_a_weight_that_is_none_is_refused(weight: float) -> None:
    with pytest.raises(UsageError, match="more than 0 and at most 1"):
        rerank_hits("query", _hits(2), Given([0.5, 0.5]), weight=weight)


def test_a_scorer_has_the_weight_that_it_asks_for_unless_told_otherwise() -> None:
    modest = Given([0.1, 0.9, 1.0])
    modest.share = 0.05
    hits = scored(0.8, 0.6, 0.2)
    assert rerank_hits("query", hits, modest) == rerank_hits("query", hits, Given([0.1, 0.9, 1.0]), weight=0.05)
    assert rerank_hits("query", hits, modest, weight=1.0) == rerank_hits("query", hits, Given([0.1, 0.9, 1.0]))
