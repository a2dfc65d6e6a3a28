"""One stage made ready: its examples read, tokenised and given an objective.

In: a `StageRecipe` and the encoder. Out: `Stage`: data sets with token ids and labels, the plan of any step, and the objectives with fresh
heads. Everything follows from recipe, data and seed, so a resumed run makes the same stage again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from munjang.errors import InputError, UsageError
from munjang.train.adapt.registry import TEXT_OBJECTIVES, make_text_objective
from munjang.train.distill.lessons import Lessons, TeacherLabels
from munjang.train.distill.teacher import TeacherRecipe
from munjang.train.encoder import TrainableEncoder
from munjang.train.examples import DataSource, ExampleSet, read_examples
from munjang.train.objectives import OBJECTIVES, Objective, choose_objective, make_objective
from munjang.train.recipe import StageRecipe
from munjang.train.sampling import Batch, Sampled, plan_epoch
from munjang.train.table import ABSENT, TokenTable
from munjang.wording import count

MakeLessons: TypeAlias = Callable[[TeacherRecipe, Sequence[str]], Lessons]
"""Asks a teacher for its vectors of texts."""
PADDED_WINDOW = 20
"""Batches that are sorted by length together where the encoder must pad."""


@dataclass(frozen=True)
class StageData:
    """One data set of a stage."""

    examples: ExampleSet
    labels: Tensor | TeacherLabels | None
    objective: int
    """Which of the stage's objectives it is for."""
    sampled: Sampled


@dataclass
class Stage:
    """Everything a stage's steps need."""

    recipe: StageRecipe
    number: int
    seed: int
    data: list[StageData]
    objectives: list[Objective]
    table: TokenTable
    said: list[str]
    """Which objective learns from which data, and why."""
    length_window: int
    _epochs: dict[int, list[Batch]] = field(default_factory=dict)

    @property
    def total_steps(self) -> int:
        """How many optimiser steps the stage has."""
        by_epochs = sum(self.steps_in(epoch) for epoch in range(self.recipe.epochs))
        return self.recipe.steps if self.recipe.steps is not None else by_epochs

    def steps_in(self, epoch: int) -> int:
        """Return how many optimiser steps an epoch has."""
        return -(-len(self.epoch(epoch)) // self.recipe.accumulate)

    def batches_of(self, step: int) -> list[Batch]:
        """Return the batches whose gradients step `step` (from 0) adds up."""
        epoch = 0
        while step >= self.steps_in(epoch):
            step -= self.steps_in(epoch)
            epoch += 1
        many = self.recipe.accumulate
        return self.epoch(epoch)[step * many : (step + 1) * many]

    def epoch(self, number: int) -> list[Batch]:
        """Return the batches of an epoch; the last ones asked for are remembered."""
        if number not in self._epochs:
            if len(self._epochs) > 64:
                self._epochs.clear()
            made = plan_epoch(
                [data.sampled for data in self.data],
                batch_size=self.recipe.batch_size,
                seed=self.seed,
                stage=self.number,
                epoch=number,
                mix=self.recipe.mix,
                length_window=self.length_window,
            )
            if not made:
                raise InputError("the data gives no batch to learn from: too few rows, or the same texts in all of them")
            self._epochs[number] = made
        return self._epochs[number]

    def ids(self, data: int, rows: Sequence[int]) -> list[list[Sequence[int]]]:
        """Return the token ids of rows, column by column; ABSENT where a row's list of documents is shorter."""
        examples = self.data[data].examples.examples
        columns = self.data[data].examples.columns
        return [[self._tokens(examples[row].texts, column) for row in rows] for column in range(columns)]

    def _tokens(self, texts: tuple[str, ...], column: int) -> Sequence[int]:
        return self.table[texts[column]] if column < len(texts) else ABSENT  # type: ignore[return-value]

    def labels(self, data: int, rows: Sequence[int]) -> Tensor | None:
        """Return the labels of rows."""
        labels = self.data[data].labels
        return None if labels is None else labels[torch.as_tensor(rows)]

    def trained_pieces(self) -> NDArray[np.int64] | None:
        """Return the pieces whose embeddings learn; None where all do: under weight decay, or if an objective reads them all."""
        used = self.table.used()
        needed = [objective.pieces(used.tolist()) for objective in self.objectives]
        if self.recipe.weight_decay != 0 or any(pieces is None for pieces in needed):
            return None
        return np.unique(np.concatenate([used, *(np.asarray(pieces, np.int64) for pieces in needed)]))

    def places(self, batch: Batch) -> list[str]:
        """Return where each row of a batch stood."""
        examples = self.data[batch.data].examples.examples
        return [examples[row].where or f"row {row}" for row in batch.rows]

    def digest(self) -> str:
        """Return a checksum of every text and label, in order."""
        made = hashlib.sha256()
        for data in self.data:
            for example in data.examples.examples:
                scores = (example.scores,) if example.scores else ()
                made.update(repr((example.texts, example.label, *scores)).encode())
            if isinstance(data.labels, TeacherLabels):
                made.update(data.labels.blocks.key.encode())
        return made.hexdigest()


def prepare_stage(recipe: StageRecipe, encoder: TrainableEncoder, *, number: int, seed: int, lessons: MakeLessons | None = None) -> Stage:
    """Read, tokenise and plan one stage; heads are initialised from the seed. `lessons` asks the recipe's teacher for its vectors."""
    torch.manual_seed(seed * 1000 + number)
    sets = [read_examples(source, seed=seed) for source in recipe.data]
    table = TokenTable((text for found in sets for example in found.examples for text in example.texts), encoder.tokens)
    objectives: list[Objective] = []
    said: list[str] = list(encoder.said) if number == 0 else []
    chosen: list[int] = []
    known: dict[object, int] = {}
    for source, found in zip(recipe.data, sets, strict=True):
        key = (source.objective, repr(source.settings), found.classes, found.label_kind, found.columns)
        if key not in known:
            _refuse_misfit(source.objective or recipe.objective, found)
            made, why = _objective(recipe, source, found, encoder.dimension)
            made.attach(encoder, table.used().tolist())
            known[key] = len(objectives)
            objectives.append(made)
            said.append(f"{found.source}: {count(len(found), 'row')}, {made.describe()}{why}")
        else:
            said.append(f"{found.source}: {count(len(found), 'row')}, as above")
        said += [f"{found.source}: {count(len(found.skipped), 'row')} left out, first: {found.skipped[0]}"] if found.skipped else []
        said += [f"{found.source}: {note}" for note in found.notes]
        chosen.append(known[key])
    taught = _taught(recipe, [found for found, at in zip(sets, chosen, strict=True) if objectives[at].label_kind == "vectors"], lessons)
    said += taught.said if taught else ()
    data = [
        StageData(found, _labels(found, objectives[at], taught), at, _sampled(found, objectives[at], table))
        for found, at in zip(sets, chosen, strict=True)
    ]
    window = recipe.length_window if recipe.length_window is not None else (0 if encoder.is_packed else PADDED_WINDOW)
    return Stage(recipe, number, seed, data, objectives, table, said, window)


def _taught(recipe: StageRecipe, sets: Sequence[ExampleSet], lessons: MakeLessons | None) -> Lessons | None:
    """Return the teacher's vectors of the first text of every row of these sets."""
    if not sets:
        if recipe.teacher is not None:
            raise UsageError(
                "the stage has a teacher, and no objective of its data learns from one\n  leave the teacher out, or the objective"
            )
        return None
    if recipe.teacher is None or lessons is None:
        raise InputError(f'{sets[0].source}: the objective learns a teacher\'s vectors, and the stage has none\n  add teacher = "…" to it')
    return lessons(recipe.teacher, [example.texts[0] for found in sets for example in found.examples])


def _objective(recipe: StageRecipe, source: DataSource, found: ExampleSet, dimension: int) -> tuple[Objective, str]:
    name = source.objective or recipe.objective or ("distillation" if recipe.teacher else None)
    settings = source.settings if source.settings is not None else recipe.settings
    why = ""
    if name in TEXT_OBJECTIVES:
        return make_text_objective(name, settings), why
    if name is None:
        choice = choose_objective(found.shape())
        name, settings, why = choice.name, {**choice.settings, **settings}, f" (chosen: {choice.reason})"
    classes = len(found.classes) or None
    return make_objective(name, settings, dimension=dimension, num_labels=classes), why


def _refuse_misfit(name: str | None, found: ExampleSet) -> None:
    needed = OBJECTIVES[name].label_kind if name in OBJECTIVES and name != "distillation" else None
    fits = {"class": ("class", "binary"), "binary": ("binary",), "score": ("score", "binary"), "margins": ("margins",)}.get(str(needed), ())
    if needed is not None and found.label_kind is not None and found.label_kind not in fits:
        raise InputError(
            f"{found.source}: labels are of kind {found.label_kind!r}, objective {name!r} needs {needed!r}\n"
            "  name another objective, or say label_range if the labels are scores"
        )


def _labels(found: ExampleSet, objective: Objective, taught: Lessons | None) -> Tensor | TeacherLabels | None:
    if objective.label_kind is None:
        return None
    if objective.label_kind == "vectors":
        assert taught is not None  # asked for just above
        return taught.labels_of([example.texts[0] for example in found.examples])
    if found.label_kind is None:
        raise InputError(f"{found.source}: has no labels, objective {objective.name!r} needs one of kind {objective.label_kind!r}")
    if objective.label_kind == "margins":
        return torch.tensor([example.scores for example in found.examples], dtype=torch.float32)
    kind = torch.long if objective.label_kind == "class" else torch.float32
    return torch.tensor([example.label for example in found.examples], dtype=torch.float32).to(kind)


def _sampled(found: ExampleSet, objective: Objective, table: TokenTable) -> Sampled:
    lengths = [sum(table.length(text) for text in example.texts) for example in found.examples]
    keys = None
    if objective.needs_no_duplicates:
        keys = [
            frozenset((*example.texts, ("group", example.group))) if example.group else frozenset(example.texts)
            for example in found.examples
        ]
    return Sampled(lengths, keys, least_rows=objective.least_rows)
