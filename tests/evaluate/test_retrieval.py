"""Retrieval from vectors to measures, against pytrec_eval and sentence-transformers."""

from __future__ import annotations

import json

import pytest

from munjang.errors import InputError
from munjang.evaluate.datasets.rows import RetrievalTask
from munjang.evaluate.datasets.trec import read_run, write_run
from munjang.evaluate.retrieval import evaluate_retrieval, score_run, search_task


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
