"""The paper's Table 6 on given data: 3 poolings × 2 objectives, and 7 concatenations, over several seeds.

In: a model (or sizes for one from nothing), NLI data for classification, STS data for regression, and an STS file to measure all on.
Out: rows of mean ± standard deviation of Spearman × 100, as JSON and HTML. Each run is an ordinary training whose folder is removed.
"""

from __future__ import annotations

import json
import statistics
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Annotated, Any

from munjang.errors import UsageError
from munjang.options import Option, TrainDeviceOption, check_options
from munjang.report.page import page, table, text
from munjang.report.training_words import TrainingWord
from munjang.report.words import say
from munjang.train import name_missing_extra
from munjang.train.examples import DataSource, read_examples
from munjang.train.interrupt import Interrupted
from munjang.train.progress import Progress, Silent
from munjang.train.recipe import ModelRecipe, Recipe, StageRecipe, make_stage
from munjang.types import DEFAULT_DEVICE, Device, Pooling
from munjang.wording import Language, brief_repr

POOLINGS: tuple[Pooling, ...] = ("mean", "max", "cls")
CONCATENATIONS: tuple[tuple[str, ...], ...] = (
    ("u", "v"),
    ("|u-v|",),
    ("u*v",),
    ("|u-v|", "u*v"),
    ("u", "v", "u*v"),
    ("u", "v", "|u-v|"),
    ("u", "v", "|u-v|", "u*v"),
)
"""In the paper's order."""

SCRATCH_WIDTH = 128
"""Of models from scratch: small, since the whole table is many trainings."""


@brief_repr
@dataclass(frozen=True)
class AblationRow:
    """One cell of the table: what was trained, and its scores over the seeds."""

    part: str
    """ "pooling" or "concatenation"."""
    objective: str
    pooling: str
    concatenation: str
    scores: tuple[float, ...]

    @property
    def mean(self) -> float:
        """The mean over the seeds."""
        return statistics.fmean(self.scores)

    @property
    def deviation(self) -> float:
        """The standard deviation over the seeds; 0 for one seed."""
        return statistics.stdev(self.scores) if len(self.scores) > 1 else 0.0


@brief_repr
@dataclass(frozen=True)
class Ablation:
    """The whole table."""

    rows: tuple[AblationRow, ...]
    untrained: float
    test: str

    def to_json(self) -> dict[str, Any]:
        """Return the table for machines; scores are Spearman of the cosine, 0 … 1."""
        rows = [asdict(row) | {"mean": row.mean, "deviation": row.deviation} for row in self.rows]
        return {"test": self.test, "metric": "spearman_cosine", "untrained": self.untrained, "rows": rows}

    def to_html(self, language: Language = "en") -> str:
        """Return the table as a page."""
        parts = {"pooling": TrainingWord.POOLING, "concatenation": TrainingWord.CONCATENATION}
        body = [
            (say(parts[row.part], language), row.objective, row.pooling, row.concatenation, format_score(row), len(row.scores))
            for row in self.rows
        ]
        columns = (
            TrainingWord.PART,
            TrainingWord.OBJECTIVE,
            TrainingWord.POOLING,
            TrainingWord.CONCATENATION,
            TrainingWord.SPEARMAN,
            TrainingWord.SEEDS,
        )
        note = say(TrainingWord.ABLATION_NOTE, language, file=self.test, score=100 * self.untrained)
        head = [say(word, language) for word in columns]
        return page(say(TrainingWord.ABLATION, language), [text(note), table(head, body)], language=language)

    def write(self, folder: Path, *, language: Language = "en") -> None:
        """Write ablation.json and ablation.html."""
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "ablation.json").write_text(json.dumps(self.to_json(), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        (folder / "ablation.html").write_text(self.to_html(language), encoding="utf-8")


def format_score(row: AblationRow) -> str:
    """Write a score as the paper does.

    >>> format_score(AblationRow("pooling", "regression", "mean", "", (0.81, 0.83)))
    '82.00 ± 1.41'
    """
    return f"{100 * row.mean:.2f} ± {100 * row.deviation:.2f}"


@name_missing_extra()
def run_ablation(
    model: ModelRecipe,
    test: DataSource,
    *,
    nli: DataSource | None = None,
    sts: DataSource | None = None,
    seeds: Annotated[int, Option("Number of seeds per cell.", min=1)] = 3,
    first_seed: int = 1,
    stage: Mapping[str, object] | None = None,
    poolings: Sequence[Pooling] = POOLINGS,
    concatenations: Sequence[tuple[str, ...]] = CONCATENATIONS,
    device: TrainDeviceOption = DEFAULT_DEVICE,
    show: Callable[[str], None] | None = None,
    progress: Progress | None = None,
) -> Ablation:
    """Run every cell. `nli` feeds the classification objective, `sts` the regression one; without one of them its half is left out.

    `stage` has settings of every stage, such as epochs, steps, batch_size and learning_rate. `show` gets a line for each cell when it is
    done, `progress` its steps. Bad data is refused before the first.
    """
    from munjang.train.dev import read_dev

    check_options(run_ablation, locals())
    data = {"classification": nli, "regression": sts}
    if nli is None and sts is None:
        raise UsageError("nothing to run: name NLI data, STS data, or both")
    for source in filter(None, data.values()):
        read_examples(source)
    read_dev(test, seed=first_seed)

    def train_cell(objective: str, pooling: Pooling, parts: tuple[str, ...], seed: int) -> tuple[float, float]:
        settings = {"parts": list(parts)} if parts else {}
        name = f"{objective}, {pooling}{', ' + '+'.join(parts) if parts else ''}, seed {seed}"
        # the same amount of training for every cell: the last weights, not the best by the test set
        fixed = {"data": (data[objective],), "dev": test, "objective": objective, "settings": settings, "keep_best": False}
        return _train(replace(model, pooling=pooling), make_stage(stage or {}, name=name, **fixed), seed, device, progress)

    rows: list[AblationRow] = []
    done: dict[tuple[str, str, tuple[str, ...]], tuple[float, ...]] = {}
    untrained: list[float] = []
    for part, objective, pooling, parts in _list_cells(poolings, concatenations):
        if data[objective] is None:
            continue
        key = (objective, pooling, parts)
        if key not in done:
            runs = [train_cell(*key, seed) for seed in range(first_seed, first_seed + seeds)]
            done[key] = tuple(after for _, after in runs)
            untrained += [before for before, _ in runs if pooling == "mean"]
        rows.append(AblationRow(part, objective, pooling, ", ".join(parts), done[key]))
        if show is not None:
            show(f"{objective}, {pooling} pooling{', (' + rows[-1].concatenation + ')' if parts else ''}: {format_score(rows[-1])}")
    return Ablation(tuple(rows), statistics.fmean(untrained) if untrained else float("nan"), Path(test.path).name)


def _list_cells(
    poolings: Sequence[Pooling], concatenations: Sequence[tuple[str, ...]]
) -> Iterator[tuple[str, str, Pooling, tuple[str, ...]]]:
    """Yield part of the table, objective, pooling and concatenation of each cell."""
    for pooling in poolings:
        yield "pooling", "classification", pooling, ("u", "v", "|u-v|")
        yield "pooling", "regression", pooling, ()
    for parts in concatenations:
        yield "concatenation", "classification", "mean", parts


def _train(model: ModelRecipe, stage: StageRecipe, seed: int, device: Device, progress: Progress | None) -> tuple[float, float]:
    """Train one model; return its score before and after."""
    from munjang.train.loop import Trainer

    with tempfile.TemporaryDirectory(prefix="munjang-ablate-") as folder:
        recipe = Recipe(output=str(Path(folder) / "model"), model=model, stages=(stage,), seed=seed, device=device)
        try:
            outcome = Trainer(recipe, progress=progress or Silent()).run()
        except Interrupted:  # its checkpoint goes with the folder
            raise KeyboardInterrupt from None
    evaluations = outcome.log.evaluations
    return evaluations[0].score, evaluations[-1].score
