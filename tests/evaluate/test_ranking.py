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


@pytest.mark.parametrize("cuts", [[0], [5, 0], [-1, 3], []], ids=str)
def test_a_cut_of_zero_or_none_is_refused(cuts):
    with pytest.raises(UsageError, match="from 1"):
        per_query({}, {}, cuts=cuts)


def test_cuts_are_sorted_and_the_order_of_judgements_is_kept():
    judged = {"q2": {"a": 1}, "q1": {"b": 2}}
    values = per_query({"q1": {"b": 1.0}, "q2": {"b": 1.0, "a": 0.5}}, judged, cuts=[3, 1, 3])
    assert list(values) == [f"{name}@{k}" for name in ("ndcg", "mrr", "map", "recall", "precision") for k in (1, 3)]
    assert values["mrr@3"].tolist() == [0.5, 1.0]
    assert list(average(per_query({}, {})))[::5] == ["ndcg@1", "mrr@1", "map@1", "recall@1", "precision@1"]


def test_the_usual_cuts_are_1_3_5_10_and_100():
    assert [name for name in per_query({}, {}) if name.startswith("map")] == ["map@1", "map@3", "map@5", "map@10", "map@100"]


def test_a_query_with_no_relevant_document_counts_zero_everywhere():
    values = per_query({"q": {"a": 1.0}}, {"q": {"a": 0, "b": -1}}, cuts=[1, 2])
    assert all(column.tolist() == [0.0] for column in values.values())


def test_the_last_place_within_a_cut_counts():
    found = per_query({"q": {"a": 3.0, "b": 2.0, "c": 1.0}}, {"q": {"c": 1, "a": 0, "z": -1}}, cuts=(2, 3))
    assert (found["mrr@2"][0], found["mrr@3"][0]) == (0.0, pytest.approx(1 / 3))
    assert found["ndcg@3"][0] == pytest.approx(1 / math.log2(4))
