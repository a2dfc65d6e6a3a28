"""Munjang's own: a few sentences, compared and looked into."""

from __future__ import annotations

from munjang.models.score_pairs import score_pairs
from munjang.serve.schemas.base import OwnModel, takes_options


class SimilarityRequest(OwnModel):
    """Sentences to compare: each of `a` with each of `b`, or, without `b`, with one another."""

    a: list[str]
    b: list[str] | None = None
    model: str | None = None


class SimilarityOut(OwnModel):
    """A row for each of `a`, a column for each of `b`."""

    scores: list[list[float]]
    truncated: list[int]


@takes_options(score_pairs)
class ScoreRequest(OwnModel):
    """Pairs to score or label; `model` is the name of any served model."""

    pairs: list[list[str]]
    model: str | None = None


class ScoreOut(OwnModel):
    """One score per pair; of a model with several labels, one per label in the order of `labels`, and the label of the highest."""

    model: str
    labels: list[str]
    scores: list[float] | list[list[float]]
    predicted: list[str]
    truncated: list[int]


class InspectRequest(OwnModel):
    """A sentence to inspect, or two to compare token by token."""

    text: str
    other: str | None = None
    model: str | None = None


class TokenOut(OwnModel):
    """One token as the model gets it; start and end count characters."""

    text: str
    id: int
    segment: int
    position: int
    mask: int
    special: bool
    start: int
    end: int
    pooled: bool


class LayerOut(OwnModel):
    """One layer's output."""

    name: str
    shape: list[int]
    mean_norm: float | None


class InspectionOut(OwnModel):
    """Everything between a sentence and its vector."""

    text: str
    prompt: str
    tokens: list[TokenOut]
    tokens_before_cut: int
    layers: list[LayerOut]
    vector: list[float]


class TokenPairOut(OwnModel):
    """A token of the first sentence with its best partner in the second."""

    first: int
    second: int
    cosine: float
    contribution: float | None


class InspectOut(OwnModel):
    """One sentence, or two with every token's cosine with every token."""

    first: InspectionOut
    second: InspectionOut | None = None
    score: float | None = None
    cosine: list[list[float]] | None = None
    contribution: list[list[float]] | None = None
    best_pairs: list[TokenPairOut] | None = None
