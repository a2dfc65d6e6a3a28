"""Re-ranking a first run with a Scorer."""

from __future__ import annotations

import numpy as np
import pytest

from munjang.data.rows import RetrievalTask, rank_documents
from munjang.errors import InputError, UsageError
from munjang.evaluate.rerank import evaluate_rerank, rerank_run

CORPUS = {"d1": "rain in spain", "d2": "snow in norway today", "d3": "sun in spain", "d4": "wind"}
TASK = RetrievalTask(CORPUS, {"q": "snow in norway"}, {"q": {"d2": 1}}, "made")
RUN = {"q": {"d1": 0.9, "d3": 0.8, "d2": 0.7, "d4": 0.6}}


def test_a_good_scorer_lifts_the_right_document(scorer):
    found = evaluate_rerank(scorer, TASK, RUN, resamples=100)
    assert found.before.scores["mrr@10"] == pytest.approx(1 / 3)
    assert found.after.scores["mrr@10"] == 1.0
    assert found.gain.difference > 0
    assert found.pairs == 4
    assert found.to_json()["before"]["mrr@10"] == pytest.approx(1 / 3)


def test_documents_below_the_depth_keep_their_order_beneath(scorer):
    order = rank_documents(rerank_run(scorer, TASK, RUN, depth=2)["q"])
    assert set(order[:2]) == {"d1", "d3"}
    assert order[2:] == ["d2", "d4"]


def test_a_classifier_with_several_labels_is_refused():
    class Wide:
        def predict(self, pairs, /):
            return np.zeros((len(pairs), 3), dtype=np.float32)

    with pytest.raises(InputError, match="one number each"):
        rerank_run(Wide(), TASK, RUN)


def test_a_run_that_names_an_unknown_document_is_refused(scorer):
    with pytest.raises(InputError, match="'d9'"):
        rerank_run(scorer, TASK, {"q": {"d9": 1.0}})
    with pytest.raises(UsageError, match="depth"):
        rerank_run(scorer, TASK, RUN, depth=0)


def test_a_judged_query_of_the_run_without_a_text_is_refused_and_one_without_documents_is_left_out(scorer):
    task = RetrievalTask(CORPUS, {"q": "snow"}, {"q": {"d2": 1}, "lost": {"d1": 1}}, "made")
    with pytest.raises(InputError, match="query 'lost' is judged and in the run"):
        rerank_run(scorer, task, {"lost": {"d1": 1.0}})
    assert rerank_run(scorer, task, {"lost": {}}) == {}


def test_a_column_of_scores_is_read_as_one_score_each():
    class Column:
        def predict(self, pairs, /):
            return np.arange(len(pairs), dtype=np.float32)[:, None]

    assert rank_documents(rerank_run(Column(), TASK, RUN)["q"]) == ["d4", "d2", "d3", "d1"]
