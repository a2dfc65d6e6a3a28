"""The cross-encoder's `Task`: a stage with its losses, dev sets of scores, the saved folder, how the scores lie.

Rows take the shape that the loss wants: triplets become labelled pairs, labelled pairs of one query become a list, pairs without labels get
random answers of other rows as negatives. The loss of a data set is named or chosen from its shape, and decides the labels' names over all
stages: the classes where it is cross-entropy, one score otherwise. A model has one head, so the stages must agree. Everything follows from
recipe, data and seed, so a resumed run makes the same stage again.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from munjang.engine.modules import TORCH_NAMES
from munjang.engine.write_folder import write_json
from munjang.errors import InputError, UsageError, quote
from munjang.evaluate.nli import choose_labels
from munjang.models.save import SAVED_AS, save_pair_tokenizer
from munjang.report.training_words import TrainingWord
from munjang.report.words import Message, WordTable
from munjang.train.build import build_cross_encoder
from munjang.train.cross_encoder import TrainableCrossEncoder
from munjang.train.dev import Evaluation, Role, read_cross_dev
from munjang.train.diagnoses import describe_classes, describe_scores
from munjang.train.examples import DataSource, Example, ExampleSet, read_examples
from munjang.train.load_folder import quiet_transformers
from munjang.train.log import Answers
from munjang.train.objectives.base import Objective
from munjang.train.objectives.registry import SCORE_LOSSES, choose_score_loss, make_score_loss, suggest_objective
from munjang.train.objectives.score_losses import Mse, ScoreLoss, ScoreObjective
from munjang.train.recipe import Recipe, StageRecipe
from munjang.train.report import PAIRS, Spread, find_middle
from munjang.train.sampling import Sampled
from munjang.train.stage import PADDED_WINDOW, Stage, StageData, TokenTable, describe_notes, describe_rows
from munjang.types import Vectors

ONE_SCORE = ("LABEL_0",)
"""What transformers calls the only label of a model that gives one number."""
RANDOM_NEGATIVES = 4
"""Answers of other rows that a pair without labels gets."""
LONGEST_LIST = 32
"""Documents of one query that are ordered together; the most relevant are kept."""

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


@dataclass
class CrossTask:
    """Trains a cross-encoder."""

    model: TrainableCrossEncoder
    marker_file = "config.json"
    pooling = ""

    @classmethod
    def build(cls, recipe: Recipe, *, keep: Path) -> CrossTask:
        """Make the cross-encoder that a recipe starts from, with the labels of its data."""
        return cls(build_cross_encoder(recipe, find_labels(recipe), keep=keep))

    @property
    def max_length(self) -> int:
        """At how many tokens a pair is cut."""
        return self.model.max_length

    @property
    def labels(self) -> Sequence[str]:
        """The names of the outputs."""
        return self.model.labels

    def prepare(self, recipe: StageRecipe, *, number: int, seed: int, show: Callable[[str], None]) -> Stage:  # noqa: ARG002
        """Read, shape and tokenise one stage; the model's activation becomes what the loss trains for."""
        return prepare_cross_stage(recipe, self.model, number=number, seed=seed)

    def read_dev(self, source: DataSource, role: Role, stage: Stage) -> Callable[[], Evaluation]:
        """Read a dev or test file that fits the model's labels."""
        return partial(read_cross_dev(source, self.model.labels, seed=stage.seed, role=role).score, self.model)

    def measure_spread(self, data: ExampleSet, *, seed: int) -> Spread:
        """Return the scores of a sample of rows."""
        return measure_score_spread(self.model, data, seed=seed)

    def list_facts(self) -> list[tuple[WordTable, object]]:
        """Return the labels."""
        return [(TrainingWord.LABELS, ", ".join(self.labels))]

    def save(self, target: Path, last: Stage) -> None:  # noqa: ARG002
        """Write a folder that transformers, sentence-transformers and the engine load, its head included."""
        save_cross_encoder(self.model, target)


def prepare_cross_stage(recipe: StageRecipe, model: TrainableCrossEncoder, *, number: int, seed: int) -> Stage:
    """Read, shape and tokenise one stage; the model's activation becomes what the loss trains for."""
    messages = list(model.messages) if number == 0 else []
    shaped: list[tuple[ExampleSet, ScoreLoss]] = []
    for source in recipe.data:
        found = read_examples(source, seed=seed)
        planned = plan_loss(recipe, source, found)
        made = shape_rows(found, planned.loss, seed=seed)
        shaped.append((made, planned.loss))
        messages += [describe_rows(made, ScoreObjective(planned.loss), planned.why), *describe_notes(made)]
    table = TokenTable((text for made, _ in shaped for example in made.examples for text in example.texts), model.tokens)
    objectives: list[Objective] = [ScoreObjective(loss) for _, loss in shaped]
    data = [
        StageData(
            made, _make_labels(made, loss, model.labels), place, Sampled([_count_tokens(example, table) for example in made.examples])
        )
        for place, (made, loss) in enumerate(shaped)
    ]
    if model.dimension == 1 and any(loss.name in ("mse", "bce") for _, loss in shaped):
        plain = any(isinstance(loss, Mse) and loss.activation == "none" for _, loss in shaped)
        model.activation = "identity" if plain else "sigmoid"
    window = recipe.length_window if recipe.length_window is not None else (0 if model.is_packed else PADDED_WINDOW)
    return Stage(recipe, number, seed, data, objectives, table, messages, window)


def shape_rows(found: ExampleSet, loss: ScoreLoss, *, seed: int) -> ExampleSet:
    """Return the rows in the shape that the loss wants."""
    if loss.shape == "pair":
        return _make_pairs(found) if found.columns > 2 else found
    if found.columns > 2:
        return found
    return _add_random_negatives(found, seed) if found.label_kind is None else _make_lists(found)


def _make_pairs(found: ExampleSet) -> ExampleSet:
    """Cut rows of query, answer and negatives into pairs labelled 1 and 0."""
    made = [
        Example((example.texts[0], text), float(place == 0), example.where)
        for example in found.examples
        for place, text in enumerate(example.texts[1:])
    ]
    return replace(found, examples=tuple(made), label_kind="binary", classes=("0", "1"))


def _make_lists(found: ExampleSet) -> ExampleSet:
    """Gather labelled pairs with the same first text into one row, most relevant first."""
    groups: dict[str, list[Example]] = {}
    for example in found.examples:
        groups.setdefault(example.texts[0], []).append(example)
    kept = {query: rows for query, rows in groups.items() if len({row.label for row in rows}) > 1}
    if not kept:
        raise InputError(
            f"{found.source}: no first text stands in rows with different labels, so there is nothing to order\n"
            "  use mse or bce, which learn from single pairs"
        )
    made = []
    for query, rows in kept.items():
        best = sorted(rows, key=lambda row: -(row.label or 0.0))[:LONGEST_LIST]
        made.append(Example((query, *(row.texts[1] for row in best)), None, rows[0].where, scores=tuple(row.label or 0.0 for row in best)))
    notes = [Message(TrainingWord.QUERIES_LEFT_OUT, count=len(groups) - len(kept), total=len(groups))]
    cut = sum(len(rows) > LONGEST_LIST for rows in kept.values())
    notes += [Message(TrainingWord.QUERIES_CUT, count=cut, most=LONGEST_LIST)] if cut else []
    return replace(
        found, examples=tuple(made), label_kind="margins", notes=(*found.notes, *(notes if len(kept) < len(groups) else notes[1:]))
    )


def _add_random_negatives(found: ExampleSet, seed: int) -> ExampleSet:
    """Give each pair answers of other rows; a row's own query's answers are never among them."""
    answers = list(dict.fromkeys(example.texts[1] for example in found.examples))
    right: dict[str, set[str]] = {}
    for example in found.examples:
        right.setdefault(example.texts[0], {example.texts[0]}).add(example.texts[1])
    random = np.random.default_rng([seed, len(answers)])
    made = []
    for example in found.examples:
        # a few more than needed, since a right answer may be among them
        drawn = dict.fromkeys(answers[at] for at in random.integers(0, len(answers), RANDOM_NEGATIVES + 4).tolist())
        wrong = [text for text in drawn if text not in right[example.texts[0]]][:RANDOM_NEGATIVES]
        made += [replace(example, texts=(*example.texts, *wrong))] if wrong else []
    if not made:
        raise InputError(f"{found.source}: every answer belongs to every query, so there are no negatives")
    note = Message(TrainingWord.RANDOM_NEGATIVES, most=RANDOM_NEGATIVES)
    return replace(found, examples=tuple(made), notes=(*found.notes, note))


def _make_labels(found: ExampleSet, loss: ScoreLoss, names: Sequence[str]) -> Tensor | None:
    if loss.name == "cross_entropy":
        place = {name: number for number, name in enumerate(names)}
        return torch.tensor([place[found.classes[int(example.label or 0)]] for example in found.examples])
    if loss.shape == "pair":
        return torch.tensor([example.label for example in found.examples], dtype=torch.float32)
    if loss.name == "margin_mse":
        return torch.tensor([example.scores for example in found.examples], dtype=torch.float32)
    width = found.columns - 1
    rows = [example.scores or (1.0, *[0.0] * (len(example.texts) - 2)) for example in found.examples]
    return torch.tensor([[*row, *[math.nan] * (width - len(row))] for row in rows], dtype=torch.float32)


def _count_tokens(example: Example, table: TokenTable) -> int:
    return sum(table.length(text) for text in example.texts)


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
        raise UsageError(f"unknown objective {quote(name)} for a cross-encoder{suggest_objective(name, SCORE_LOSSES)}")
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


def find_labels(recipe: Recipe) -> tuple[str, ...]:
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


def save_cross_encoder(model: TrainableCrossEncoder, target: Path) -> None:
    """Write the model, its head included, into an empty or new `target`."""
    target.mkdir(parents=True, exist_ok=True)
    model.train_all_rows()
    inner = model.model
    inner.config.id2label = dict(enumerate(model.labels))
    inner.config.label2id = {label: number for number, label in enumerate(model.labels)}
    with quiet_transformers():
        inner.save_pretrained(target, safe_serialization=True)
    config = json.loads((target / "config.json").read_text(encoding="utf-8"))
    settings = {"activation_fn": TORCH_NAMES[model.activation], "version": SAVED_AS}
    write_json(target / "config.json", {**config, "sentence_transformers": settings})
    save_pair_tokenizer(model.tokenizer, config, target, max_length=model.max_length)


def measure_score_spread(model: TrainableCrossEncoder, data: ExampleSet, *, seed: int) -> Spread:
    """Return the scores of a sample of rows, and of first texts with texts of other rows; of a classifier, the highest probability."""
    random, examples = np.random.default_rng(seed), data.examples
    chosen = [examples[index] for index in sorted(random.permutation(len(examples))[:PAIRS].tolist())]
    own = _predict(model, [(example.texts[0], example.texts[1]) for example in chosen])
    others = _predict(model, [(example.texts[0], example.texts[2]) for example in chosen if len(example.texts) > 2])
    # every row's second text with the first text of the row before: a partner by chance
    by_chance = [(chosen[row - 1].texts[0], chosen[row].texts[1]) for row in range(len(chosen))] if len(chosen) > 1 else []
    middle = find_middle(chosen)
    high = np.array([model.dimension > 1 or example.label is None or example.label >= middle for example in chosen])
    heights = _get_heights(own)
    unlike = [*heights[~high], *_get_heights(others)]
    answers = _describe_answers(model, data, chosen, own, others)
    chance_scores = _get_heights(_predict(model, by_chance))
    return Spread(_as_floats(heights[high]), _as_floats(unlike), _as_floats(chance_scores), measure="score", answers=answers)


def _describe_answers(
    model: TrainableCrossEncoder, data: ExampleSet, chosen: Sequence[Example], own: Vectors, others: Vectors
) -> Answers | None:
    """Return how much the answers to labelled rows differ, or those to the two documents of a query; None where neither is there."""
    if model.dimension > 1:
        gold = [data.classes[int(example.label or 0)] for example in chosen]
        return describe_classes(choose_labels(own, model.labels), gold)
    if all(example.label is not None for example in chosen):
        return describe_scores(own, [example.label or 0.0 for example in chosen], kind="score")
    return describe_scores([*own, *others], [*[1.0] * len(own), *[0.0] * len(others)], kind="score") if len(others) else None


def _predict(model: TrainableCrossEncoder, pairs: Sequence[tuple[str, str]]) -> Vectors:
    return model.predict(pairs) if pairs else np.zeros(0, np.float32)


def _get_heights(scores: Vectors) -> Vectors:
    """Return one number a pair: its score, or the probability of its most likely class."""
    if scores.ndim == 1:
        return scores
    raised = np.exp(scores - scores.max(axis=1, keepdims=True))
    highest: Vectors = (raised / raised.sum(axis=1, keepdims=True)).max(axis=1)
    return highest


def _as_floats(values: Sequence[float] | Vectors) -> tuple[float, ...]:
    return tuple(float(value) for value in values)
