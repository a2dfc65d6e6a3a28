"""Rows that are finite, but whose length is beyond float32: they are answered as by `top_k`, and nobody is warned about arithmetic."""

from __future__ import annotations

import numpy as np
import pytest
from tests.vectors.test_exact_index import sample

from munjang.vectors import coarse, exact_index
from munjang.vectors.exact_index import ExactIndex
from munjang.vectors.topk import top_k


@pytest.mark.skipif(not coarse.is_available(), reason="this processor has no exact integer product, so there is no first pass")
@pytest.mark.parametrize("metric", ["cosine", "dot"])
@pytest.mark.parametrize("length", [1e15, 1e18, 1e19, 1e20, 1e36])
@pytest.mark.parametrize("rows", [[0], [1_234], list(range(0, 2_500, 7))], ids=["the first", "one", "many"])
def test_rows_whose_length_overflows_are_answered_like_top_k(monkeypatch, metric, length, rows) -> None:
    monkeypatch.setattr(exact_index, "SMALLEST", 1)
    corpus, queries = sample(2_500), sample(3, seed=1)
    corpus[rows] *= np.float32(length)
    assert np.isfinite(corpus).all()
    indices = ExactIndex(corpus, metric=metric).search(queries, k=5)[1]
    assert np.array_equal(indices, top_k(queries, corpus, k=5, metric=metric)[1])
