"""quantize against sentence-transformers, and what comes back from dequantize."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from munjang.errors import InputError, UsageError
from munjang.vectors.quantize import Ranges, dequantize, find_ranges, make_unit_ranges, quantize
from munjang.vectors.similarity import normalize, similarity_pairwise

PRECISIONS = ("float32", "float16", "int8", "uint8", "binary", "ubinary")


def sample(n: int, d: int = 44, seed: int = 0) -> np.ndarray:
    return normalize(np.random.default_rng(seed).standard_normal((n, d), dtype=np.float32))


@pytest.mark.parametrize("precision", ["float32", "int8", "uint8", "binary", "ubinary"])
def test_it_equals_sentence_transformers(precision: str) -> None:
    peer = pytest.importorskip("sentence_transformers.util.quantization").quantize_embeddings
    vectors, calibration = sample(120), sample(200, seed=1)
    calibration[:, 3] = 0.25  # a dimension that never varies
    ranges = find_ranges(calibration)
    as_peer = np.stack([ranges.low_D, ranges.high_D])
    for ours in (quantize(vectors, precision, ranges=ranges), quantize(vectors, precision, calibration=calibration)):
        theirs = peer(vectors, precision, ranges=as_peer)
        assert ours.dtype == theirs.dtype
        assert np.array_equal(ours, theirs)


@pytest.mark.parametrize("precision", PRECISIONS)
def test_a_text_gets_the_same_bytes_alone_and_in_company(precision: str) -> None:
    vectors = sample(30)
    together = quantize(vectors, precision)
    assert np.array_equal(together[7], quantize(vectors[7], precision))
    assert quantize(vectors[:0], precision).shape == (0, together.shape[1])


@settings(max_examples=80, deadline=None)
@given(arrays(np.float32, (6, 5), elements=st.floats(-1, 1, width=32)), st.sampled_from(["int8", "uint8"]))
def test_nothing_within_the_ranges_is_off_by_more_than_half_a_step(vectors: np.ndarray, precision: str) -> None:
    ranges = find_ranges(vectors)
    back = dequantize(quantize(vectors, precision, ranges=ranges), ranges=ranges)
    assert (np.abs(back - vectors) <= ranges.step_D * 0.501 + 1e-6).all()


@pytest.mark.parametrize("dimension", [3, 16, 384, 1024])
def test_the_fixed_ranges_keep_unit_vectors_and_map_zero_to_zero(dimension: int) -> None:
    vectors = sample(50, dimension)
    back = dequantize(quantize(vectors, "int8"))
    assert similarity_pairwise(back, vectors).min() > 0.999
    assert np.abs(dequantize(quantize(np.zeros(dimension), "int8"))).max() < 1e-7
    assert make_unit_ranges(dimension).high_D.max() <= 1


def test_float16_comes_back_within_its_rounding() -> None:
    vectors = sample(10)
    np.testing.assert_allclose(dequantize(quantize(vectors, "float16")), vectors, rtol=1e-3, atol=1e-6)


def test_ranges_cannot_be_changed_nor_be_upside_down() -> None:
    ranges = find_ranges(sample(5))
    with pytest.raises(ValueError, match="read-only"):
        ranges.low_D[0] = 1
    with pytest.raises(InputError, match="low ≤ high"):
        Ranges(ranges.high_D, ranges.low_D)
    with pytest.raises(UsageError, match="shape"):
        Ranges(ranges.low_D, ranges.high_D[:3])


def test_requests_that_make_no_sense_are_refused() -> None:
    vectors = sample(3)
    with pytest.raises(UsageError, match="float16"):
        quantize(vectors, "int4")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="both"):
        quantize(vectors, "int8", ranges=find_ranges(vectors), calibration=vectors)
    with pytest.raises(UsageError, match="at least 2"):
        find_ranges(vectors[0])
    with pytest.raises(UsageError, match="44"):
        quantize(vectors, "int8", ranges=make_unit_ranges(8))
    with pytest.raises(InputError, match="float16"):
        quantize([[1e6]], "float16")
    with pytest.raises(UsageError, match="int64"):
        dequantize(np.zeros((1, 2), dtype=np.int64))


def test_two_vectors_are_enough_for_ranges_and_no_dimensions_are_fine() -> None:
    ranges = find_ranges([[0.0, 1.0], [2.0, -1.0]])
    assert (ranges.low_D.tolist(), ranges.high_D.tolist()) == ([0.0, -1.0], [2.0, 1.0])
    assert make_unit_ranges(0).dimension == 0


@pytest.mark.parametrize("sign", [1, -1])
def test_float16_takes_its_largest_number_and_refuses_the_next(sign: int) -> None:
    assert quantize([[65504.0 * sign, 1.0]], "float16")[0, 0] == 65504 * sign
    with pytest.raises(InputError, match="65,504"):
        quantize([[65505.0 * sign, 1.0]], "float16")


def test_a_copy_in_float32_is_an_array_of_its_own() -> None:
    vectors = sample(3)
    quantize(vectors, "float32")[:] = 0
    assert vectors.any()


@pytest.mark.parametrize("precision", ["int8", "uint8"])
def test_values_beyond_the_ranges_are_clipped(precision: str) -> None:
    ranges = Ranges(np.float32([-1, -1]), np.float32([1, 1]))
    lowest = -128 if precision == "int8" else 0
    assert quantize([[-9.0, 9.0]], precision, ranges=ranges).tolist() == [[lowest, lowest + 255]]


@pytest.mark.parametrize(("low", "high"), [([np.nan], [1]), ([0], [np.inf]), ([-np.inf], [0]), ([1], [0])], ids=str)
def test_ranges_that_are_not_finite_or_upside_down_are_refused(low: list[float], high: list[float]) -> None:
    with pytest.raises(InputError, match="low ≤ high"):
        Ranges(np.float32(low), np.float32(high))


def test_ranges_of_one_dimension_each_are_asked_for() -> None:
    with pytest.raises(UsageError, match=r"\(1, 2\)"):
        Ranges(np.zeros((1, 2), dtype=np.float32), np.ones((1, 2), dtype=np.float32))


def test_a_zero_is_no_set_bit_as_in_sentence_transformers() -> None:
    rows = np.array([[0.0, 1.0, -1.0, 0.0, 0.5, 0.0, -0.5, 0.0]], dtype=np.float32)
    assert quantize(rows, "ubinary").tolist() == [[0b01001000]]
