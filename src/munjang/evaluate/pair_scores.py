"""One score per pair, whichever model: the cosine of an Encoder, the score of a Scorer. Evaluation, comparison and calibration use it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias, TypeGuard, cast

from munjang.data.rows import LabelledPair, ScoredPair
from munjang.evaluate.correlation import pair_similarities
from munjang.evaluate.inputs import FloatArray
from munjang.evaluate.rerank import score_relevance
from munjang.evaluate.sts import encode_sides
from munjang.types import Encoder, Scorer, check_encoder, check_scorer

PairJudge: TypeAlias = Encoder | Scorer
"""A sentence encoder, or a model that scores pairs itself: a cross-encoder, a pair classifier's label."""


def is_scorer(model: PairJudge) -> TypeGuard[Scorer]:
    """Say whether a model scores pairs itself; one that encodes texts is compared by its vectors."""
    return callable(getattr(model, "predict", None)) and not callable(getattr(model, "encode", None))


def as_encoder(model: PairJudge) -> Encoder:
    """Return a model that is no Scorer as what it is then."""
    return cast("Encoder", model)


def check_judge(model: PairJudge, name: str = "model") -> None:
    """Refuse what neither encodes texts nor scores pairs; `name` is the argument's."""
    if is_scorer(model):
        check_scorer(model, name)
    else:
        check_encoder(model, name)


def measure_pairs(model: PairJudge, pairs: Sequence[ScoredPair] | Sequence[LabelledPair]) -> FloatArray:
    """Return one score per pair; a Scorer with several labels is refused."""
    if is_scorer(model):
        return score_relevance(model, [(pair.a, pair.b) for pair in pairs])
    return pair_similarities(*encode_sides(as_encoder(model), [pair.a for pair in pairs], [pair.b for pair in pairs]))
