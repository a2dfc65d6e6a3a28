"""Pair similarities in double precision, against munjang.vectors and sentence-transformers."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from munjang.errors import InputError, UsageError
from munjang.evaluate.correlation import spearman
from munjang.evaluate.similarities import pair_similarities
from munjang.evaluate.sts import METRICS
from munjang.vectors.similarity import similarity_pairwise

vectors = hnp.arrays(np.float32, st.tuples(st.integers(0, 6), st.just(5)), elements=st.floats(-100, 100, width=32))


@settings(deadline=None)
@given(vectors)
def test_equal_vectors_have_cosine_exactly_one_and_zero_vectors_zero(rows):
    found = pair_similarities(rows, rows)
    squares = (rows.astype(np.float64) ** 2).sum(axis=1)
    assert (found[squares > 0] == 1.0).all()
    assert (found[squares == 0] == 0.0).all()


@pytest.mark.parametrize("metric", METRICS)
def test_they_equal_the_single_precision_ones_within_its_rounding(metric):
    random = np.random.default_rng(0)
    a, b = random.normal(size=(2, 5000, 24)).astype(np.float32)
    assert np.allclose(pair_similarities(a, b, metric=metric), similarity_pairwise(a, b, metric=metric), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("metric", METRICS)
def test_ranks_equal_sentence_transformers_even_with_many_nearly_equal_pairs(metric):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch, util = pytest.importorskip("torch"), pytest.importorskip("sentence_transformers.util")
    theirs = {
        "cosine": util.pairwise_cos_sim,
        "dot": util.pairwise_dot_score,
        "euclidean": util.pairwise_euclidean_sim,
        "manhattan": util.pairwise_manhattan_sim,
    }[metric]
    random = np.random.default_rng(4)
    a = random.normal(size=(1379, 64))
    b = a + random.normal(size=(1379, 64)) * random.uniform(1e-2, 2, size=(1379, 1))
    a, b = ((x / np.linalg.norm(x, axis=1, keepdims=True)).astype(np.float32) for x in (a, b))
    gold = np.clip((a * b).sum(1) + random.normal(scale=0.2, size=1379), 0, 1).round(1)
    ours = spearman(pair_similarities(a, b, metric=metric), gold)
    assert ours == pytest.approx(spearman(theirs(torch.tensor(a), torch.tensor(b)).numpy(), gold), abs=1e-6)


def test_unequal_shapes_and_unknown_metrics_are_refused():
    with pytest.raises(InputError, match="1 vectors a against 2"):
        pair_similarities(np.ones((1, 2), np.float32), np.ones((2, 2), np.float32))
    with pytest.raises(UsageError, match="dimension"):
        pair_similarities(np.ones((1, 2), np.float32), np.ones((1, 3), np.float32))
    with pytest.raises(UsageError, match="unknown"):
        pair_similarities(np.ones((1, 2), np.float32), np.ones((1, 2), np.float32), metric="hamming")  # type: ignore[arg-type]


@pytest.mark.parametrize("metric", METRICS)
def test_rows_beyond_one_block_are_measured_too(metric):
    random = np.random.default_rng(1)
    a, b = random.normal(size=(2, 4100, 3)).astype(np.float32)
    whole = pair_similarities(a, b, metric=metric)
    assert whole.dtype == np.float64
    assert np.array_equal(whole[4090:], pair_similarities(a[4090:], b[4090:], metric=metric))
