"""Munjang's own: texts to label, by names of labels, by examples, or by a classifier that the server has."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from munjang.analyze.classify.apply import apply_classifier
from munjang.analyze.classify.zero_shot import classify_texts
from munjang.serve.schemas.base import OwnModel, takes_options
from munjang.serve.schemas.collection import CollectionRequest

MOST_LABELS = 1_000


class LabelIn(OwnModel):
    """A label: its name, what its texts are about, and words that are typical of them."""

    name: str
    description: str = ""
    words: Annotated[list[str], Field(default_factory=list, max_length=100)]


class ExampleIn(OwnModel):
    """A text with its label."""

    text: str
    label: str


@takes_options(classify_texts, apply_classifier)
class ClassifyRequest(CollectionRequest):
    """Texts or a library to label; and one of: labels, examples, or the name of a served classifier."""

    labels: Annotated[list[str | LabelIn] | None, Field(max_length=MOST_LABELS)] = None
    examples: list[ExampleIn] | None = None
    classifier: str | None = None


class LabelOut(OwnModel):
    """What one text is about."""

    labels: list[str]
    """The answer: one label, several where texts may have several, none where the classifier abstains."""
    probability: float
    """Of the most likely label."""
    guess: str
    """The most likely label."""
    runner_up: str
    runner_up_probability: float


class AbstentionOut(OwnModel):
    """What held-out examples say of the precision that was asked for."""

    precision: float
    threshold: float
    held_out_precision: float
    held_out_share: float
    held_out_rows: int


class ClassifyOut(OwnModel):
    """The label of each text."""

    names: list[str]
    """All labels."""
    results: list[LabelOut]
    accuracy: float | None
    """Of examples that were held out; null where nothing was."""
    abstention: AbstentionOut | None
    ids: list[str] | None
    """The documents' ids where a library was labelled."""
    texts: list[str]
    """The beginning of each text."""
    truncated: list[int]
