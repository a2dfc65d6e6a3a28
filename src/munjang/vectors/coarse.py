"""float32 vectors → bytes, with a proven bound on how far a product of bytes is from the product of the vectors.

A corpus row c becomes whole numbers u: c = μ + w∘u + e, with one centre μ and one step w for each dimension, taken from a sample; e is what
is left over, and its length is kept. A query q against it: q∘w = s·v + f with whole numbers v and one step s. Then

    q·c = q·μ + s·(v·u) + f·u + q·e     and so     |q·c − (q·μ + s·(v·u))| ≤ |f||u| + |q||e|        (Cauchy–Schwarz)

The bound holds for any μ, w and s; good ones make it small. |e| is kept for each row, the other lengths as a block's maxima: a block is
sifted by its largest |e|, so that all its rows are compared with one number, and what passes is looked at again by its own.

Shapes: N queries, M corpus rows, D dimensions, J blocks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from munjang.errors import InputError
from munjang.types import Ints, Metric, Vectors
from munjang.vectors.similarity import prepare_rows

Bytes = NDArray[np.uint8]
Product = Callable[[Bytes], NDArray[np.int32]]
"""(m, d) bytes → (m, n) products with the right side it was made for."""

ZERO = 128
"""The byte that stands for zero on the left side."""


def make_product(right_DN: NDArray[np.int8]) -> Product:
    """Return the product with this right side, which is laid out for the processor once; a call uses one thread."""
    import onnxruntime
    from onnx import TensorProto, helper, numpy_helper

    constants = [
        numpy_helper.from_array(np.ascontiguousarray(right_DN), "right"),
        numpy_helper.from_array(np.asarray(ZERO, dtype=np.uint8), "zero"),
    ]
    graph = helper.make_graph(
        [helper.make_node("MatMulInteger", ["left", "right", "zero"], ["product"])],
        "product",
        [helper.make_tensor_value_info("left", TensorProto.UINT8, ["m", right_DN.shape[0]])],
        [helper.make_tensor_value_info("product", TensorProto.INT32, ["m", right_DN.shape[1]])],
        initializer=constants,
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])

    def product(left_MD: Bytes) -> NDArray[np.int32]:
        found: NDArray[np.int32] = session.run(["product"], {"left": left_MD})[0]
        return found

    return product


@cache
def is_available() -> bool:
    """Say whether this processor's integer product is exact, by multiplying the largest numbers there are."""
    left_MD = np.full((8, 64), 255, dtype=np.uint8)
    right_DN = np.full((64, 32), 127, dtype=np.int8)
    right_DN[:, ::2] = -127
    expected = (left_MD.astype(np.int32) - ZERO) @ right_DN.astype(np.int32)
    return bool((make_product(right_DN)(left_MD) == expected).all())


ROWS = 1024
"""Corpus rows of a block."""

Doubles = NDArray[np.float64]

_SAMPLE = 2048
_CUTS = (4.0, 4.5, 5.0, 5.5, 6.0, 8.0, 12.0)  # standard deviations that 127 may stand for
_ROUNDING = 1 + 1e-4  # more than float32 loses in a length
_LARGEST = 2.0**31 - 2


@dataclass(frozen=True)
class Steps:
    """What a byte stands for in each dimension."""

    centre_D: Vectors
    step_D: Vectors


@dataclass(frozen=True)
class CoarseRows:
    """A corpus as bytes, with |e| of each row, and per block the largest |u|, |e| and |c|."""

    bytes_MD: Bytes
    steps: Steps
    error_M: Vectors
    whole_J: Doubles
    error_J: Doubles
    length_J: Doubles
    prepared_already: bool
    """Whether the corpus' rows were what the metric expects, so that they need not be normalised when they are read again."""


@dataclass(frozen=True)
class CoarseQueries:
    """Queries as bytes, with what turns a product of bytes into a score and a bound."""

    bytes_DN: NDArray[np.int8]
    step_N: Doubles
    offset_N: Doubles
    error_N: Doubles
    length_N: Doubles

    def least(self, floor_N: Vectors, rows: CoarseRows, block: int) -> NDArray[np.int32]:
        """Return the product of bytes above which a row of this block may score above the floor, and below which it cannot."""
        return self._least(floor_N, rows.whole_J[block], rows.error_J[block], rows.length_J[block])

    def least_of_all(self, floor_N: Vectors, rows: CoarseRows) -> NDArray[np.int32]:
        """Return the same for all rows of the corpus."""
        return self._least(floor_N, rows.whole_J.max(), rows.error_J.max(), rows.length_J.max())

    def _least(self, floor_N: Vectors, whole: float, error: float, length: float) -> NDArray[np.int32]:
        with np.errstate(invalid="ignore"):
            room_N = floor_N - self.offset_N - self.error_N * whole - self._rounding(length) - self.length_N * error
            least_N = np.floor(room_N / self.step_N) - 1
        return np.asarray(np.clip(least_N, -_LARGEST, _LARGEST), dtype=np.int32)

    def at_most(self, products_P: NDArray[np.int32], query_P: Ints, row_P: Ints, rows: CoarseRows) -> Vectors:
        """Return the most that each of these pairs of a query and a row can score."""
        shared_N = self.offset_N + self.error_N * rows.whole_J.max() + self._rounding(rows.length_J.max())
        most_P = products_P * self.step_N[query_P] + shared_N[query_P] + self.length_N[query_P] * rows.error_M[row_P]
        return np.asarray(np.nextafter(most_P.astype(np.float32), np.float32(np.inf)))

    def _rounding(self, length: float) -> Doubles:
        """Return what float32 may lose in the scores that floor and rows are compared by."""
        return np.asarray(len(self.bytes_DN) * 2.0**-22 * self.length_N * length)


@np.errstate(over="ignore", invalid="ignore")  # of rows too long for float32 the bound is endless, and they are scored in full
def round_rows(corpus: NDArray[Any], metric: Metric) -> CoarseRows:
    """Turn a corpus into bytes, block by block."""
    m, d = corpus.shape
    steps = _choose_steps(_sample(corpus, metric))
    blocks = -(-m // ROWS)
    bytes_MD = np.empty((m, d), dtype=np.uint8)
    error_M = np.empty(m, dtype=np.float32)
    whole_J, error_J, length_J = (np.zeros(blocks) for _ in range(3))
    inverse_D = 1 / steps.step_D
    prepared_already = True
    for block, (start, given_MD) in enumerate(_iterate_blocks(corpus)):
        rows_MD = prepare_rows(given_MD, metric)
        prepared_already &= rows_MD is given_MD
        length_J[block] = _measure_lengths(rows_MD).max()
        if not np.isfinite(length_J[block]):
            _refuse_bad_rows(corpus, start)
        whole_MD = rows_MD - steps.centre_D
        left_MD = whole_MD.copy()
        whole_MD *= inverse_D
        np.rint(whole_MD, out=whole_MD)
        np.clip(whole_MD, -127, 127, out=whole_MD)
        whole_J[block] = _measure_lengths(whole_MD).max()
        np.add(whole_MD, np.float32(ZERO), out=bytes_MD[start : start + len(rows_MD)], casting="unsafe")
        whole_MD *= steps.step_D
        left_MD -= whole_MD
        # Taking the centre off and multiplying the step back rounds each number by at most 2⁻²³ of itself.
        rounded = 2.0**-22 * (length_J[block] + 2 * float(np.linalg.norm(steps.centre_D)) + _measure_lengths(whole_MD).max())
        error_M[start : start + len(rows_MD)] = _measure_lengths(left_MD) + rounded
        error_J[block] = error_M[start : start + len(rows_MD)].max()
    return CoarseRows(bytes_MD, steps, error_M, whole_J, error_J, length_J, prepared_already)


def round_queries(queries_ND: Vectors, steps: Steps) -> CoarseQueries:
    """Turn prepared queries into bytes for a corpus of these steps."""
    exact_ND = queries_ND.astype(np.float64)
    scaled_ND = exact_ND * steps.step_D
    step_N = np.abs(scaled_ND).max(axis=1, initial=0) / 127
    step_N[step_N == 0] = 1
    whole_ND = np.rint(scaled_ND / step_N[:, None])
    return CoarseQueries(
        bytes_DN=np.ascontiguousarray(whole_ND.T.astype(np.int8)),
        step_N=step_N,
        offset_N=exact_ND @ steps.centre_D.astype(np.float64),
        error_N=np.linalg.norm(scaled_ND - whole_ND * step_N[:, None], axis=1),
        length_N=np.linalg.norm(exact_ND, axis=1),
    )


def _iterate_blocks(corpus: NDArray[Any]) -> Iterator[tuple[int, Vectors]]:
    for start in range(0, len(corpus), ROWS):
        yield start, np.ascontiguousarray(corpus[start : start + ROWS], dtype=np.float32)


def _sample(corpus: NDArray[Any], metric: Metric) -> Vectors:
    """Return up to _SAMPLE rows of finite length, evenly spread."""
    rows = np.linspace(0, len(corpus) - 1, min(len(corpus), _SAMPLE)).astype(np.int64)
    sample = prepare_rows(np.ascontiguousarray(corpus[rows], dtype=np.float32), metric)
    return sample[np.isfinite(_measure_lengths(sample))]


def _choose_steps(sample_MD: Vectors) -> Steps:
    """Choose the step that leaves the least over: a small one rounds well and cuts off what lies far out."""
    if not len(sample_MD):
        return Steps(np.zeros(sample_MD.shape[1], dtype=np.float32), np.ones(sample_MD.shape[1], dtype=np.float32))
    centre_D = sample_MD.mean(axis=0)
    gap_MD = sample_MD - centre_D
    square_D = np.mean(np.square(gap_MD, dtype=np.float64), axis=0)
    spread_D = np.maximum(np.sqrt(square_D), 1e-3 * (np.sqrt(square_D.mean()) + 1e-20)).astype(np.float32)

    def left_over(step_D: Vectors) -> float:
        return float(_measure_lengths(gap_MD - np.clip(np.rint(gap_MD / step_D), -127, 127) * step_D).max())

    candidates = [np.asarray(spread_D * np.float32(cut / 127), dtype=np.float32) for cut in _CUTS]
    return Steps(centre_D, min(candidates, key=left_over))


def _measure_lengths(rows_MD: Vectors) -> Doubles:
    """Return the length of each row, rounded up."""
    with np.errstate(over="ignore", invalid="ignore"):
        return np.asarray(np.sqrt(np.einsum("md,md->m", rows_MD, rows_MD).astype(np.float64)) * _ROUNDING)


def _refuse_bad_rows(corpus: NDArray[Any], start: int) -> None:
    bad = np.flatnonzero(~np.isfinite(np.asarray(corpus[start : start + ROWS], dtype=np.float32)).all(axis=1))
    if len(bad):
        where = f"corpus row {start + int(bad[0])}"
        raise InputError(f"{where}: holds NaN or infinity; expected finite numbers\n  encode that text again, or leave it out")
