"""What differs between training a sentence encoder and a cross-encoder, as one protocol; `make_task` chooses by the recipe's kind.

The loop, the card and the report ask a `Task` and never look at the kind of its model.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

from munjang.report.words import WordTable
from munjang.train.cross_task import CrossTask
from munjang.train.dev import Evaluation, Role
from munjang.train.encoder import TrainableModel
from munjang.train.examples import DataSource, ExampleSet
from munjang.train.recipe import Recipe, StageRecipe
from munjang.train.report import Spread
from munjang.train.sentence_task import SentenceTask
from munjang.train.stage import Stage


class Task(Protocol):
    """One kind of model, from the recipe to the saved folder."""

    marker_file: str
    """The file that makes a folder a model, moved into place last."""

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
    return CrossTask.build(recipe, keep=keep) if recipe.kind == "cross" else SentenceTask.build(recipe, keep=keep)
