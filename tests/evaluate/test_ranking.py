"""Ranking measures against pytrec_eval, query by query."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from munjang.errors import UsageError
from munjang.evaluate.ranking import average, per_query, ranked

ids = st.sampled_from([f"d{i}" for i in range(12)])
runs = st.dictionaries(ids, st.integers(0, 6).map(lambda i: i / 4), min_size=1, max_size=12)
grades = st.dictionaries(ids, st.integers(-1, 3), min_size=1, max_size=12)

NAMES = {"ndcg": "ndcg_cut_{}", "map": "map_cut_{}", "recall": "recall_{}", "precision": "P_{}"}


@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(runs, grades), min_size=1, max_size=4))
def test_every_query_equals_pytrec_eval(queries):
    pytrec_eval = pytest.importorskip("pytrec_eval")
    run = {f"q{i}": scores for i, (scores, _) in enumerate(queries)}
    qrels = {f"q{i}": judged for i, (_, judged) in enumerate(queries)}
    cuts = [1, 3, 5, 10]
    measures = {name.format(k) for name in NAMES.values() for k in cuts}
    theirs = pytrec_eval.RelevanceEvaluator(qrels, {*measures, "recip_rank"}).evaluate(run)
    ours = per_query(run, qrels, cuts=[*cuts, 1000])
    for row, query in enumerate(qrels):
        for name, form in NAMES.items():
            for k in cuts:
                assert ours[f"{name}@{k}"][row] == pytest.approx(theirs[query][form.format(k)], abs=1e-9), (name, k)
        assert ours["mrr@1000"][row] == pytest.approx(theirs[query]["recip_rank"], abs=1e-9)


@settings(deadline=None)
@given(runs, grades)
def test_nothing_falls_as_k_grows_but_precision_and_ndcg(scores, judged):
    values = per_query({"q": scores}, {"q": judged}, cuts=[1, 2, 5, 12])
    for name in ("mrr", "map", "recall"):
        column = [values[f"{name}@{k}"][0] for k in (1, 2, 5, 12)]
        assert column == sorted(column)


def test_ties_are_broken_by_falling_id_as_trec_eval_does():
    assert ranked({"a": 1.0, "b": 1.0, "c": 0.5}) == ["b", "a", "c"]


def test_a_judged_query_without_an_answer_counts_zero():
    values = per_query({"q1": {"d1": 1.0}}, {"q1": {"d1": 1}, "q2": {"d1": 1}}, cuts=[10])
    assert average(values)["ndcg@10"] == 0.5


def test_no_queries_average_to_nan():
    assert math.isnan(average(per_query({}, {}, cuts=[1]))["mrr@1"])


def test_a_cut_of_zero_is_refused():
    with pytest.raises(UsageError, match="from 1"):
        per_query({}, {}, cuts=[0])
