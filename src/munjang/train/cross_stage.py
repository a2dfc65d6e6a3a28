"""One stage of a cross-encoder made ready: rows as pairs or lists, tokenised, with their loss.

In: a `StageRecipe` and the model. Out: the same `Stage` that an encoder of sentences trains on. Rows take the shape that the loss wants:
triplets become labelled pairs, labelled pairs of one query become a list, pairs without labels get random answers of other rows as
negatives. Everything follows from recipe, data and seed, so a resumed run makes the same stage again.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from munjang.errors import InputError
from munjang.train.cross import TrainableCrossEncoder
from munjang.train.cross_plan import plan_loss
from munjang.train.examples import Example, ExampleSet, read_examples
from munjang.train.objectives import Objective, ScoreObjective
from munjang.train.objectives.scores import Mse, ScoreLoss
from munjang.train.recipe import StageRecipe
from munjang.train.sampling import Sampled
from munjang.train.stage import PADDED_WINDOW, Stage, StageData
from munjang.train.table import TokenTable
from munjang.wording import count, plural

RANDOM_NEGATIVES = 4
"""Answers of other rows that a pair without labels gets."""
LONGEST_LIST = 32
"""Documents of one query that are ordered together; the most relevant are kept."""


def prepare_cross_stage(recipe: StageRecipe, model: TrainableCrossEncoder, *, number: int, seed: int) -> Stage:
    """Read, shape and tokenise one stage; the model's activation becomes what the loss trains for."""
    said = list(model.said) if number == 0 else []
    shaped: list[tuple[ExampleSet, ScoreLoss]] = []
    for source in recipe.data:
        found = read_examples(source, seed=seed)
        planned = plan_loss(recipe, source, found)
        made = shape_rows(found, planned.loss, seed=seed)
        shaped.append((made, planned.loss))
        said.append(f"{made.source}: {count(len(made), 'row')}, {ScoreObjective(planned.loss).describe()}{planned.why}")
        said += [f"{found.source}: {count(len(found.skipped), 'row')} left out, first: {found.skipped[0]}"] if found.skipped else []
        said += [f"{made.source}: {note}" for note in made.notes]
    table = TokenTable((text for made, _ in shaped for example in made.examples for text in example.texts), model.tokens)
    objectives: list[Objective] = [ScoreObjective(loss) for _, loss in shaped]
    data = [
        StageData(made, _labels(made, loss, model.labels), place, Sampled([_length(example, table) for example in made.examples]))
        for place, (made, loss) in enumerate(shaped)
    ]
    if model.dimension == 1 and any(loss.name in ("mse", "bce") for _, loss in shaped):
        plain = any(isinstance(loss, Mse) and loss.activation == "none" for _, loss in shaped)
        model.activation = "identity" if plain else "sigmoid"
    window = recipe.length_window if recipe.length_window is not None else (0 if model.is_packed else PADDED_WINDOW)
    return Stage(recipe, number, seed, data, objectives, table, said, window)


def shape_rows(found: ExampleSet, loss: ScoreLoss, *, seed: int) -> ExampleSet:
    """Return the rows in the shape that the loss wants."""
    if loss.shape == "pair":
        return _as_pairs(found) if found.columns > 2 else found
    if found.columns > 2:
        return found
    return _with_random_negatives(found, seed) if found.label_kind is None else _as_lists(found)


def _as_pairs(found: ExampleSet) -> ExampleSet:
    """Cut rows of query, answer and negatives into pairs labelled 1 and 0."""
    made = [
        Example((example.texts[0], text), float(place == 0), example.where)
        for example in found.examples
        for place, text in enumerate(example.texts[1:])
    ]
    return replace(found, examples=tuple(made), label_kind="binary", classes=("0", "1"))


def _as_lists(found: ExampleSet) -> ExampleSet:
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
    notes = [f"{len(groups) - len(kept):,} of {count(len(groups), 'query')} left out, their documents all have one label"]
    cut = sum(len(rows) > LONGEST_LIST for rows in kept.values())
    notes += [f"{count(cut, 'query')} {plural(cut, 'has')} more than {LONGEST_LIST} documents, the most relevant are kept"] if cut else []
    return replace(
        found, examples=tuple(made), label_kind="margins", notes=(*found.notes, *(notes if len(kept) < len(groups) else notes[1:]))
    )


def _with_random_negatives(found: ExampleSet, seed: int) -> ExampleSet:
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
    note = f"up to {RANDOM_NEGATIVES} random answers of other rows are each row's negatives; harder ones: munjang mine"
    return replace(found, examples=tuple(made), notes=(*found.notes, note))


def _labels(found: ExampleSet, loss: ScoreLoss, names: Sequence[str]) -> Tensor | None:
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


def _length(example: Example, table: TokenTable) -> int:
    return sum(table.length(text) for text in example.texts)
