"""Retrieval from vectors to measures, against pytrec_eval and sentence-transformers."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from munjang.data.retrieval import read_run, write_run
from munjang.data.rows import RetrievalTask, rank_documents
from munjang.errors import InputError, UsageError
from munjang.evaluate.retrieval import average, evaluate_retrieval, score_queries, score_run, search_task


@pytest.fixture
def task(sentences) -> RetrievalTask:
    corpus = {f"d{i}": sentence for i, sentence in enumerate(sentences)}
    queries = {"q0": "a tall man reading", "q1": "soup", "q2": "two students at the river", "q3": "bicycle"}
    grades = {
        query: {
            key: 2 if len(set(text.lower().split()) & set(sentence.lower().rstrip(".").split())) > 2 else 1
            for key, sentence in corpus.items()
            if set(text.lower().split()) & set(sentence.lower().rstrip(".").split())
        }
        for query, text in queries.items()
    }
    return RetrievalTask(corpus, queries, grades, "made")


def test_means_equal_pytrec_eval_on_real_vectors(task, minilm):
    pytrec_eval = pytest.importorskip("pytrec_eval")
    found = evaluate_retrieval(minilm, task, resamples=0)
    theirs = pytrec_eval.RelevanceEvaluator(
        {q: dict(g) for q, g in task.judgements.items()}, {"ndcg_cut_10", "map_cut_100", "P_5"}
    ).evaluate({q: dict(s) for q, s in found.run.items()})
    for ours, name in (("ndcg@10", "ndcg_cut_10"), ("map@100", "map_cut_100"), ("precision@5", "P_5")):
        assert found.scores[ours] == pytest.approx(sum(one[name] for one in theirs.values()) / len(theirs), abs=1e-9)


def test_mrr_and_recall_equal_sentence_transformers(task, minilm):
    from sentence_transformers.sentence_transformer.evaluation import InformationRetrievalEvaluator

    relevant = {query: set(grades) for query, grades in task.judgements.items()}
    theirs = InformationRetrievalEvaluator(task.queries, task.corpus, relevant, precision_recall_at_k=[5], mrr_at_k=[10])(minilm)
    ours = evaluate_retrieval(minilm, task, cuts=[5, 10], resamples=0).scores
    assert ours["mrr@10"] == pytest.approx(theirs["cosine_mrr@10"], abs=1e-6)
    assert ours["recall@5"] == pytest.approx(theirs["cosine_recall@5"], abs=1e-6)


def test_a_run_file_reads_back_and_scores_the_same(task, words, tmp_path):
    found = evaluate_retrieval(words, task, resamples=0)
    write_run(tmp_path / "run.txt", found.run)
    again = read_run(tmp_path / "run.txt")
    assert again == found.run
    assert score_run(again, task.judgements, resamples=0).scores == found.scores


def test_the_json_leaves_the_run_out_and_has_intervals(task, words):
    body = evaluate_retrieval(words, task, resamples=100).to_json()
    assert json.loads(json.dumps(body, allow_nan=False)) == body
    assert "run" not in body
    assert body["queries"] == 4
    assert body["documents"] == 64
    assert "ndcg@10" in body["ci95"]


def test_only_judged_queries_are_searched(task, words):
    fewer = RetrievalTask(task.corpus, task.queries, {"q1": task.judgements["q1"]})
    assert list(search_task(words, fewer, k=3)) == ["q1"]


def test_an_empty_corpus_is_refused(words):
    with pytest.raises(InputError, match="0 documents"):
        evaluate_retrieval(words, RetrievalTask({}, {"q": "x"}, {"q": {"d": 1}}))


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
    ours = score_queries(run, qrels, cuts=[*cuts, 1000])
    for row, query in enumerate(qrels):
        for name, form in NAMES.items():
            for k in cuts:
                assert ours[f"{name}@{k}"][row] == pytest.approx(theirs[query][form.format(k)], abs=1e-9), (name, k)
        assert ours["mrr@1000"][row] == pytest.approx(theirs[query]["recip_rank"], abs=1e-9)


@settings(deadline=None)
@given(runs, grades)
def test_nothing_falls_as_k_grows_but_precision_and_ndcg(scores, judged):
    values = score_queries({"q": scores}, {"q": judged}, cuts=[1, 2, 5, 12])
    for name in ("mrr", "map", "recall"):
        column = [values[f"{name}@{k}"][0] for k in (1, 2, 5, 12)]
        assert column == sorted(column)


def test_ties_are_broken_by_falling_id_as_trec_eval_does():
    assert rank_documents({"a": 1.0, "b": 1.0, "c": 0.5}) == ["b", "a", "c"]


def test_a_judged_query_without_an_answer_counts_zero():
    values = score_queries({"q1": {"d1": 1.0}}, {"q1": {"d1": 1}, "q2": {"d1": 1}}, cuts=[10])
    assert average(values)["ndcg@10"] == 0.5


def test_no_queries_average_to_nan():
    assert math.isnan(average(score_queries({}, {}, cuts=[1]))["mrr@1"])


@pytest.mark.parametrize("cuts", [[0], [5, 0], [-1, 3], []], ids=str)
def test_a_cut_of_zero_or_none_is_refused(cuts):
    with pytest.raises(UsageError, match="from 1"):
        score_queries({}, {}, cuts=cuts)


def test_cuts_are_sorted_and_the_order_of_judgements_is_kept():
    judged = {"q2": {"a": 1}, "q1": {"b": 2}}
    values = score_queries({"q1": {"b": 1.0}, "q2": {"b": 1.0, "a": 0.5}}, judged, cuts=[3, 1, 3])
    assert list(values) == [f"{name}@{k}" for name in ("ndcg", "mrr", "map", "recall", "precision") for k in (1, 3)]
    assert values["mrr@3"].tolist() == [0.5, 1.0]
    assert list(average(score_queries({}, {})))[::5] == ["ndcg@1", "mrr@1", "map@1", "recall@1", "precision@1"]


def test_the_usual_cuts_are_1_3_5_10_and_100():
    assert [name for name in score_queries({}, {}) if name.startswith("map")] == ["map@1", "map@3", "map@5", "map@10", "map@100"]


def test_a_query_with_no_relevant_document_counts_zero_everywhere():
    values = score_queries({"q": {"a": 1.0}}, {"q": {"a": 0, "b": -1}}, cuts=[1, 2])
    assert all(column.tolist() == [0.0] for column in values.values())


def test_the_last_place_within_a_cut_counts():
    found = score_queries({"q": {"a": 3.0, "b": 2.0, "c": 1.0}}, {"q": {"c": 1, "a": 0, "z": -1}}, cuts=(2, 3))
    assert (found["mrr@2"][0], found["mrr@3"][0]) == (0.0, pytest.approx(1 / 3))
    assert found["ndcg@3"][0] == pytest.approx(1 / math.log2(4))
