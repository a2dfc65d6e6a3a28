"""One stage made ready: its examples read, tokenised and given an objective.

In: a `StageRecipe` and the encoder. Out: `Stage`: data sets with token ids and labels, the plan of any step, and the objectives with fresh
heads. Everything follows from recipe, data and seed, so a resumed run makes the same stage again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from munjang.errors import InputError
from munjang.report.training_words import TrainingWord
from munjang.report.words import Message
from munjang.train.distill.teacher_targets import TeacherLabels
from munjang.train.examples import ExampleSet
from munjang.train.objectives.base import Objective
from munjang.train.recipe import StageRecipe
from munjang.train.sampling import RowBatch, Sampled, plan_epoch

_AT_ONCE = 4096
ABSENT: tuple[int, ...] = ()
"""Stands for a text that a row does not have (a shorter list of documents), told from an empty text by identity."""


class TokenTable:
    """Tokens of unique texts."""

    def __init__(self, texts: Iterable[str], tokenize: Callable[[Sequence[str]], list[list[int]]]) -> None:
        unique = list(dict.fromkeys(texts))
        self._places = {text: place for place, text in enumerate(unique)}
        parts: list[NDArray[np.int32]] = []
        lengths: list[int] = []
        for start in range(0, len(unique), _AT_ONCE):
            found = tokenize(unique[start : start + _AT_ONCE])
            lengths += [len(ids) for ids in found]
            parts.append(np.fromiter((piece for ids in found for piece in ids), np.int32, sum(len(ids) for ids in found)))
        self._ids = np.concatenate(parts) if parts else np.zeros(0, np.int32)
        self._starts = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])

    def __getitem__(self, text: str) -> NDArray[np.int32]:
        place = self._places[text]
        return self._ids[self._starts[place] : self._starts[place + 1]]

    def length(self, text: str) -> int:
        """Return how many tokens a text has."""
        place = self._places[text]
        return int(self._starts[place + 1] - self._starts[place])

    def find_used_pieces(self) -> NDArray[np.int64]:
        """Return every piece that stands in some text, in order."""
        return np.unique(self._ids).astype(np.int64)


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
    messages: list[str]
    """Which objective learns from which data, and why."""
    length_window: int
    _epochs: dict[int, list[RowBatch]] = field(default_factory=dict)

    @property
    def total_steps(self) -> int:
        """How many optimiser steps the stage has."""
        by_epochs = sum(self.steps_in(epoch) for epoch in range(self.recipe.epochs))
        return self.recipe.steps if self.recipe.steps is not None else by_epochs

    def steps_in(self, epoch: int) -> int:
        """Return how many optimiser steps an epoch has."""
        return -(-len(self.epoch(epoch)) // self.recipe.accumulate)

    def batches_of(self, step: int) -> list[RowBatch]:
        """Return the batches whose gradients step `step` (from 0) adds up."""
        epoch = 0
        while step >= self.steps_in(epoch):
            step -= self.steps_in(epoch)
            epoch += 1
        many = self.recipe.accumulate
        return self.epoch(epoch)[step * many : (step + 1) * many]

    def epoch(self, number: int) -> list[RowBatch]:
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

    def find_trained_pieces(self) -> NDArray[np.int64] | None:
        """Return the pieces whose embeddings learn; None where all do: under weight decay, or if an objective reads them all."""
        used = self.table.find_used_pieces()
        needed = [objective.pieces(used.tolist()) for objective in self.objectives]
        if self.recipe.weight_decay != 0 or any(pieces is None for pieces in needed):
            return None
        return np.unique(np.concatenate([used, *(np.asarray(pieces, np.int64) for pieces in needed)]))

    def places(self, batch: RowBatch) -> list[str]:
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


def describe_rows(found: ExampleSet, objective: Objective, why: str | None) -> Message:
    """Say how many rows there are, what is learnt from them, and why, where nobody named the objective."""
    word = TrainingWord.ROWS if why is None else TrainingWord.ROWS_CHOSEN
    return Message(word, file=found.source, count=len(found), objective=objective.describe(), reason=why)


def describe_notes(found: ExampleSet) -> list[Message]:
    """Say what was left out, and what else the reader noticed."""
    left_out = Message(TrainingWord.ROWS_LEFT_OUT, file=found.source, count=len(found.skipped), first=next(iter(found.skipped), ""))
    notes = [Message(TrainingWord.NAMED, name=found.source, line=note) for note in found.notes]
    return [left_out, *notes] if found.skipped else notes
