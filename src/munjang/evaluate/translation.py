"""Sentences and their translations → how often each finds the other among all, and how far a student's vectors are from its teacher's.

The rule of retrieval is sentence-transformers' TranslationEvaluator's: the nearest by cosine counts as right if its text equals the true
one's, so that repeated sentences do no harm. Names are its too (`src2trg_accuracy`, …). The mean squared error (`evaluate_mse`) compares
the teacher's vectors of the source with the student's vectors of source and target, as multilingual distillation wants them equal.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from munjang.data.rows import TextPair
from munjang.errors import InputError
from munjang.evaluate.bootstrap import RESAMPLES, Interval, Resamples, bootstrap_means, to_jsonable
from munjang.evaluate.inputs import FloatArray, check_rows, check_same_length
from munjang.options import check_options
from munjang.types import Encoder, Vectors, check_encoder
from munjang.vectors.topk import top_k
from munjang.wording import brief_repr


@brief_repr
@dataclass(frozen=True)
class TranslationResult:
    """The accuracy from source to target, from target to source, and their mean."""

    n: int
    src2trg_accuracy: float
    trg2src_accuracy: float
    mean_accuracy: float
    ci95: dict[str, Interval]

    def to_json(self) -> dict[str, Any]:
        """Return every number."""
        return dict(to_jsonable(self))


def evaluate_translation(
    encoder: Encoder, pairs: Sequence[TextPair], *, target_encoder: Encoder | None = None, resamples: Resamples = RESAMPLES, seed: int = 0
) -> TranslationResult:
    """Return an encoder's accuracy at finding translations; `target_encoder` encodes the target side, where that is another model."""
    check_options(evaluate_translation, locals())
    pairs = check_rows(pairs, TextPair, name="pairs")
    check_encoder(encoder)
    check_encoder(target_encoder or encoder, "target_encoder")
    if not pairs:
        raise InputError("no sentence pairs to evaluate")
    source, target = [pair.a for pair in pairs], [pair.b for pair in pairs]
    vectors = encoder.encode(source), (target_encoder or encoder).encode(target)
    return score_translation(*vectors, source=source, target=target, resamples=resamples, seed=seed)


def score_translation(
    source_vectors: Vectors,
    target_vectors: Vectors,
    *,
    source: Sequence[str] | None = None,
    target: Sequence[str] | None = None,
    resamples: Resamples = RESAMPLES,
    seed: int = 0,
) -> TranslationResult:
    """Return the accuracy of vectors already made; without texts only the very row counts as right. resamples=0: no intervals."""
    check_same_length(source_vectors, target_vectors, names=("source vectors", "target vectors"))
    n = len(source_vectors)
    if not n:
        raise InputError("no vectors to compare")
    there = _find_partners(source_vectors, target_vectors, target)
    back = _find_partners(target_vectors, source_vectors, source)
    columns = {"src2trg_accuracy": there, "trg2src_accuracy": back} if resamples else {}
    ci95 = bootstrap_means(columns, resamples=resamples, seed=seed)
    return TranslationResult(n, float(there.mean()), float(back.mean()), float((there.mean() + back.mean()) / 2), ci95)


def _find_partners(queries: Vectors, corpus: Vectors, texts: Sequence[str] | None) -> FloatArray:
    _, nearest = top_k(queries, corpus, k=1, metric="cosine")
    rows = enumerate(nearest[:, 0].tolist())
    right = [column == row or (texts is not None and texts[column] == texts[row]) for row, column in rows]
    return np.asarray(right, dtype=np.float64)


@dataclass(frozen=True)
class MseResult:
    """Mean squared error per number of a vector. `negative_mse` is sentence-transformers' form: −100 × mse of the target side."""

    n: int
    source_mse: float
    target_mse: float
    negative_mse: float

    def to_json(self) -> dict[str, Any]:
        """Return every number."""
        return dict(to_jsonable(self))


def evaluate_mse(teacher: Encoder, student: Encoder, pairs: Sequence[TextPair]) -> MseResult:
    """Return how far the student's vectors of both sides are from the teacher's vector of the source."""
    pairs = check_rows(pairs, TextPair, name="pairs")
    check_encoder(teacher, "teacher")
    check_encoder(student, "student")
    if not pairs:
        raise InputError("no sentence pairs to evaluate")
    source, target = [pair.a for pair in pairs], [pair.b for pair in pairs]
    taught = teacher.encode(source)
    on_target = score_mse(taught, student.encode(target))
    return MseResult(len(pairs), score_mse(taught, student.encode(source)), on_target, -100 * on_target)


def score_mse(teacher: Vectors, student: Vectors) -> float:
    """Return the mean squared difference of two arrays of one shape.

    >>> score_mse(np.zeros((2, 2), np.float32), np.ones((2, 2), np.float32))
    1.0
    """
    if teacher.shape != student.shape or not teacher.size:
        raise InputError(f"teacher vectors of shape {teacher.shape}, student's {student.shape}, expected one shape and some rows")
    difference = teacher.astype(np.float64) - student.astype(np.float64)
    return float(np.mean(difference * difference))
