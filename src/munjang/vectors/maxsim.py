"""MaxSim: how well the tokens of a question are met by the tokens of passages, which may be stored in few bits.

A passage's score is the mean, over the question's tokens, of the best cosine with any of its tokens (Khattab and Zaharia, 2020; what
sentence-transformers calls mean_maxsim). The question stays in float32. A passage's token is stored as small whole numbers, one a
dimension: 8, 2 or 1 bits, or as float32. A `TokenCodebook` says what they mean: centre + scale × (code − middle), each dimension with its
own centre and scale, so that 1 bit is the sign of the centred value.

With 1 bit, the question's tokens are centred too, and the cosine is that of the centred vectors: what all tokens have in common tells
nothing, and signs cannot say how much of it there is. That ranked better on questions apart (docs/results.md, library and search).

All passages are scored in one product of whole numbers (onnxruntime's MatMulInteger): the question's weights become two digits of 7 bits,
which costs less than 1e-4 of a score. `maxsim_exact` is the definition, written plainly.

Shapes: Q tokens of the question, P passages, T tokens of all passages, D dimensions, B bytes of a token.
"""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from munjang.errors import InputError, UsageError, quote
from munjang.limits import usable_cores
from munjang.types import Ints, SkippedTokens, Vectors
from munjang.vectors.similarity import normalize

TokenFormat: TypeAlias = Literal["float32", "int8", "2bit", "1bit"]
"""How a token's vector is stored."""
DEFAULT_FORMAT: TokenFormat = "1bit"
SKIP: tuple[SkippedTokens, ...] = ("special", "prompt")
"""Tokens that are left out on both sides: every text has them, so they tell nothing."""
WEIGHT, WEIGHT_AFTER_MEANING = 0.5, 0.9
"""The weight of MaxSim where nobody says otherwise, after words and meaning and after meaning alone; the rest goes to the first stage.

Chosen on questions that are not reported (docs/results.md, library and search).
"""

Bytes: TypeAlias = NDArray[np.uint8]

_BITS: dict[TokenFormat, int] = {"float32": 32, "int8": 8, "2bit": 2, "1bit": 1}
_DIGIT = 63
"""The largest digit: two products of it with a byte fit 16 bits, in which some processors add them."""
_TOKENS_AT_ONCE = 8_192
_TOKENS_FOR_A_THREAD = 2_048
"""Fewer are not worth a thread of their own."""
_INT8_DEVIATIONS = 4.0
_UNIFORM_STEP = 0.9957
"""The step, in deviations, with which four equal steps lose least of a normal distribution (Max, 1960)."""


_FOUR_CODES = ((np.arange(256)[:, None] >> np.array([6, 4, 2, 0])) & 3).astype(np.uint8).view(np.uint32)[:, 0]
"""The four codes of two bits in each byte, as four bytes."""


@dataclass(frozen=True, eq=False)
class TokenCodebook:
    """What stored token codes mean: centre + scale × (code − middle) in each dimension."""

    format: TokenFormat
    centre_D: Vectors
    scale_D: Vectors

    def __post_init__(self) -> None:
        """Refuse a format that does not exist and arrays that do not belong together."""
        check_token_format(self.format)
        for name in ("centre_D", "scale_D"):
            object.__setattr__(self, name, np.ascontiguousarray(getattr(self, name), dtype="<f4"))
        if self.centre_D.ndim != 1 or self.centre_D.shape != self.scale_D.shape or not len(self.centre_D):
            raise InputError(f"codebook: found shapes {self.centre_D.shape} and {self.scale_D.shape}, expected (d,) for both")
        if not (np.isfinite(self.centre_D).all() and np.isfinite(self.scale_D).all()):
            raise InputError("codebook: holds NaN or infinity, expected finite numbers")

    @property
    def dimension(self) -> int:
        """The number of dimensions of a token's vector."""
        return len(self.centre_D)

    @property
    def token_bytes(self) -> int:
        """How many bytes a token takes."""
        return -(-self.dimension * _BITS[self.format] // 8)

    @property
    def middle(self) -> float:
        """The code that stands for the centre."""
        return ((1 << _BITS[self.format]) - 1) / 2

    @cached_property
    def checksum(self) -> int:
        """A number that changes with every change of the codebook."""
        return zlib.crc32(self.scale_D.tobytes(), zlib.crc32(self.centre_D.tobytes(), zlib.crc32(self.format.encode())))

    @property
    def fingerprint(self) -> str:
        """A short name that only this codebook has."""
        raw = self.format.encode() + self.centre_D.tobytes() + self.scale_D.tobytes()
        return hashlib.blake2b(raw, digest_size=8).hexdigest()

    def is_near(self, other: TokenCodebook) -> bool:
        """Say whether codes of the two may be mixed: another processor's last digits of centre and scale do not count."""
        same = self.format == other.format and self.dimension == other.dimension
        near = same and np.allclose(self.centre_D, other.centre_D, atol=1e-4) and np.allclose(self.scale_D, other.scale_D, atol=1e-4)
        return bool(near)

    def quantize(self, rows_TD: Vectors) -> Bytes:
        """Return the codes of token vectors, which are made unit vectors first, one row of bytes a token."""
        unit_TD = _to_units(rows_TD, self.dimension)
        if self.format == "float32":
            return np.ascontiguousarray(unit_TD, dtype="<f4").view(np.uint8).reshape(len(unit_TD), self.token_bytes)
        centred_TD = unit_TD - self.centre_D
        if self.format == "1bit":
            return np.packbits(centred_TD > 0, axis=1)
        steps_TD = np.rint(centred_TD / np.where(self.scale_D == 0, 1, self.scale_D) + self.middle)
        codes_TD = np.clip(steps_TD, 0, 2 * self.middle).astype(np.uint8)
        return codes_TD if self.format == "int8" else _pack_pairs(codes_TD, self.token_bytes)

    def dequantize(self, codes_TB: Bytes) -> Vectors:
        """Return the vectors that codes stand for."""
        if self.format == "float32":
            return np.ascontiguousarray(codes_TB).view("<f4").reshape(len(codes_TB), self.dimension).astype(np.float32)
        codes_TD = self.unpack(codes_TB)[:, : self.dimension]
        values: Vectors = self.centre_D + self.scale_D * (codes_TD.astype(np.float32) - np.float32(self.middle))
        return values

    def prepare_query(self, rows_QD: Vectors) -> Vectors:
        """Return the unit vectors of a question's tokens as they are compared with codes."""
        unit_QD = _to_units(rows_QD, self.dimension)
        return normalize(unit_QD - self.centre_D) if self.format == "1bit" and len(unit_QD) else unit_QD

    def decode_for_search(self, codes_TB: Bytes) -> Vectors:
        """Return the vectors with which a question is compared: those that codes stand for, with 1 bit centred and at unit length."""
        rows_TD = self.dequantize(codes_TB)
        return normalize(rows_TD - self.centre_D) if self.format == "1bit" and len(rows_TD) else rows_TD

    def unpack(self, codes_TB: Bytes) -> Bytes:
        """Return one code a byte; a last byte that is not full gives codes beyond the last dimension."""
        if self.format == "1bit":
            return np.unpackbits(codes_TB, axis=1)
        if self.format == "2bit":
            return np.take(_FOUR_CODES, codes_TB).view(np.uint8).reshape(len(codes_TB), 4 * codes_TB.shape[1])
        return codes_TB


def fit_codebook(rows_TD: Vectors, format: TokenFormat) -> TokenCodebook:
    """Return the codebook that fits a sample of token vectors: its mean, and scales from how far the values stand from it."""
    check_token_format(format)
    unit_TD = _to_units(rows_TD, np.asarray(rows_TD).shape[-1])
    if not len(unit_TD):
        raise InputError("a codebook needs token vectors, found none")
    if format == "float32":
        return TokenCodebook(format, np.zeros(unit_TD.shape[1], np.float32), np.ones(unit_TD.shape[1], np.float32))
    centre_D = unit_TD.mean(axis=0, dtype=np.float64)
    away_TD = unit_TD - centre_D
    if format == "1bit":
        scale_D = 2 * np.abs(away_TD).mean(axis=0)  # codes are 0 and 1: half a step to either side
    else:
        step = _UNIFORM_STEP if format == "2bit" else 2 * _INT8_DEVIATIONS / 255
        scale_D = step * away_TD.std(axis=0)
    return TokenCodebook(format, centre_D.astype(np.float32), scale_D.astype(np.float32))


def check_token_format(format: object) -> None:
    """Refuse a format that token vectors cannot be stored in."""
    if format not in get_args(TokenFormat):
        raise UsageError(f"token vectors in {quote(str(format))} are unknown\n  choose one of {', '.join(get_args(TokenFormat))}")


@dataclass(frozen=True, eq=False)
class TokenCodes:
    """The codes of all tokens of some passages, one passage behind the other."""

    codes_TB: Bytes
    lengths_P: Ints
    """How many tokens each passage has."""

    @classmethod
    def join(cls, passages: Sequence[bytes | Bytes], codebook: TokenCodebook) -> TokenCodes:
        """Put passages together; each holds whole tokens."""
        raw = [each if isinstance(each, bytes) else each.tobytes() for each in passages]
        sizes_P = np.array([len(each) for each in raw], np.int64)
        if (sizes_P % codebook.token_bytes).any():
            raise InputError(f"token codes: found a passage that is no multiple of {codebook.token_bytes} bytes")
        codes_TB = np.frombuffer(b"".join(raw), np.uint8).reshape(-1, codebook.token_bytes)
        return cls(codes_TB, sizes_P // codebook.token_bytes)


def maxsim(query_QD: Vectors, passages: TokenCodes, codebook: TokenCodebook) -> Vectors:
    """Return a score for each passage; one without a token has 0, and so have all for a question without one."""
    best_QP = best_similarities(query_QD, passages, codebook)
    if not len(best_QP):
        return np.zeros(len(passages.lengths_P), np.float32)
    mean_P: Vectors = best_QP.mean(axis=0, dtype=np.float32)
    return mean_P


def best_similarities(query_QD: Vectors, passages: TokenCodes, codebook: TokenCodebook) -> Vectors:
    """Return the best cosine of each question token with any token of each passage, shape (Q, P)."""
    unit_QD = codebook.prepare_query(query_QD)
    best_QP = np.zeros((len(unit_QD), len(passages.lengths_P)), np.float32)
    score = _choose_product(unit_QD, codebook)
    if not len(unit_QD):
        return best_QP

    def fill(group: tuple[int, int, int, int]) -> None:
        first, last, start, stop = group
        lengths = passages.lengths_P[first:last]
        filled = np.flatnonzero(lengths)
        if len(filled):
            starts = (np.cumsum(lengths) - lengths)[filled]
            similarity_TQ = score(passages.codes_TB[start:stop])
            best_QP[:, first + filled] = np.maximum.reduceat(similarity_TQ, starts, axis=0).T

    groups = list(_group_passages(passages.lengths_P))
    if len(groups) < 2 or codebook.format == "float32":  # NumPy multiplies floats on all cores by itself
        for group in groups:
            fill(group)
    else:
        list(_threads().map(fill, groups))
    return best_QP


def token_similarities(query_QD: Vectors, codes_TB: Bytes, codebook: TokenCodebook) -> Vectors:
    """Return the cosine of each question token with each token of one passage, shape (Q, T)."""
    unit_QD = codebook.prepare_query(query_QD)
    similarity_QT: Vectors = unit_QD @ codebook.decode_for_search(codes_TB).T
    return similarity_QT


def maxsim_exact(query_QD: Vectors, passages: Sequence[Vectors]) -> NDArray[np.float64]:
    """Return each passage's score by the definition, in float64, from the token vectors of each."""
    unit_QD = _to_units(query_QD, np.asarray(query_QD).shape[-1]).astype(np.float64)
    scores = []
    for rows_TD in passages:
        unit_TD = _to_units(rows_TD, unit_QD.shape[1]).astype(np.float64)
        scores.append((unit_QD @ unit_TD.T).max(axis=1).mean() if len(unit_TD) and len(unit_QD) else 0.0)
    return np.array(scores)


def _choose_product(unit_QD: Vectors, codebook: TokenCodebook) -> Any:
    """Return a function from codes (T, B) to cosines (T, Q)."""
    if codebook.format == "float32":
        return lambda codes_TB: codebook.dequantize(codes_TB) @ unit_QD.T
    width = codebook.unpack(np.zeros((1, codebook.token_bytes), np.uint8)).shape[1]
    weight_QW = np.zeros((len(unit_QD), width), np.float32)
    is_centred = codebook.format == "1bit"
    length = float(np.linalg.norm(codebook.scale_D)) / 2 if is_centred else 1.0  # of every centred row: its values are half a scale
    weight_QW[:, : codebook.dimension] = unit_QD * (codebook.scale_D / (length or 1.0))
    step_Q1 = np.maximum(np.abs(weight_QW).max(axis=1, keepdims=True, initial=0), np.finfo(np.float32).tiny) / _DIGIT
    high_QW = np.rint(weight_QW / step_Q1)
    low_QW = np.rint((weight_QW / step_Q1 - high_QW) * 2 * _DIGIT)
    digits_WN = np.ascontiguousarray(np.concatenate([high_QW, low_QW]).T.astype(np.int8))
    step_Q = step_Q1[:, 0]
    total_Q = (high_QW + low_QW / (2 * _DIGIT)).sum(axis=1) * step_Q
    centre_Q = 0.0 if is_centred else unit_QD @ codebook.centre_D
    base_Q = np.asarray(centre_Q - codebook.middle * total_Q, dtype=np.float32)
    count = len(unit_QD)

    def score(codes_TB: Bytes) -> Vectors:
        product_TN = _integer_product().run(None, {"codes": codebook.unpack(codes_TB), "digits": digits_WN})[0]
        sum_TQ = product_TN[:, :count] + product_TN[:, count:] * np.float32(1 / (2 * _DIGIT))
        scored: Vectors = (sum_TQ * step_Q + base_Q).astype(np.float32, copy=False)
        return scored

    return score


def _group_passages(lengths_P: Ints) -> Iterator[tuple[int, int, int, int]]:
    """Yield neighbouring passages of about so many tokens together: first and last passage, first and last token."""
    ends_P = np.cumsum(lengths_P)
    total = int(ends_P[-1]) if len(ends_P) else 0
    share = min(_TOKENS_AT_ONCE, max(-(-total // usable_cores()), _TOKENS_FOR_A_THREAD))
    first = start = 0
    while first < len(lengths_P):
        last = max(int(np.searchsorted(ends_P, start + share, side="right")), first + 1)
        stop = int(ends_P[last - 1])
        yield first, last, start, stop
        first, start = last, stop


@cache
def _threads() -> ThreadPoolExecutor:
    """Return the threads that all searches of this process share."""
    return ThreadPoolExecutor(usable_cores(), thread_name_prefix="maxsim")


@cache
def _integer_product() -> Any:
    """Return a session that multiplies bytes without a sign by bytes with one; safe from many threads."""
    import onnxruntime
    from onnx import TensorProto, helper

    graph = helper.make_graph(
        [helper.make_node("MatMulInteger", ["codes", "digits"], ["product"])],
        "maxsim",
        [
            helper.make_tensor_value_info("codes", TensorProto.UINT8, ["T", "W"]),
            helper.make_tensor_value_info("digits", TensorProto.INT8, ["W", "N"]),
        ],
        [helper.make_tensor_value_info("product", TensorProto.INT32, ["T", "N"])],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])


def _to_units(rows: Vectors, dimension: int) -> Vectors:
    rows_ND = np.asarray(rows, dtype=np.float32)
    if rows_ND.ndim != 2 or rows_ND.shape[1] != dimension:
        raise UsageError(f"token vectors: found shape {rows_ND.shape}, expected (tokens, {dimension})")
    return normalize(rows_ND) if len(rows_ND) else rows_ND


def _pack_pairs(codes_TD: Bytes, width: int) -> Bytes:
    """Put four codes of two bits into a byte."""
    padded_TW = np.zeros((len(codes_TD), 4 * width), np.uint8)
    padded_TW[:, : codes_TD.shape[1]] = codes_TD
    parts_TB4 = padded_TW.reshape(len(codes_TD), width, 4)
    weights = np.array([64, 16, 4, 1], np.uint8)
    packed: Bytes = (parts_TB4 * weights).sum(axis=2, dtype=np.uint8)
    return packed
