"""Which loss a cross-encoder learns each data set with, and so which labels it has.

In: a recipe's data. Out: the loss of a source, named or chosen from the data's shape, and the labels' names over all stages: the classes
where the loss is cross-entropy, one score otherwise. A model has one head, so the stages must agree.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from munjang.errors import InputError, UsageError, shown
from munjang.train.examples import DataSource, ExampleSet, read_examples
from munjang.train.objectives.choose_score import choose_score_loss
from munjang.train.objectives.registry import SCORE_LOSSES, make_score_loss, nearest_objective
from munjang.train.objectives.scores import ScoreLoss
from munjang.train.recipe import Recipe, StageRecipe

ONE_SCORE = ("LABEL_0",)
"""What transformers calls the only label of a model that gives one number."""

_FITS: dict[str, tuple[str | None, ...]] = {
    "mse": ("score", "binary"),
    "bce": ("score", "binary", None),
    "cross_entropy": ("class", "binary"),
    "margin_mse": ("margins",),
    "multiple_negatives": (None,),
    "listnet": (None, "margins", "binary", "score"),
    "lambdaloss": (None, "margins", "binary", "score"),
    "ranknet": (None, "margins", "binary", "score"),
}
"""The kinds of label that each loss can learn from; None is rows of query, answer and negatives."""


@dataclass(frozen=True)
class PlannedLoss:
    """A loss, and why it was chosen where nobody named it."""

    loss: ScoreLoss
    why: str | None


def plan_loss(stage: StageRecipe, source: DataSource, found: ExampleSet) -> PlannedLoss:
    """Return the loss for one data set; a loss that its labels do not fit is refused."""
    name = source.objective or stage.objective
    settings: Mapping[str, object] = source.settings if source.settings is not None else stage.settings
    why = None
    if name is None:
        choice = choose_score_loss(found.shape())
        name, why = choice.name, choice.reason
    if name not in SCORE_LOSSES:
        raise UsageError(f"unknown objective {shown(name)} for a cross-encoder{nearest_objective(name, SCORE_LOSSES)}")
    if name == "mse":
        # scores are 0 … 1, and the saved model gives sigmoids
        settings = {"activation": "sigmoid", **settings}
    loss = make_score_loss(name, settings)
    if found.label_kind not in _FITS[name]:
        found_kind = "none" if found.label_kind is None else f"of kind {found.label_kind!r}"
        expected = " or ".join("none" if kind is None else repr(kind) for kind in _FITS[name])
        raise InputError(
            f"{found.source}: labels are {found_kind}, objective {name!r} needs {expected}\n"
            "  name another objective, or say label_range if the labels are scores"
        )
    if found.label_kind is None and found.columns < 3 and name != "multiple_negatives":
        raise InputError(
            f"{found.source}: pairs without labels have no negatives, objective {name!r} needs some\n"
            "  find them with munjang mine, or use multiple_negatives, which takes random ones"
        )
    if (
        name in ("listnet", "lambdaloss", "ranknet")
        and found.label_kind == "margins"
        and len(found.examples[0].scores) != found.columns - 1
    ):
        raise InputError(f"{found.source}: scores are margins, objective {name!r} needs a score for each document")
    return PlannedLoss(loss, why)


def data_labels(recipe: Recipe) -> tuple[str, ...]:
    """Return the names of the labels that the recipe's data calls for."""
    classes: set[str] = set()
    kinds: dict[bool, str] = {}
    for stage in recipe.stages:
        for source in stage.data:
            found = read_examples(source, seed=recipe.seed)
            has_classes = plan_loss(stage, source, found).loss.name == "cross_entropy"
            classes |= set(found.classes) if has_classes else set()
            kinds[has_classes] = found.source
    if len(kinds) > 1:
        raise UsageError(
            f"{kinds[True]} has classes and {kinds[False]} one score, and a cross-encoder has one head\n"
            "  train in two recipes, the second from the first one's folder"
        )
    return tuple(sorted(classes)) if True in kinds else ONE_SCORE
