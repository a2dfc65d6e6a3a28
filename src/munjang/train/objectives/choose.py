"""The shape of the data → the objective or cross-encoder loss that fits it, with the reason in one sentence.

In: how many text columns there are and what kind of label. Out: a name and settings for `make_objective` or `make_score_loss`. Reading the
data and finding its label kind is the examples' work; a recipe that names an objective never comes here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from munjang.errors import InputError, UsageError
from munjang.report.training_words import TrainingWord
from munjang.report.words import Message
from munjang.train.objectives.base import LabelKind


@dataclass(frozen=True)
class DataShape:
    """What decides the objective. `classes` counts distinct classes or 0/1 labels; `label_range` is the lowest and highest score found."""

    columns: int
    label_kind: LabelKind | None = None
    classes: int | None = None
    label_range: tuple[float, float] | None = None


@dataclass(frozen=True)
class ObjectiveChoice:
    """An objective, its settings, and why."""

    name: str
    reason: str
    settings: Mapping[str, object] = field(default_factory=dict)


def choose_objective(shape: DataShape) -> ObjectiveChoice:
    """Return the objective for data of this shape; data that can teach nothing is refused.

    >>> choose_objective(DataShape(columns=2)).name
    'in_batch'
    """
    refuse_one_label(shape)
    if shape.label_kind == "vectors":
        return ObjectiveChoice("distillation", Message(TrainingWord.CHOSEN_DISTILLATION))
    if shape.columns < 2:
        raise UsageError(
            "the data has one text column, and an objective compares two\n  add a second column, or use munjang adapt for plain text"
        )
    if shape.columns == 2:
        return _choose_for_pairs(shape)
    if shape.label_kind is None:
        return ObjectiveChoice("in_batch", Message(TrainingWord.CHOSEN_IN_BATCH_NEGATIVES))
    if shape.label_kind == "margins":
        return ObjectiveChoice("margin_mse", Message(TrainingWord.CHOSEN_MARGINS))
    raise UsageError(
        f"found {shape.columns} text columns with a label of kind {shape.label_kind!r}, which no objective takes\n  name the columns to use"
    )


def _choose_for_pairs(shape: DataShape) -> ObjectiveChoice:
    if shape.label_kind == "class":
        return ObjectiveChoice(
            "classification", Message(TrainingWord.CHOSEN_CLASSES, classes=shape.classes or Message(TrainingWord.SEVERAL))
        )
    if shape.label_kind == "score":
        return ObjectiveChoice("cosent", Message(TrainingWord.CHOSEN_SCORES))
    if shape.label_kind == "binary":
        return ObjectiveChoice("online_contrastive", Message(TrainingWord.CHOSEN_BINARY))
    if shape.label_kind == "margins":
        raise UsageError("a teacher's margins need three text columns (query, positive, negative), the data has two")
    return ObjectiveChoice("in_batch", Message(TrainingWord.CHOSEN_PAIRS))


def refuse_one_label(shape: DataShape) -> None:
    """Refuse labels that are all the same."""
    if shape.label_kind in ("class", "binary") and shape.classes is not None and shape.classes < 2:
        raise InputError(f"the label column holds {shape.classes} class, expected two or more\n  check which column is named as the label")
    if shape.label_kind == "score" and shape.label_range is not None and shape.label_range[0] >= shape.label_range[1]:
        raise InputError(
            f"every score is {shape.label_range[0]:g}, so there is nothing to learn\n  check which column is named as the label"
        )


def choose_score_loss(shape: DataShape) -> ObjectiveChoice:
    """Return the loss for data of this shape; data that can teach nothing is refused.

    >>> choose_score_loss(DataShape(columns=2, label_kind="class", classes=3)).name
    'cross_entropy'
    """
    refuse_one_label(shape)
    if shape.columns < 2:
        raise UsageError("the data has one text column, and a cross-encoder scores pairs\n  add a second column")
    if shape.label_kind == "margins":
        return ObjectiveChoice("margin_mse", Message(TrainingWord.CHOSEN_LIST_MARGINS))
    if shape.columns > 2:
        return ObjectiveChoice("multiple_negatives", Message(TrainingWord.CHOSEN_LISTS))
    if shape.label_kind == "class":
        return ObjectiveChoice(
            "cross_entropy", Message(TrainingWord.CHOSEN_PAIR_CLASSES, classes=shape.classes or Message(TrainingWord.SEVERAL))
        )
    if shape.label_kind == "score":
        return ObjectiveChoice("mse", Message(TrainingWord.CHOSEN_PAIR_SCORES))
    if shape.label_kind == "binary":
        return ObjectiveChoice("bce", Message(TrainingWord.CHOSEN_PAIR_BINARY))
    return ObjectiveChoice("multiple_negatives", Message(TrainingWord.CHOSEN_PAIR_MATCHES))
