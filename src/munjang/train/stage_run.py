"""One stage being trained: its steps, evaluation on the way, early stopping, checkpoints, and the test score at its end.

In: a `Training`, which says how far the run has come, and a stage made ready. Out: the encoder with the stage's best weights (or its last,
where nothing was measured), and the training's log and position moved on to the next stage.
"""

from __future__ import annotations

import math
import signal
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import torch
from torch import Tensor, nn

from munjang.errors import UsageError
from munjang.train.build import Trainable
from munjang.train.checkpoint import Checkpoints, Position, Snapshot
from munjang.train.diagnoses import JUDGED_FROM, diagnose
from munjang.train.guessing import guessing_of
from munjang.train.interrupt import Interrupted, StopRequest
from munjang.train.kinds import Measures
from munjang.train.log import DevEntry, FinalEntry, StepEntry, TrainingLog
from munjang.train.optimizer import freeze, learning, make_optimizer, optimizer_state, restore_optimizer
from munjang.train.processes import Processes
from munjang.train.progress import Progress, StepNews
from munjang.train.recipe import Recipe
from munjang.train.stage import Stage
from munjang.train.step import Stepper


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
    told: set[tuple[int, str]] = field(default_factory=set)
    """The stages and kinds of what was diagnosed and said already."""


class StageRun:
    """One stage being trained."""

    def __init__(self, training: Training, stage: Stage, encoder: Trainable, measures: Measures, name: str) -> None:
        self.training, self.stage, self.encoder, self.name = training, stage, encoder, name
        self.dev, self.test = measures.dev, measures.test
        self.recipe, self.processes = stage.recipe, training.processes
        freeze(encoder, self.recipe)
        pieces = stage.trained_pieces()
        if pieces is not None:
            encoder.train_rows(torch.from_numpy(pieces))
        heads = nn.ModuleList(stage.objectives).to(self.processes.device)
        self.modules: dict[str, nn.Module] = {"encoder": encoder, "heads": heads}
        self.named = list(learning(self.modules))
        self.optimizer = make_optimizer(self.modules, self.recipe)
        self.total, self.digest = stage.total_steps, stage.digest()
        self.guessing = guessing_of(stage)
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
                training.checkpoints.save_best(self.stage.number, step, self._best())
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
            if (number, found.kind) not in training.told:
                training.told.add((number, found.kind))
                training.progress.said(f"warning: {self.name}, step {training.position.step:,}: {found}")

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
            training.progress.said(f"{self.name}: stopped early at step {position.step}, best was step {position.best_step}")
        self.processes.wait()
        if self.recipe.keep_best and position.best_step is not None and position.best_step != position.step:
            self._take(training.checkpoints.load_best(self.stage.number, position.best_step))
        self.encoder.train_all_rows()
        self._measure_test()
        self.processes.wait()
        training.position = Position(stage=self.stage.number + 1)
        if self.processes.is_first:
            model = {f"encoder.{name}": tensor for name, tensor in self._weights("encoder").items()}
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
            self.training.progress.said(f"{self.name}: {found.test}, weights of step {step}: {metric} {scores[metric]:.4f}")

    def _save(self) -> None:
        if self.processes.is_first:
            model = {f"{part}.{name}": tensor for part in self.modules for name, tensor in self._weights(part).items()}
            state = optimizer_state(self.optimizer, self.named)
            self.training.checkpoints.save(Snapshot(replace(self.training.position, data=self.digest), self.training.log, model, state))
        self.processes.wait()

    def _restore(self, snapshot: Snapshot) -> None:
        if snapshot.position.data not in ("", self.digest):
            raise UsageError(f"{self.name}: the data files are not those that the training was started with\n  restore them, or train anew")
        for part, module in self.modules.items():
            found = {name.removeprefix(f"{part}."): tensor for name, tensor in snapshot.model.items() if name.startswith(f"{part}.")}
            if found or part == "encoder":
                module.load_state_dict(found)
        restore_optimizer(self.optimizer, self.named, snapshot.optimizer)

    def _best(self) -> dict[str, Tensor]:
        """Return the encoder's weights and those of the heads, which the test score may need."""
        return self._weights("encoder") | {f"heads.{name}": tensor for name, tensor in self._weights("heads").items()}

    def _take(self, best: Mapping[str, Tensor]) -> None:
        heads = {name.removeprefix("heads."): tensor for name, tensor in best.items() if name.startswith("heads.")}
        self.encoder.load_state_dict({name: tensor for name, tensor in best.items() if not name.startswith("heads.")})
        if heads:  # a best of an older version has none
            self.modules["heads"].load_state_dict(heads)

    def _weights(self, part: str) -> dict[str, Tensor]:
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
