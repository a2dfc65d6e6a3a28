"""The training itself: stages one after the other, evaluation, checkpoints, early stopping, resuming.

In: a `Recipe`. Out: an `Outcome`: the encoder with the best weights (or the last, where nothing was measured) and the log. Everything on
the way is under `<output>/training`. Steps are in `step.py`, what a snapshot holds in `checkpoint.py`, saving the model in `finish.py`.
"""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from torch import Tensor, nn

from munjang.errors import DamagedFile, MunjangError, UsageError
from munjang.train.build import Trainable, build
from munjang.train.checkpoint import Checkpoints, Position, Snapshot
from munjang.train.durable import write_file
from munjang.train.kinds import Measures, measures_of, prepare
from munjang.train.log import DevEntry, FinalEntry, StepEntry, TrainingLog
from munjang.train.optimizer import freeze, learning, make_optimizer, optimizer_state, restore_optimizer
from munjang.train.processes import Processes, autocast
from munjang.train.progress import Progress, StepNews
from munjang.train.recipe import Recipe, differences
from munjang.train.stage import Stage
from munjang.train.step import Stepper

TRAINING = "training"
_RECIPE = "recipe.json"


@dataclass(frozen=True)
class Outcome:
    """What a training leaves behind."""

    encoder: Trainable
    log: TrainingLog
    stages: tuple[Stage, ...]
    said: tuple[str, ...]


class Trainer:
    """Runs a recipe from its beginning, or from its last checkpoint."""

    def __init__(self, recipe: Recipe, *, progress: Progress, resume: bool = False, clock: Callable[[], float] = time.perf_counter) -> None:
        self.recipe, self.progress, self.clock = recipe, progress, clock
        self.folder = Path(recipe.output) / TRAINING
        self.processes = Processes()
        autocast(recipe.precision, self.processes.device)  # refuse bf16 before any work
        self.checkpoints = Checkpoints(self.folder / "checkpoints")
        self.is_new = False
        self.snapshot = self._claim(resume)
        self.log = self.snapshot.log if self.snapshot else TrainingLog()
        self.position = self.snapshot.position if self.snapshot else Position()
        self.said: list[str] = []

    def run(self) -> Outcome:
        """Train every stage that is not done yet. Bad data of any stage is refused before the first step of all."""
        try:
            return self._run()
        except MunjangError:
            self._release()
            raise

    def _run(self) -> Outcome:
        # the first process makes what is kept in the folder, the others find it there
        if not self.processes.is_first:
            self.processes.wait()
        encoder = build(self.recipe, keep=self.folder).to(self.processes.device)
        ready = [self._prepared(number, encoder) for number in range(len(self.recipe.stages))]
        if self.processes.is_first:
            self.processes.wait()
        if self.processes.is_first and self.processes.count > 1:
            self.progress.said(f"{self.processes.count} processes train together, each on its share of every batch")
        stages = [stage for stage, _ in ready]
        for stage, measures in ready:
            self._stage(stage, measures, encoder)
        if self.snapshot is not None:  # every stage was done already
            encoder.load_state_dict({name.removeprefix("encoder."): tensor for name, tensor in self.snapshot.model.items()})
        if self.processes.is_first:
            self.log.write(self.folder / "log.jsonl")
        return Outcome(encoder, self.log, tuple(stages), tuple(self.said))

    def _claim(self, resume: bool) -> Snapshot | None:
        """Take the output folder for this run, or find where an earlier run of the same recipe stopped."""
        path = self.folder / _RECIPE
        wanted = json.loads(json.dumps(self.recipe.to_json()))
        if resume and path.is_file():
            try:
                found = json.loads(path.read_text(encoding="utf-8"))
            except ValueError:
                raise DamagedFile(f"{path}: is not JSON") from None
            changed = differences(found, wanted)
            if changed:
                lines = "\n".join(f"  {line}" for line in changed)
                raise UsageError(f"{self.recipe.output}: was started with another recipe, so it cannot go on with this one\n{lines}")
            return self.checkpoints.latest()
        if Path(self.recipe.output).exists() and any(Path(self.recipe.output).iterdir()):
            hint = "use --resume to go on with it, or name another output" if path.is_file() else "name another output"
            raise UsageError(f"{self.recipe.output}: is there already and not empty\n  {hint}")
        self.processes.wait()
        self.is_new = True
        if self.processes.is_first:
            self.folder.mkdir(parents=True, exist_ok=True)
            text = json.dumps(wanted, indent=1, ensure_ascii=False)
            write_file(path, lambda draft: _write(draft, text))
        self.processes.wait()
        return None

    def _release(self) -> None:
        """Give the output folder back as it was found, where a new training failed before there was anything to resume."""
        if not self.processes.is_first or not self.is_new or self.checkpoints.exist():
            return
        shutil.rmtree(self.folder, ignore_errors=True)
        output = Path(self.recipe.output)
        if output.is_dir() and not any(output.iterdir()):
            output.rmdir()

    def _prepared(self, number: int, encoder: Trainable) -> tuple[Stage, Measures]:
        recipe = self.recipe.stages[number]
        stage = prepare(recipe, encoder, number=number, seed=self.recipe.seed, folder=self.folder, said=self.progress.said)
        stage.epoch(0)  # refuses data that gives no batch
        self.said += [f"{self._name(number)}: {line}" for line in stage.said]
        return stage, measures_of(stage, encoder) if self.position.stage <= number else Measures()

    def _stage(self, stage: Stage, measures: Measures, encoder: Trainable) -> None:
        if self.position.stage > stage.number:
            return
        name = self._name(stage.number)
        if self.processes.is_first:
            for line in stage.said:
                self.progress.said(f"{name}: {line}")
        _StageRun(self, stage, encoder, measures, name).train()

    def _name(self, number: int) -> str:
        return self.recipe.stages[number].name or f"stage {number + 1}"


def _write(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")


class _StageRun:
    """One stage being trained."""

    def __init__(self, trainer: Trainer, stage: Stage, encoder: Trainable, measures: Measures, name: str) -> None:
        self.trainer, self.stage, self.encoder, self.name = trainer, stage, encoder, name
        self.dev, self.test = measures.dev, measures.test
        self.recipe, self.processes = stage.recipe, trainer.processes
        freeze(encoder, self.recipe)
        pieces = stage.trained_pieces()
        if pieces is not None:
            encoder.train_rows(torch.from_numpy(pieces))
        heads = nn.ModuleList(stage.objectives).to(self.processes.device)
        self.modules: dict[str, nn.Module] = {"encoder": encoder, "heads": heads}
        self.named = list(learning(self.modules))
        self.optimizer = make_optimizer(self.modules, self.recipe)
        self.total, self.digest = stage.total_steps, stage.digest()
        self.stepper = Stepper(
            stage, encoder, self.optimizer, [parameter for _, parameter in self.named], self.processes, self.total, trainer.recipe.precision
        )

    def train(self) -> None:
        """Do the steps that are left, then take the best weights and hand over to the next stage."""
        trainer = self.trainer
        if trainer.snapshot is not None and trainer.snapshot.position.stage == self.stage.number:
            self._restore(trainer.snapshot)
        trainer.snapshot = None
        if trainer.position.step == 0 and self.dev is not None:
            self._evaluate(0)
        started, first = trainer.clock(), trainer.position.step
        while trainer.position.step < self.total and not trainer.position.stopped:
            step = trainer.position.step
            loss, rate = self.stepper.run(step)
            done = step + 1
            trainer.position = replace(trainer.position, step=done)
            trainer.log.steps.append(StepEntry(self.stage.number, done, loss, rate))
            if self.dev is not None and (done == self.total or done % (self.recipe.evaluate_every or self.total) == 0):
                self._evaluate(done)
            if done % trainer.recipe.checkpoint_every == 0 and done < self.total:
                self._save()
            self._tell(done, loss, trainer.clock() - started, done - first)
        self._finish()

    def _evaluate(self, step: int) -> None:
        assert self.dev is not None
        trainer = self.trainer
        result = self.dev() if self.processes.is_first else None
        metric, scores = self.processes.from_first(result)
        score = scores[metric]
        entry = DevEntry(self.stage.number, step, metric, score, scores)
        if entry not in trainer.log.evaluations:
            trainer.log.evaluations.append(entry)
        if step == 0:
            return
        position = trainer.position
        if position.best_score is None or score > position.best_score:
            trainer.position = replace(position, best_score=score, best_step=step, evaluations_without_better=0)
            if self.processes.is_first and self.recipe.keep_best:
                trainer.checkpoints.save_best(self.stage.number, step, self._best())
        else:
            waited = position.evaluations_without_better + 1
            stop = self.recipe.patience is not None and waited >= self.recipe.patience
            trainer.position = replace(position, evaluations_without_better=waited, stopped=stop)

    def _finish(self) -> None:
        trainer, position = self.trainer, self.trainer.position
        if position.stopped and self.processes.is_first:
            trainer.progress.said(f"{self.name}: stopped early at step {position.step}, best was step {position.best_step}")
        self.processes.wait()
        if self.recipe.keep_best and position.best_step is not None and position.best_step != position.step:
            self._take(trainer.checkpoints.load_best(self.stage.number, position.best_step))
        self.encoder.train_all_rows()
        self._measure_test()
        self.processes.wait()
        trainer.position = Position(stage=self.stage.number + 1)
        if self.processes.is_first:
            model = {f"encoder.{name}": tensor for name, tensor in self._weights("encoder").items()}
            trainer.checkpoints.save(Snapshot(trainer.position, trainer.log, model))
        self.processes.wait()

    def _measure_test(self) -> None:
        if self.test is None or self.recipe.test is None:
            return
        metric, scores = self.processes.from_first(self.test() if self.processes.is_first else None)
        position = self.trainer.position
        step = position.best_step if self.recipe.keep_best and position.best_step is not None else position.step
        found = FinalEntry(self.stage.number, step, Path(self.recipe.test.path).name, metric, scores)
        self.trainer.log.finals.append(found)
        if self.processes.is_first:
            self.trainer.progress.said(f"{self.name}: {found.test}, weights of step {step}: {metric} {scores[metric]:.4f}")

    def _save(self) -> None:
        if self.processes.is_first:
            model = {f"{part}.{name}": tensor for part in self.modules for name, tensor in self._weights(part).items()}
            state = optimizer_state(self.optimizer, self.named)
            self.trainer.checkpoints.save(Snapshot(replace(self.trainer.position, data=self.digest), self.trainer.log, model, state))
        self.processes.wait()

    def _restore(self, snapshot: Snapshot) -> None:
        if snapshot.position.data not in ("", self.stage.digest()):
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

    def _tell(self, done: int, loss: float, seconds: float, steps: int) -> None:
        if not self.processes.is_first:
            return
        evaluations = [entry for entry in self.trainer.log.evaluations if entry.stage == self.stage.number]
        pace = seconds / max(1, steps)
        rows = self.recipe.batch_size * self.recipe.accumulate
        dev = evaluations[-1].score if evaluations else None
        self.trainer.progress.step(StepNews(self.name, done, self.total, loss, dev, rows / max(pace, 1e-9), pace * (self.total - done)))
