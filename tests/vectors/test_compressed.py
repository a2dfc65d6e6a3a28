"""Searching compressed vectors: recall against the exact answer on vectors that come in clusters, as those of texts do."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from munjang.errors import UsageError
from munjang.vectors import compressed
from munjang.vectors.compressed import hamming, top_k_binary, top_k_int8
from munjang.vectors.quantize import dequantize, quantize, ranges_of
from munjang.vectors.similarity import normalize
from munjang.vectors.topk import top_k

K = 10


def clustered(n: int, *, clusters: int = 60, d: int = 256, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    middles = np.random.default_rng(99).standard_normal((clusters, d))
    return normalize(middles[rng.integers(0, clusters, n)] + 0.6 * rng.standard_normal((n, d)))


CORPUS = clustered(3000)
QUERIES = clustered(80, seed=1)


def recall(indices: np.ndarray) -> float:
    exact = top_k(QUERIES, CORPUS, k=K)[1]
    return float(np.mean([len(set(found) & set(wanted)) / K for found, wanted in zip(indices, exact, strict=True)]))


@pytest.mark.parametrize("dimension", [3, 64, 65, 100, 384])
def test_hamming_equals_scipy(dimension: int) -> None:
    a, b = (np.random.default_rng(seed).standard_normal((n, dimension)) for seed, n in ((0, 7), (1, 23)))
    expected = np.rint(cdist(a > 0, b > 0, "hamming") * dimension)
    assert np.array_equal(hamming(quantize(a, "ubinary"), quantize(b, "ubinary")), expected)
    assert np.array_equal(hamming(quantize(a, "binary"), quantize(b, "ubinary")), expected)


@pytest.mark.parametrize("precision", ["int8", "uint8"])
@pytest.mark.parametrize("calibrated", [True, False])
def test_int8_search_finds_nearly_all(precision: str, calibrated: bool) -> None:
    ranges = ranges_of(CORPUS) if calibrated else None
    compact = quantize(CORPUS, precision, ranges=ranges)
    scores, indices = top_k_int8(QUERIES, compact, k=K, ranges=ranges, block=500)
    assert recall(indices) > 0.95
    assert np.array_equal(indices, top_k(QUERIES, dequantize(compact, ranges=ranges), k=K, block=500)[1])
    np.testing.assert_allclose(scores, top_k(QUERIES, CORPUS, k=K)[0], atol=0.01)


@pytest.mark.parametrize("precision", ["binary", "ubinary"])
def test_one_bit_search_finds_more_the_better_it_is_rescored(precision: str) -> None:
    bits = quantize(CORPUS, precision)
    alone = recall(top_k_binary(QUERIES, bits, k=K)[1])
    rescored = recall(top_k_binary(QUERIES, bits, k=K, rescore_vectors=CORPUS)[1])
    widely = recall(top_k_binary(QUERIES, bits, k=K, rescore_vectors=CORPUS, multiplier=20)[1])
    assert 0.3 < alone < rescored <= widely
    assert rescored > 0.8
    assert widely > 0.99


def test_rescoring_everything_is_exact() -> None:
    scores, indices = top_k_binary(QUERIES, quantize(CORPUS, "ubinary"), k=K, rescore_vectors=CORPUS, multiplier=300)
    expected_scores, expected_indices = top_k(QUERIES, CORPUS, k=K)
    assert np.array_equal(indices, expected_indices)
    np.testing.assert_allclose(scores, expected_scores, atol=1e-6)


def test_rescoring_vectors_may_be_int8_float16_or_fetched() -> None:
    bits = quantize(CORPUS, "ubinary")
    exact = top_k_binary(QUERIES, bits, k=K, rescore_vectors=CORPUS)[1]
    fetched = top_k_binary(QUERIES, bits, k=K, rescore_vectors=lambda wanted: CORPUS[wanted])[1]
    assert np.array_equal(fetched, exact)
    ranges = ranges_of(CORPUS)
    int8 = top_k_binary(QUERIES, bits, k=K, rescore_vectors=quantize(CORPUS, "int8", ranges=ranges), ranges=ranges)[1]
    half = top_k_binary(QUERIES, bits, k=K, rescore_vectors=CORPUS.astype(np.float16))[1]
    assert np.mean(int8 == exact) > 0.8
    assert np.mean(half == exact) > 0.95


def test_a_query_that_equals_its_bits_scores_one() -> None:
    signs = np.sign(CORPUS[:5])
    scores, indices = top_k_binary(signs, quantize(CORPUS, "ubinary"), k=1)
    assert indices[:, 0].tolist() == [0, 1, 2, 3, 4]
    np.testing.assert_allclose(scores[:, 0], 1, atol=1e-6)


def test_equal_rows_come_by_lower_index_and_few_rows_are_all_returned() -> None:
    bits = quantize(np.repeat(CORPUS[:2], 3, axis=0), "ubinary")
    _, indices = top_k_binary(CORPUS[:1], bits, k=9)
    assert indices.tolist() == [[0, 1, 2, 3, 4, 5]]
    assert top_k_int8(CORPUS[0], quantize(CORPUS[:2], "int8"), k=9)[1].tolist() == [[0, 1]]
    assert top_k_binary(CORPUS[0], bits[:0], k=9)[1].shape == (1, 0)


def test_requests_that_make_no_sense_are_refused() -> None:
    bits = quantize(CORPUS[:9], "ubinary")
    with pytest.raises(UsageError, match="float32"):
        top_k_binary(QUERIES, CORPUS, k=1)
    with pytest.raises(UsageError, match="int8 or uint8"):
        top_k_int8(QUERIES, CORPUS, k=1)
    with pytest.raises(UsageError, match=r"\(9, 32\)"):
        top_k_binary(QUERIES[:, :64], bits, k=1)
    with pytest.raises(UsageError, match="one row per corpus row"):
        top_k_binary(QUERIES, bits, k=1, rescore_vectors=CORPUS)
    with pytest.raises(UsageError, match="multiplier is 0"):
        top_k_binary(QUERIES, bits, k=1, multiplier=0)


def test_by_default_four_times_k_candidates_are_scored_again() -> None:
    bits = quantize(CORPUS, "ubinary")
    found = {times: top_k_binary(QUERIES, bits, k=K, rescore_vectors=CORPUS, multiplier=times)[1] for times in (1, 3, 4, 5)}
    assert np.array_equal(top_k_binary(QUERIES, bits, k=K, rescore_vectors=CORPUS)[1], found[4])
    assert not np.array_equal(found[3], found[4])
    assert not np.array_equal(found[4], found[5])
    by_bits = np.argsort(hamming(quantize(QUERIES, "ubinary"), bits), axis=1, kind="stable")[:, :K]
    assert np.array_equal(np.sort(found[1], axis=1), np.sort(by_bits, axis=1))  # nothing to choose from: the nearest by their bits


@pytest.mark.parametrize("metric", ["cosine", "dot", "euclidean", "manhattan"])
def test_every_metric_scores_again_and_decodes(metric: str) -> None:
    corpus = CORPUS * np.linspace(0.5, 2, len(CORPUS), dtype=np.float32)[:, None]
    expected = top_k(QUERIES, corpus, k=K, metric=metric)
    scores, indices = top_k_binary(QUERIES, quantize(corpus, "binary"), k=K, rescore_vectors=corpus, multiplier=300, metric=metric)
    assert np.array_equal(indices, expected[1])
    np.testing.assert_allclose(scores, expected[0], rtol=1e-4, atol=1e-5)
    ranges = ranges_of(corpus)
    compact = quantize(corpus, "int8", ranges=ranges)
    exact = top_k(QUERIES, dequantize(compact, ranges=ranges), k=K, metric=metric)
    assert np.array_equal(top_k_int8(QUERIES, compact, k=K, ranges=ranges, metric=metric)[1], exact[1])


def test_fetched_rows_of_another_shape_are_refused() -> None:
    bits = quantize(CORPUS[:9], "ubinary")
    with pytest.raises(UsageError, match=r"rescore_vectors: found shape \(1, 256\) for 9 rows"):
        top_k_binary(QUERIES[:1], bits, k=9, rescore_vectors=lambda wanted: CORPUS[:1])
    with pytest.raises(UsageError, match="k is 0 and multiplier is 4"):
        top_k_binary(QUERIES[:1], bits, k=0)
    with pytest.raises(UsageError, match="int8 or uint8"):
        top_k_int8(QUERIES[:1], np.zeros((1, 2, 3), dtype=np.int8), k=1)
    with pytest.raises(UsageError, match=r"'ubinary'\) or 'binary'"):
        hamming(np.zeros((1, 2, 3), dtype=np.uint8), bits)


@pytest.mark.parametrize("metric", ["dot", "euclidean"])
def test_without_better_vectors_the_score_is_that_of_the_bits_as_a_unit_vector(metric: str) -> None:
    signs = np.where(CORPUS > 0, 1, -1).astype(np.float32) / np.float32(16)  # √256
    scores, _ = top_k_binary(QUERIES, quantize(CORPUS, "ubinary"), k=K, multiplier=300, metric=metric)
    np.testing.assert_allclose(scores, top_k(QUERIES, signs, k=K, metric=metric)[0], rtol=1e-4, atol=1e-5)


def test_one_dimension_has_signs_of_length_one() -> None:
    assert top_k_binary([[3.0]], quantize(np.array([[-1.0], [1.0]]), "ubinary"), k=2, metric="dot")[0].tolist() == [[3, -3]]


def test_however_few_numbers_are_fetched_at_once_the_answer_is_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    bits = quantize(CORPUS, "ubinary")
    expected = top_k_binary(QUERIES, bits, k=K, rescore_vectors=CORPUS)
    monkeypatch.setattr(compressed, "_RESCORED", 1)
    found = top_k_binary(QUERIES, bits, k=K, rescore_vectors=CORPUS)
    assert np.array_equal(found[1], expected[1])
    np.testing.assert_allclose(found[0], expected[0], atol=1e-6)
