"""The training itself: a recipe's stages one after the other, from the beginning or from the last checkpoint.

In: a `Recipe`. Out: an `Outcome`: the encoder with the best weights (or the last, where nothing was measured) and the log. Everything on
the way is under `<output>/training`. One stage is in `stage_run.py`, what a snapshot holds in `checkpoint.py`, saving the model in
`save_and_report.py`. What differs between kinds of models is the protocol `Task`: the loop, the card and the report
ask it and never look at the kind of its model.
"""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from torch import nn

from munjang.atomic import make_folder
from munjang.errors import DamagedFile, UsageError
from munjang.report.training_words import TrainingWord
from munjang.report.words import Message, WordTable
from munjang.train.checkpoint import Checkpoints, Position, Snapshot
from munjang.train.cross_task import CrossTask
from munjang.train.dev import Evaluation, Role
from munjang.train.durable import clear_partial, is_partial, write_text
from munjang.train.encoder import TrainableModel
from munjang.train.examples import DataSource, ExampleSet
from munjang.train.interrupt import Interrupted, catch_stop
from munjang.train.log import TrainingLog
from munjang.train.multi_vector import MultiVectorTask
from munjang.train.processes import Processes, autocast
from munjang.train.progress import Progress
from munjang.train.recipe import Kind, Recipe, StageRecipe, list_differences
from munjang.train.report import Spread
from munjang.train.sentence_task import SentenceTask
from munjang.train.stage import Stage
from munjang.train.stage_run import Measures, StageRun, Training


class Task(Protocol):
    """One kind of model, from the recipe to the saved folder."""

    marker_file: str
    """The file that makes a folder a model, moved into place last."""

    @classmethod
    def build(cls, recipe: Recipe, *, keep: Path) -> Task:
        """Make the model that a recipe starts from; what must survive a resume is kept in `keep`."""
        ...

    @property
    def model(self) -> TrainableModel:
        """What is trained."""
        ...

    @property
    def max_length(self) -> int:
        """At how many tokens a text or a pair is cut."""
        ...

    @property
    def pooling(self) -> str:
        """The poolings' names; empty where there are none."""
        ...

    @property
    def labels(self) -> Sequence[str]:
        """The names of a cross-encoder's outputs; empty for an encoder of sentences."""
        ...

    def prepare(self, recipe: StageRecipe, *, number: int, seed: int, show: Callable[[str], None]) -> Stage:
        """Read, tokenise and plan one stage; `show` gets what is worth knowing meanwhile."""
        ...

    def read_dev(self, source: DataSource, role: Role, stage: Stage) -> Callable[[], Evaluation]:
        """Read a dev or test file of a stage and return what measures the model on it; a file that does not fit is refused."""
        ...

    def measure_spread(self, data: ExampleSet, *, seed: int) -> Spread:
        """Return how the answers to a sample of rows lie."""
        ...

    def list_facts(self) -> list[tuple[WordTable, object]]:
        """Return what the report says of the model itself."""
        ...

    def save(self, target: Path, last: Stage) -> None:
        """Write the model, and the head that the last stage keeps, into an empty or new folder."""
        ...


def make_task(recipe: Recipe, *, keep: Path) -> Task:
    """Return the task of a recipe's kind with the model that it starts from; what must survive a resume is kept in `keep`."""
    kinds: dict[Kind, type[Task]] = {"sentence": SentenceTask, "cross": CrossTask, "multi_vector": MultiVectorTask}
    return kinds[recipe.kind].build(recipe, keep=keep)


_RECIPE = "recipe.json"


def claim_output(recipe: Recipe, folder: Path, *, processes: Processes, resume: bool) -> bool:
    """Take the recipe's output for this run and say whether it is new; False where an earlier run of the same recipe is resumed.

    `folder`, inside the output, holds the training's own files.
    """
    output, path = Path(recipe.output), folder / _RECIPE
    wanted = json.dumps(recipe.to_json(), indent=1, ensure_ascii=False)
    if resume and path.is_file():
        _refuse_other_recipe(path, json.loads(wanted), output=recipe.output)
        return False
    if output.exists() and not _is_free(output, folder):
        hint = "use --resume to go on with it, or name another output" if path.is_file() else "name another output"
        raise UsageError(f"{recipe.output}: is there already and not empty\n  {hint}")
    processes.wait()
    if processes.is_first:
        make_folder(folder)
        clear_partial(folder)
        write_text(path, wanted)
    processes.wait()
    return True


def release_output(output: Path, folder: Path) -> None:
    """Give a newly claimed output back as it was found; what says whose it is goes last, so that a kill on the way does not orphan it."""
    for path in [path for path in folder.glob("*") if path.name != _RECIPE]:
        shutil.rmtree(path, ignore_errors=True) if path.is_dir() else path.unlink(missing_ok=True)
    shutil.rmtree(folder, ignore_errors=True)
    if output.is_dir() and not any(output.iterdir()):
        output.rmdir()


def _is_free(output: Path, folder: Path) -> bool:
    """Return whether an output holds nothing, or only what a process left that was killed while it claimed it."""
    inside = list(output.iterdir())
    return not inside or (inside == [folder] and folder.is_dir() and all(is_partial(path) for path in folder.iterdir()))


def _refuse_other_recipe(path: Path, wanted: dict[str, object], *, output: str) -> None:
    try:
        found = dict(json.loads(path.read_text(encoding="utf-8")))
    except (ValueError, TypeError):
        raise DamagedFile(f"{path}: is not a JSON object") from None
    # a training that was moved is where it is found, whatever its recipe said
    changed = list_differences({**found, "output": wanted["output"]}, wanted)
    if changed:
        lines = "\n".join(f"  {line}" for line in changed)
        raise UsageError(f"{output}: was started with another recipe, so it cannot go on with this one\n{lines}")


TRAINING = "training"


@dataclass(frozen=True)
class Outcome:
    """What a training leaves behind."""

    task: Task
    log: TrainingLog
    stages: tuple[Stage, ...]
    messages: tuple[str, ...]
    reported: frozenset[tuple[int, str]] = frozenset()
    """The stages and kinds of diagnosis that were shown on the way."""


class Trainer:
    """Runs a recipe from its beginning, or from its last checkpoint."""

    def __init__(self, recipe: Recipe, *, progress: Progress, resume: bool = False, clock: Callable[[], float] = time.perf_counter) -> None:
        self.recipe, self.progress, self.resume = recipe, progress, resume
        self.folder = Path(recipe.output) / TRAINING
        self.processes = Processes(recipe.device)
        autocast(recipe.precision, self.processes.device)  # refuse bf16 before any work
        checkpoints = Checkpoints(self.folder / "checkpoints")
        self.is_new = claim_output(recipe, self.folder, processes=self.processes, resume=resume)
        snapshot = None if self.is_new else checkpoints.load_latest()
        log, position = (snapshot.log, snapshot.position) if snapshot else (TrainingLog(), Position())
        self.training = Training(recipe, progress, clock, self.processes, checkpoints, log, position, snapshot)
        self.messages: list[str] = []

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

    def make_interrupt(self) -> Interrupted | None:
        """Return what to raise for a Ctrl-C that came between steps; None where there is nothing to go on from."""
        position, count = self.training.checkpoints.read_position(), self.processes.count
        if position is None and not self._has_teacher():
            return None
        stands = f"the last checkpoint is {self._describe_place(position)}" if position else "the teacher's vectors are kept"
        return Interrupted(f"interrupted; {stands} in {self.training.checkpoints.folder}", is_shared=count > 1)

    def _run(self) -> Outcome:
        if self.resume and self.processes.is_first:
            self.progress.show_message(self._describe_resume())
        # the first process makes what is kept in the folder, the others find it there
        if not self.processes.is_first:
            self.processes.wait()
        task = make_task(self.recipe, keep=self.folder)
        task.model.to(self.processes.device)
        ready = [self._prepare(number, task) for number in range(len(self.recipe.stages))]
        if self.processes.is_first:
            self.processes.wait()
        if self.processes.is_first and self.processes.count > 1:
            self.progress.show_message(f"{self.processes.count} processes train together, each on its share of every batch")
        stages = [stage for stage, _ in ready]
        with catch_stop() as self.training.stop:
            for stage, measures in ready:
                self._train_stage(stage, measures, task)
        if self.processes.any(self.training.stop.number is not None):  # asked for while the last stage was finished
            raise self.make_interrupt() or KeyboardInterrupt
        if self.training.snapshot is not None:  # every stage was done already
            self._take_snapshot(self.training.snapshot, task, stages[-1])
        if self.processes.is_first:
            self.training.log.write(self.folder / "log.jsonl")
        return Outcome(task, self.training.log, tuple(stages), tuple(self.messages), frozenset(self.training.reported))

    def _take_snapshot(self, snapshot: Snapshot, task: Task, last: Stage) -> None:
        """Take the weights of a training whose stages are all done, with the heads where the last stage keeps them."""
        parts = {
            part: {name.removeprefix(f"{part}."): tensor for name, tensor in snapshot.model.items() if name.startswith(f"{part}.")}
            for part in ("encoder", "heads")
        }
        task.model.load_state_dict(parts["encoder"])
        if last.recipe.keep_head:
            nn.ModuleList(last.objectives).load_state_dict(parts["heads"])

    def _prepare(self, number: int, task: Task) -> tuple[Stage, Measures]:
        recipe = self.recipe.stages[number]
        stage = task.prepare(recipe, number=number, seed=self.recipe.seed, show=self.progress.show_message)
        stage.epoch(0)  # refuses data that gives no batch
        self.messages += [Message(TrainingWord.NAMED, name=self._get_name(number), line=line) for line in stage.messages]
        if self.training.position.stage > number:
            return stage, Measures()
        dev = None if recipe.dev is None else task.read_dev(recipe.dev, "dev", stage)
        return stage, Measures(dev, None if recipe.test is None else task.read_dev(recipe.test, "test", stage))

    def _train_stage(self, stage: Stage, measures: Measures, task: Task) -> None:
        if self.training.position.stage > stage.number:
            return
        name = self._get_name(stage.number)
        if self.processes.is_first:
            for line in stage.messages:
                self.progress.show_message(f"{name}: {line}")
        StageRun(self.training, stage, task.model, measures, name).train()

    def _describe_resume(self) -> str:
        """Say from where a resumed training goes on, or that it starts anew."""
        if self.is_new:
            return f"{self.recipe.output}: no earlier training is there, so it starts over"
        if self.training.snapshot is None:
            return f"{self.recipe.output}: the earlier training left no checkpoint, so it starts over"
        if self.training.position.stage == len(self.recipe.stages):
            return f"{self.recipe.output}: every step was done, the model is saved again"
        return f"{self.recipe.output}: goes on from the checkpoint {self._describe_place(self.training.position)}"

    def _describe_place(self, position: Position) -> str:
        if position.stage == len(self.recipe.stages):
            return "after the last stage"
        stage = self._get_name(position.stage)
        return f"after step {position.step:,} of {stage}" if position.step else f"before the first step of {stage}"

    def _has_teacher(self) -> bool:
        """Say whether a teacher's vectors stand in the folder: hours of work that the next run need not do again."""
        return any((self.folder / "teacher").glob("*.npy"))

    def _get_name(self, number: int) -> str:
        return self.recipe.stages[number].name or Message(TrainingWord.STAGE_NUMBER, number=number + 1)
