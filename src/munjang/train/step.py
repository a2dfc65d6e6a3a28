"""One optimiser step: batches → loss, gradient, new weights.

In: a stage, its optimiser, and the number of the step. Out: the loss, as one process with the whole batch would have it. Every step seeds
its own random numbers from recipe seed, stage, step and process, so a step is the same whether or not the run was interrupted before it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from munjang.errors import InputError
from munjang.train.build import Trainable
from munjang.train.objectives import Objective, cached_step
from munjang.train.optimizer import rate_factor, set_rate
from munjang.train.processes import Processes, autocast
from munjang.train.sampling import Batch, share
from munjang.train.stage import Stage

_SHOWN = 8
"""Rows of a batch that a message names."""


@dataclass
class Stepper:
    """Runs the steps of one stage."""

    stage: Stage
    encoder: Trainable
    optimizer: torch.optim.Optimizer
    parameters: list[nn.Parameter]
    processes: Processes
    total: int
    precision: str = "float32"

    def run(self, step: int) -> tuple[float, float]:
        """Do step `step` (from 0); return its loss and the first group's learning rate. A loss that is no number stops everything."""
        self.encoder.train()
        torch.manual_seed(_seed(self.stage.seed, self.stage.number, step, self.processes.rank))
        set_rate(self.optimizer, rate_factor(step, self.total, self.stage.recipe.warmup))
        batches = self.stage.batches_of(step)
        loss = sum(self._backward(batch, 1 / len(batches)) for batch in batches)
        self.processes.sum_gradients(self.parameters)
        if self.stage.recipe.clip > 0:
            norm = float(nn.utils.clip_grad_norm_(self.parameters, self.stage.recipe.clip, foreach=True))
            if not math.isfinite(norm):
                raise InputError(self._not_finite("gradient", batches, step))
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        return loss, float(self.optimizer.param_groups[0]["lr"])

    def _backward(self, batch: Batch, weight: float) -> float:
        """Add the gradient of one batch, times `weight`; return its weighted loss over all processes."""
        stage, processes = self.stage, self.processes
        objective = stage.objectives[stage.data[batch.data].objective]
        own = share(batch.rows, rank=processes.rank, count=processes.count)
        if objective.compares_rows:
            loss = self._step(objective, batch, own, stage.labels(batch.data, batch.rows), weight)
        else:
            # a mean over rows: the parts' means, weighted by their rows, add up to the whole's
            part = weight * len(own) / len(batch.rows)
            loss = self._step(objective, batch, own, stage.labels(batch.data, own), part) if own else 0.0
            loss = processes.sum_number(loss)
        if not math.isfinite(loss):
            raise InputError(self._not_finite("loss", [batch], None))
        return loss

    def _step(self, objective: Objective, batch: Batch, own: Sequence[int], labels: Tensor | None, weight: float) -> float:
        labels = None if labels is None else labels.to(self.processes.device)
        whole = _OverProcesses(objective, self.processes, len(batch.rows))
        size = self.stage.recipe.mini_batch
        if size is not None and len(own) > size:
            parts = [own[start : start + size] for start in range(0, len(own), size)]
            # a mean over own rows needs no gathering, and cached_step asks for nothing but a call
            found = cached_step(lambda rows: self._columns(batch, rows), parts, whole, labels, weight=weight)  # type: ignore[arg-type]
            return found * weight
        loss = whole(self._columns(batch, own), labels) * weight
        loss.backward()  # type: ignore[no-untyped-call]
        return float(loss.detach())

    def _columns(self, batch: Batch, rows: Sequence[int]) -> list[Tensor]:
        objective = self.stage.objectives[self.stage.data[batch.data].objective]
        with autocast(self.precision, self.processes.device):
            return objective.encode(self.encoder, self.stage.ids(batch.data, rows))

    def _not_finite(self, what: str, batches: Sequence[Batch], step: int | None) -> str:
        places = [place for batch in batches for place in self.stage.places(batch)]
        more = f" and {len(places) - _SHOWN} more" if len(places) > _SHOWN else ""
        at = "" if step is None else f" of step {step + 1}"
        return (
            f"the {what}{at} is not a finite number; the batch holds {', '.join(places[:_SHOWN])}{more}\n"
            "  look at these rows, lower the learning rate, or use float32; the last checkpoint is intact"
        )


@dataclass(frozen=True)
class _OverProcesses:
    """An objective that sees the whole batch where it compares rows."""

    objective: Objective
    processes: Processes
    rows: int

    def __call__(self, columns: Sequence[Tensor], labels: Tensor | None) -> Tensor:
        seen = self.processes.gather(columns, self.rows) if self.objective.compares_rows else columns
        loss: Tensor = self.objective(seen, labels)
        return loss


def _seed(seed: int, stage: int, step: int, rank: int) -> int:
    """Mix four numbers into a seed that neighbours do not share."""
    mixed = 0
    for number in (seed, stage, step, rank):
        mixed = (mixed ^ number) * 0x9E3779B97F4A7C15 % 2**64
        mixed ^= mixed >> 29
    return mixed % 2**63
