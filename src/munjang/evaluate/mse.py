"""Distillation: a teacher's vectors of the source, a student's vectors of source or target → the mean squared error between them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from munjang.data.rows import TextPair
from munjang.errors import InputError
from munjang.evaluate.bootstrap import to_jsonable
from munjang.evaluate.inputs import check_rows
from munjang.types import Encoder, Vectors, check_encoder


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
