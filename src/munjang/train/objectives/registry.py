"""The closed tables of objectives and score losses: a name and a recipe's settings → the thing itself. Nothing is imported by name.

Where a recipe names none, `choose_objective` and `choose_score_loss` pick one from the shape of the data (how many text columns, what kind
of label) and say why in one sentence.

Matryoshka stands here too, since it is made around any of them: the loss at several dimensions, so that a vector may be cut and still be
good. At each dimension the vectors are cut and brought to length 1, and the inner objective's losses are summed with weights, equal to
sentence-transformers' MatryoshkaLoss. Two things go further: an objective with a head gets one head a dimension, and a teacher's vectors
are cut and brought to length 1 too, so that a student equal to the teacher has loss 0.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from munjang.errors import InputError, UsageError, quote
from munjang.report.training_words import TrainingWord
from munjang.report.words import Message
from munjang.train.card import LOSSES
from munjang.train.examples import DataShape
from munjang.train.objectives.base import Objective
from munjang.train.objectives.contrastive import Contrastive, InBatch, OnlineContrastive, TripletObjective
from munjang.train.objectives.labelled import Angle, Classification, Cosent, Distillation, MarginMse, Regression
from munjang.train.objectives.late_interaction import LateInteraction
from munjang.train.objectives.maxsim import MaxSim, MaxSimScores
from munjang.train.objectives.score_distillation import ScoreDistillation
from munjang.train.objectives.score_losses import (
    Bce,
    CrossEntropy,
    LambdaLoss,
    ListNet,
    Mse,
    MultipleNegatives,
    RankNet,
    ScoreLoss,
    ScoreMarginMse,
)
from munjang.train.objectives.token_distillation import TokenDistillation
from munjang.train.settings import read_settings, refuse_unless, suggest_name


@dataclass(frozen=True)
class MatryoshkaSettings:
    """The inner objective with its settings, the dimensions, and a weight for each (1 where none are given)."""

    around: str = "in_batch"
    inner: Mapping[str, object] = field(default_factory=dict)
    dims: tuple[int, ...] = ()
    weights: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        refuse_unless(
            len(self.dims) > 0, "objective 'matryoshka': dims is missing, expected a list of dimensions, e.g. dims = [384, 192, 96]"
        )
        refuse_unless(len(set(self.dims)) == len(self.dims), "objective 'matryoshka': dims names one dimension twice")
        refuse_unless(min(self.dims) > 0, f"objective 'matryoshka': dims holds {min(self.dims)}, expected 1 or more")
        count = len(self.weights)
        refuse_unless(count in (0, len(self.dims)), f"objective 'matryoshka': found {count} weights for {len(self.dims)} dims")
        refuse_unless(all(weight >= 0 for weight in self.weights), "objective 'matryoshka': weights must not be negative")
        refuse_unless(self.around != "matryoshka", "objective 'matryoshka': around is matryoshka itself, expected another objective")


class Matryoshka(Objective):
    """The weighted sum of one objective's losses at several dimensions."""

    name = "matryoshka"
    settings_type = MatryoshkaSettings
    columns_needed: int | str = "1+"

    def __init__(self, inners: Sequence[Objective], *, dims: Sequence[int], weights: Sequence[float], dimension: int) -> None:
        super().__init__()
        self.inners = nn.ModuleList(inners)
        self.dims, self.weights, self.dimension = tuple(dims), tuple(weights), dimension
        self.columns_needed = inners[0].columns_needed
        self.label_kind = inners[0].label_kind
        self.learns_all_columns = inners[0].learns_all_columns
        self.needs_no_duplicates = inners[0].needs_no_duplicates
        self.compares_rows = inners[0].compares_rows

    @classmethod
    def build(cls, values: Mapping[str, object], *, dimension: int, num_labels: int | None) -> Matryoshka:
        """Make one inner objective for each dimension, the largest first."""
        settings = read_settings(MatryoshkaSettings, values, where="objective 'matryoshka'")
        if max(settings.dims) > dimension:
            raise UsageError(f"objective 'matryoshka': dims holds {max(settings.dims)}, the model's vectors have {dimension} dimensions")
        weights = settings.weights or (1.0,) * len(settings.dims)
        ordered = sorted(zip(settings.dims, weights, strict=True), reverse=True)
        inners = [make_objective(settings.around, settings.inner, dimension=dim, num_labels=num_labels) for dim, _ in ordered]
        return cls(inners, dims=[dim for dim, _ in ordered], weights=[weight for _, weight in ordered], dimension=dimension)

    def loss(self, columns: list[Tensor], labels: Tensor) -> Tensor:
        """Return the weighted sum over the dimensions."""
        width = columns[0].shape[1]
        if width != self.dimension:
            raise InputError(f"objective 'matryoshka': vectors have {width} dimensions, expected {self.dimension}")
        losses = []
        for inner, dim, weight in zip(self.inners, self.dims, self.weights, strict=True):
            inner_labels = None if self.label_kind is None else cut(labels, dim) if self.label_kind == "vectors" else labels
            losses.append(weight * inner([cut(column_BD, dim) for column_BD in columns], inner_labels))
        return torch.stack(losses).sum()

    def describe(self) -> str:
        """Say the dimensions, their weights, and the inner objective; warn if the full dimension is not among them."""
        steps = ", ".join(f"{dim}×{weight:g}" for dim, weight in zip(self.dims, self.weights, strict=True))
        inner = self.inners[0]
        assert isinstance(inner, Objective)
        word = TrainingWord.OBJECTIVE_MATRYOSHKA if self.dimension in self.dims else TrainingWord.OBJECTIVE_MATRYOSHKA_CUT
        return Message(word, steps=steps, dimension=self.dimension, inner=inner.describe())


def cut(vectors_BD: Tensor, dim: int) -> Tensor:
    """Return the first `dim` numbers of each vector, brought to length 1."""
    return F.normalize(vectors_BD[..., :dim], dim=-1)


_OBJECTIVE_CLASSES: tuple[type[Objective], ...] = (
    Classification,
    Regression,
    TripletObjective,
    InBatch,
    LateInteraction,
    MaxSim,
    MaxSimScores,
    Cosent,
    Angle,
    Contrastive,
    OnlineContrastive,
    Distillation,
    ScoreDistillation,
    TokenDistillation,
    MarginMse,
    Matryoshka,
)
OBJECTIVES: dict[str, type[Objective]] = {kind.name: kind for kind in _OBJECTIVE_CLASSES}

_SCORE_LOSS_CLASSES: tuple[type[ScoreLoss], ...] = (Mse, Bce, CrossEntropy, ScoreMarginMse, MultipleNegatives, ListNet, LambdaLoss, RankNet)
SCORE_LOSSES: dict[str, type[ScoreLoss]] = {kind.name: kind for kind in _SCORE_LOSS_CLASSES}


def make_objective(name: str, settings: Mapping[str, object], *, dimension: int, num_labels: int | None = None) -> Objective:
    """Return the objective called `name`; an unknown name or setting is a UsageError that names the nearest known one.

    >>> make_objective("triplet", {"margin": 2}, dimension=384).describe()
    'triplets, euclidean distance, margin 2'
    """
    if name not in OBJECTIVES:
        raise UsageError(f"unknown objective {quote(name)}{suggest_objective(name, OBJECTIVES)}")
    return OBJECTIVES[name].build(settings, dimension=dimension, num_labels=num_labels)


def suggest_objective(name: str, known: Iterable[str]) -> str:
    """Return the tail of a message that points at the objective that was meant; sentence-transformers' names are understood.

    >>> suggest_objective("MultipleNegativesRankingLoss", OBJECTIVES)
    '\\n  did you mean in_batch?'
    """
    names = list(known)
    return suggest_name(name, names, elsewhere={LOSSES[ours]: ours for ours in reversed(names) if ours in LOSSES})


def make_score_loss(name: str, settings: Mapping[str, object]) -> ScoreLoss:
    """Return the cross-encoder loss called `name`; an unknown name or setting is a UsageError that names the nearest known one."""
    if name not in SCORE_LOSSES:
        raise UsageError(f"unknown loss {quote(name)}{suggest_objective(name, SCORE_LOSSES)}")
    return read_settings(SCORE_LOSSES[name], settings, where=f"loss {name!r}")


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
