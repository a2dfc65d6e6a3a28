"""The training itself: a recipe's stages one after the other, from the beginning or from the last checkpoint.

In: a `Recipe`. Out: an `Outcome`: the encoder with the best weights (or the last, where nothing was measured) and the log. Everything on
the way is under `<output>/training`. One stage is in `stage_run.py`, a step in `step.py`, what a snapshot holds in `checkpoint.py`, saving
the model in `finish.py`.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from munjang.report.words import Message, Word
from munjang.train.build import Trainable, build
from munjang.train.checkpoint import Checkpoints, Position
from munjang.train.claim import claim_output, release_output
from munjang.train.interrupt import Interrupted, catch_stop
from munjang.train.kinds import Measures, measures_of, prepare
from munjang.train.log import TrainingLog
from munjang.train.processes import Processes, autocast
from munjang.train.progress import Progress
from munjang.train.recipe import Recipe
from munjang.train.stage import Stage
from munjang.train.stage_run import StageRun, Training

TRAINING = "training"


@dataclass(frozen=True)
class Outcome:
    """What a training leaves behind."""

    encoder: Trainable
    log: TrainingLog
    stages: tuple[Stage, ...]
    said: tuple[str, ...]
    told: frozenset[tuple[int, str]] = frozenset()
    """The stages and kinds of what was diagnosed and said on the way."""


class Trainer:
    """Runs a recipe from its beginning, or from its last checkpoint."""

    def __init__(self, recipe: Recipe, *, progress: Progress, resume: bool = False, clock: Callable[[], float] = time.perf_counter) -> None:
        self.recipe, self.progress, self.resume = recipe, progress, resume
        self.folder = Path(recipe.output) / TRAINING
        self.processes = Processes()
        autocast(recipe.precision, self.processes.device)  # refuse bf16 before any work
        checkpoints = Checkpoints(self.folder / "checkpoints")
        self.is_new = claim_output(recipe, self.folder, processes=self.processes, resume=resume)
        snapshot = None if self.is_new else checkpoints.latest()
        log, position = (snapshot.log, snapshot.position) if snapshot else (TrainingLog(), Position())
        self.training = Training(recipe, progress, clock, self.processes, checkpoints, log, position, snapshot)
        self.said: list[str] = []

    def run(self) -> Outcome:
        """Train every stage that is not done yet. Bad data of any stage is refused before the first step of all."""
        try:
            return self._run()
        except BaseException as error:
            # where there is nothing to resume, a new training leaves no trace
            kept = self.training.checkpoints.exist() or (isinstance(error, KeyboardInterrupt) and self._has_teacher())
            if self.processes.is_first and self.is_new and not kept:
                release_output(Path(self.recipe.output), self.folder)
            raise

    def interrupted(self) -> Interrupted | None:
        """Return what to raise for a Ctrl-C that came between steps; None where there is nothing to go on from."""
        position, count = self.training.checkpoints.position(), self.processes.count
        if position is None and not self._has_teacher():
            return None
        stands = f"the last checkpoint is {self._place(position)}" if position else "the teacher's vectors are kept"
        return Interrupted(f"interrupted; {stands} in {self.training.checkpoints.folder}", is_shared=count > 1)

    def _run(self) -> Outcome:
        if self.resume and self.processes.is_first:
            self.progress.said(self._resumed())
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
        with catch_stop() as self.training.stop:
            for stage, measures in ready:
                self._stage(stage, measures, encoder)
        if self.processes.any(self.training.stop.number is not None):  # asked for while the last stage was finished
            raise self.interrupted() or KeyboardInterrupt
        if self.training.snapshot is not None:  # every stage was done already
            encoder.load_state_dict({name.removeprefix("encoder."): tensor for name, tensor in self.training.snapshot.model.items()})
        if self.processes.is_first:
            self.training.log.write(self.folder / "log.jsonl")
        return Outcome(encoder, self.training.log, tuple(stages), tuple(self.said), frozenset(self.training.told))

    def _prepared(self, number: int, encoder: Trainable) -> tuple[Stage, Measures]:
        recipe = self.recipe.stages[number]
        stage = prepare(recipe, encoder, number=number, seed=self.recipe.seed, folder=self.folder, said=self.progress.said)
        stage.epoch(0)  # refuses data that gives no batch
        self.said += [Message(Word.NAMED, name=self._name(number), line=line) for line in stage.said]
        return stage, measures_of(stage, encoder) if self.training.position.stage <= number else Measures()

    def _stage(self, stage: Stage, measures: Measures, encoder: Trainable) -> None:
        if self.training.position.stage > stage.number:
            return
        name = self._name(stage.number)
        if self.processes.is_first:
            for line in stage.said:
                self.progress.said(f"{name}: {line}")
        StageRun(self.training, stage, encoder, measures, name).train()

    def _resumed(self) -> str:
        """Say from where a resumed training goes on, or that it starts anew."""
        if self.is_new:
            return f"{self.recipe.output}: no earlier training is there, so it starts anew"
        if self.training.snapshot is None:
            return f"{self.recipe.output}: the earlier training left no checkpoint, so it starts anew"
        if self.training.position.stage == len(self.recipe.stages):
            return f"{self.recipe.output}: every step was done, the model is saved again"
        return f"{self.recipe.output}: goes on from the checkpoint {self._place(self.training.position)}"

    def _place(self, position: Position) -> str:
        if position.stage == len(self.recipe.stages):
            return "after the last stage"
        stage = self._name(position.stage)
        return f"after step {position.step:,} of {stage}" if position.step else f"before the first step of {stage}"

    def _has_teacher(self) -> bool:
        """Say whether a teacher's vectors stand in the folder: hours of work that the next run need not do again."""
        return any((self.folder / "teacher").glob("*.npy"))

    def _name(self, number: int) -> str:
        return self.recipe.stages[number].name or Message(Word.STAGE_NUMBER, number=number + 1)
