"""A sentence encoder as a Scorer: its order is the encoder's own."""

from __future__ import annotations

import numpy as np
import pytest

from munjang.data.rows import RetrievalTask
from munjang.evaluate.rerank import evaluate_rerank, make_cosine_scorer
from munjang.evaluate.retrieval import search_task

TASK = RetrievalTask(
    corpus={"d1": "snow on the hills", "d2": "bread and soup", "d3": "snow and bread"},
    queries={"q1": "snow hills", "q2": "soup"},
    judgements={"q1": {"d1": 1}, "q2": {"d2": 1}},
)


def test_scores_are_cosines(words):
    run = search_task(words, TASK, k=3)
    scores = make_cosine_scorer(words, TASK, run, depth=3).predict([("snow hills", "snow on the hills"), ("soup", "snow and bread")])
    u, v = words.encode(["snow hills", "snow on the hills"]).astype(np.float64)
    assert scores[0] == pytest.approx(u @ v / np.linalg.norm(u) / np.linalg.norm(v), abs=1e-6)
    assert make_cosine_scorer(words, TASK, run, depth=1).predict([]).shape == (0,)


def test_reranking_with_the_model_of_the_first_run_changes_nothing(words):
    run = search_task(words, TASK, k=3)
    found = evaluate_rerank(make_cosine_scorer(words, TASK, run, depth=2), TASK, run, depth=2, cuts=[1, 3], resamples=50)
    assert found.before.scores == pytest.approx(found.after.scores)
