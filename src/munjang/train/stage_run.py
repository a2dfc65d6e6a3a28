"""One stage being trained: its steps, evaluation on the way, early stopping, checkpoints, and the test score at its end.

In: a `Training`, which says how far the run has come, and a stage made ready. Out: the encoder with the stage's best weights (or its last,
where nothing was measured), and the training's log and position moved on to the next stage. Every step seeds its own random numbers from
recipe seed, stage, step and process, so a step is the same whether or not the run was interrupted before it.
"""

from __future__ import annotations

import math
import signal
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import torch
from torch import Tensor, nn

from munjang.errors import InputError, UsageError
from munjang.train.checkpoint import Checkpoints, Position, Snapshot
from munjang.train.dev import Evaluation
from munjang.train.diagnoses import JUDGED_FROM, diagnose, find_guessing_loss
from munjang.train.encoder import TrainableModel
from munjang.train.interrupt import Interrupted, StopRequest
from munjang.train.log import DevEntry, FinalEntry, StepEntry, TrainingLog
from munjang.train.objectives.base import Objective
from munjang.train.objectives.cached import run_cached_step
from munjang.train.optimizer import freeze, get_rate_factor, list_learning, make_optimizer, restore_optimizer, save_optimizer, set_rate
from munjang.train.processes import Processes, autocast
from munjang.train.progress import Progress, StepNews
from munjang.train.recipe import Recipe
from munjang.train.sampling import RowBatch, share
from munjang.train.stage import Stage

_SHOWN = 8
"""Rows of a batch that a message names."""


@dataclass
class Stepper:
    """Runs the steps of one stage."""

    stage: Stage
    encoder: TrainableModel
    optimizer: torch.optim.Optimizer
    parameters: list[nn.Parameter]
    processes: Processes
    total: int
    precision: str = "float32"

    def run(self, step: int) -> tuple[float, float]:
        """Do step `step` (from 0); return its loss and the first group's learning rate. A loss that is no number stops everything."""
        self.encoder.train()
        torch.manual_seed(_mix_seed(self.stage.seed, self.stage.number, step, self.processes.rank))
        set_rate(self.optimizer, get_rate_factor(step, self.total, self.stage.recipe.warmup))
        batches = self.stage.batches_of(step)
        loss = sum(self._backward(batch, 1 / len(batches)) for batch in batches)
        self.processes.sum_gradients(self.parameters)
        if self.stage.recipe.clip > 0:
            norm = float(nn.utils.clip_grad_norm_(self.parameters, self.stage.recipe.clip, foreach=True))
            if not math.isfinite(norm):
                raise InputError(self._describe_not_finite("gradient", batches, step))
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        return loss, float(self.optimizer.param_groups[0]["lr"])

    def _backward(self, batch: RowBatch, weight: float) -> float:
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
            raise InputError(self._describe_not_finite("loss", [batch], None))
        return loss

    def _step(self, objective: Objective, batch: RowBatch, own: Sequence[int], labels: Tensor | None, weight: float) -> float:
        labels = None if labels is None else labels.to(self.processes.device)
        whole = _OverProcesses(objective, self.processes, len(batch.rows))
        size = self.stage.recipe.mini_batch
        if size is not None and len(own) > size:
            parts = [own[start : start + size] for start in range(0, len(own), size)]
            # a mean over own rows needs no gathering, and cached_step asks for nothing but a call
            found = run_cached_step(lambda rows: self._encode_columns(batch, rows), parts, whole, labels, weight=weight)  # type: ignore[arg-type]
            return found * weight
        loss = whole(self._encode_columns(batch, own), labels) * weight
        loss.backward()  # type: ignore[no-untyped-call]
        return float(loss.detach())

    def _encode_columns(self, batch: RowBatch, rows: Sequence[int]) -> list[Tensor]:
        objective = self.stage.objectives[self.stage.data[batch.data].objective]
        with autocast(self.precision, self.processes.device):
            return objective.encode(self.encoder, self.stage.ids(batch.data, rows))

    def _describe_not_finite(self, what: str, batches: Sequence[RowBatch], step: int | None) -> str:
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


def _mix_seed(seed: int, stage: int, step: int, rank: int) -> int:
    """Mix four numbers into a seed that neighbours do not share."""
    mixed = 0
    for number in (seed, stage, step, rank):
        mixed = (mixed ^ number) * 0x9E3779B97F4A7C15 % 2**64
        mixed ^= mixed >> 29
    return mixed % 2**63


@dataclass(frozen=True)
class Measures:
    """What a stage is measured by: `dev` on the way, `test` once, with the weights that are kept."""

    dev: Callable[[], Evaluation] | None = None
    test: Callable[[], Evaluation] | None = None


@dataclass
class Training:
    """A training under way: what its stages share, and how far it has come."""

    recipe: Recipe
    progress: Progress
    clock: Callable[[], float]
    processes: Processes
    checkpoints: Checkpoints
    log: TrainingLog
    position: Position
    snapshot: Snapshot | None
    """Where an earlier run stopped; None once a stage has gone on from there."""
    stop: StopRequest = field(default_factory=StopRequest)
    """Looked at between two steps."""
    reported: set[tuple[int, str]] = field(default_factory=set)
    """The stages and kinds of diagnosis that were shown already."""


class StageRun:
    """One stage being trained."""

    def __init__(self, training: Training, stage: Stage, encoder: TrainableModel, measures: Measures, name: str) -> None:
        self.training, self.stage, self.encoder, self.name = training, stage, encoder, name
        self.dev, self.test = measures.dev, measures.test
        self.recipe, self.processes = stage.recipe, training.processes
        freeze(encoder, self.recipe)
        pieces = stage.find_trained_pieces()
        if pieces is not None:
            encoder.train_rows(torch.from_numpy(pieces))
        heads = nn.ModuleList(stage.objectives).to(self.processes.device)
        self.modules: dict[str, nn.Module] = {"encoder": encoder, "heads": heads}
        self.named = list(list_learning(self.modules))
        self.optimizer = make_optimizer(self.modules, self.recipe)
        self.total, self.digest = stage.total_steps, stage.digest()
        self.guessing = find_guessing_loss(stage)
        parameters = [parameter for _, parameter in self.named]
        self.stepper = Stepper(stage, encoder, self.optimizer, parameters, self.processes, self.total, training.recipe.precision)

    def train(self) -> None:
        """Do the steps that are left, then take the best weights and hand over to the next stage."""
        training = self.training
        if training.snapshot is not None and training.snapshot.position.stage == self.stage.number:
            self._restore(training.snapshot)
        training.snapshot = None
        if training.position.step == 0 and self.dev is not None:
            self._evaluate(0)
        self._stop_if_asked(saved=training.position.step == 0 and training.checkpoints.exist())
        started, first = training.clock(), training.position.step
        while training.position.step < self.total and not training.position.stopped:
            step = training.position.step
            loss, rate = self.stepper.run(step)
            done = step + 1
            training.position = replace(training.position, step=done)
            training.log.steps.append(StepEntry(self.stage.number, done, loss, rate))
            evaluated = self.dev is not None and (done == self.total or done % (self.recipe.evaluate_every or self.total) == 0)
            if evaluated:
                self._evaluate(done)
            saved = done % training.recipe.checkpoint_every == 0 and done < self.total
            if saved:
                self._save()
            self._tell(done, loss, training.clock() - started, done - first, evaluated=evaluated)
            if evaluated or done == math.ceil(self.total * JUDGED_FROM):
                self._diagnose(done / self.total)
            self._stop_if_asked(saved=saved)
        self._finish()

    def _evaluate(self, step: int) -> None:
        assert self.dev is not None
        training = self.training
        result = self.dev() if self.processes.is_first else None
        metric, scores, answers = self.processes.from_first(result)
        score = scores[metric]
        entry = DevEntry(self.stage.number, step, metric, score, scores, answers)
        if entry not in training.log.evaluations:
            training.log.evaluations.append(entry)
        if step == 0:
            return
        position = training.position
        if position.best_score is None or score > position.best_score:
            training.position = replace(position, best_score=score, best_step=step, evaluations_without_better=0)
            if self.processes.is_first and self.recipe.keep_best:
                training.checkpoints.save_best(self.stage.number, step, self._collect_best())
        else:
            waited = position.evaluations_without_better + 1
            stop = self.recipe.patience is not None and waited >= self.recipe.patience
            training.position = replace(position, evaluations_without_better=waited, stopped=stop)

    def _diagnose(self, done: float) -> None:
        """Say what is wrong, each thing once."""
        training, number = self.training, self.stage.number
        if not self.processes.is_first:
            return
        for found in diagnose(training.log, number, guessing=self.guessing, done=done):
            if (number, found.kind) not in training.reported:
                training.reported.add((number, found.kind))
                training.progress.show_message(f"warning: {self.name}, step {training.position.step:,}: {found}")

    def _stop_if_asked(self, *, saved: bool) -> None:
        """Leave with a checkpoint of this step where a signal asked for it; `saved` says that there is one already."""
        training, position = self.training, self.training.position
        if not self.processes.any(training.stop.number is not None):
            return
        if not saved:
            self._save()
        message = (
            f"interrupted after step {position.step:,} of {self.total:,} of {self.name}; a checkpoint is in {training.checkpoints.folder}"
        )
        raise Interrupted(message, number=training.stop.number or signal.SIGTERM, is_shared=self.processes.count > 1)

    def _finish(self) -> None:
        training, position = self.training, self.training.position
        if position.stopped and self.processes.is_first:
            training.progress.show_message(f"{self.name}: stopped early at step {position.step}, best was step {position.best_step}")
        self.processes.wait()
        if self.recipe.keep_best and position.best_step is not None and position.best_step != position.step:
            best = training.checkpoints.load_best(self.stage.number, position.best_step) if self.processes.is_first else None
            self._take(self.processes.from_first(best))
        self.encoder.train_all_rows()
        self._measure_test()
        self.processes.wait()
        training.position = Position(stage=self.stage.number + 1)
        if self.processes.is_first:
            parts = tuple(self.modules) if self.recipe.keep_head else ("encoder",)
            model = {f"{part}.{name}": tensor for part in parts for name, tensor in self._get_weights(part).items()}
            training.checkpoints.save(Snapshot(training.position, training.log, model))
        self.processes.wait()

    def _measure_test(self) -> None:
        if self.test is None or self.recipe.test is None:
            return
        metric, scores, _ = self.processes.from_first(self.test() if self.processes.is_first else None)
        position = self.training.position
        step = position.best_step if self.recipe.keep_best and position.best_step is not None else position.step
        found = FinalEntry(self.stage.number, step, Path(self.recipe.test.path).name, metric, scores)
        self.training.log.finals.append(found)
        if self.processes.is_first:
            self.training.progress.show_message(f"{self.name}: {found.test}, weights of step {step}: {metric} {scores[metric]:.4f}")

    def _save(self) -> None:
        if self.processes.is_first:
            model = {f"{part}.{name}": tensor for part in self.modules for name, tensor in self._get_weights(part).items()}
            state = save_optimizer(self.optimizer, self.named)
            self.training.checkpoints.save(Snapshot(replace(self.training.position, data=self.digest), self.training.log, model, state))
        self.processes.wait()

    def _restore(self, snapshot: Snapshot) -> None:
        if snapshot.position.data not in ("", self.digest):
            raise UsageError(
                f"{self.name}: the data files are not those that the training was started with\n  restore them, or train again"
            )
        for part, module in self.modules.items():
            found = {name.removeprefix(f"{part}."): tensor for name, tensor in snapshot.model.items() if name.startswith(f"{part}.")}
            if found or part == "encoder":
                module.load_state_dict(found)
        restore_optimizer(self.optimizer, self.named, snapshot.optimizer)

    def _collect_best(self) -> dict[str, Tensor]:
        """Return the encoder's weights and those of the heads, which the test score may need."""
        return self._get_weights("encoder") | {f"heads.{name}": tensor for name, tensor in self._get_weights("heads").items()}

    def _take(self, best: Mapping[str, Tensor]) -> None:
        heads = {name.removeprefix("heads."): tensor for name, tensor in best.items() if name.startswith("heads.")}
        self.encoder.load_state_dict({name: tensor for name, tensor in best.items() if not name.startswith("heads.")})
        if heads:  # a best of an older version has none
            self.modules["heads"].load_state_dict(heads)

    def _get_weights(self, part: str) -> dict[str, Tensor]:
        return dict(self.modules[part].state_dict())

    def _tell(self, done: int, loss: float, seconds: float, steps: int, *, evaluated: bool) -> None:
        if not self.processes.is_first:
            return
        evaluations = [entry for entry in self.training.log.evaluations if entry.stage == self.stage.number]
        pace = seconds / max(1, steps)
        rows = self.recipe.batch_size * self.recipe.accumulate
        dev = evaluations[-1].score if evaluations else None
        left = pace * (self.total - done)
        self.training.progress.step(StepNews(self.name, done, self.total, loss, dev, rows / max(pace, 1e-9), left, evaluated))
