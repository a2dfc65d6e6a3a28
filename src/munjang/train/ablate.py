"""The paper's Table 6 on given data: 3 poolings × 2 objectives, and 7 concatenations, over several seeds.

In: a model (or sizes for one from nothing), NLI data for classification, STS data for regression, and an STS file to measure all on.
Out: rows of mean ± standard deviation of Spearman × 100, as JSON and HTML. Each run is an ordinary training whose folder is removed.
"""

from __future__ import annotations

import json
import statistics
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from munjang.errors import UsageError
from munjang.options import Option, TrainDeviceOption, check_options
from munjang.report.page import page, table, text
from munjang.report.training_words import TrainingWord
from munjang.report.words import say
from munjang.train.examples import DataSource, read_examples
from munjang.train.recipe import ModelRecipe, Recipe, make_stage
from munjang.types import DEFAULT_DEVICE, Pooling
from munjang.wording import Language, brief_repr

if TYPE_CHECKING:
    from munjang.train.progress import Progress

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
class AblationPlan:
    """What is run. `nli` feeds the classification objective, `sts` the regression one; without one of them its half is left out."""

    model: ModelRecipe
    test: DataSource
    nli: DataSource | None = None
    sts: DataSource | None = None
    seeds: Annotated[int, Option("Number of seeds per cell.", min=1)] = 3
    first_seed: int = 1
    stage: Mapping[str, object] = field(default_factory=dict)
    """Settings of every stage, such as epochs, steps, batch_size and learning_rate."""
    poolings: tuple[Pooling, ...] = POOLINGS
    concatenations: tuple[tuple[str, ...], ...] = CONCATENATIONS
    device: TrainDeviceOption = DEFAULT_DEVICE

    def __post_init__(self) -> None:
        if self.nli is None and self.sts is None:
            raise UsageError("nothing to run: name NLI data, STS data, or both")
        check_options(AblationPlan, vars(self))


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


def run_ablation(plan: AblationPlan, *, show: Callable[[str], None] | None = None, progress: Progress | None = None) -> Ablation:
    """Run every cell; `show` gets a line for each as it is done, `progress` its steps. Bad data is refused before the first."""
    _read_all(plan)
    cells: list[tuple[str, str, Pooling, tuple[str, ...]]] = []
    default = ("u", "v", "|u-v|")
    for pooling in plan.poolings:
        cells += [("pooling", "classification", pooling, default)] if plan.nli else []
        cells += [("pooling", "regression", pooling, ())] if plan.sts else []
    cells += [("concatenation", "classification", "mean", parts) for parts in plan.concatenations] if plan.nli else []
    rows: list[AblationRow] = []
    done: dict[tuple[str, str, tuple[str, ...]], tuple[float, ...]] = {}
    untrained: list[float] = []
    for part, objective, pooling, parts in cells:
        key = (objective, pooling, parts)
        if key not in done:
            seeds = range(plan.first_seed, plan.first_seed + plan.seeds)
            runs = [_run(plan, objective, pooling, parts, seed, progress) for seed in seeds]
            done[key] = tuple(after for _, after in runs)
            untrained += [before for before, _ in runs if pooling == "mean"]
        rows.append(AblationRow(part, objective, pooling, ", ".join(parts), done[key]))
        if show is not None:
            show(f"{objective}, {pooling} pooling{', (' + rows[-1].concatenation + ')' if parts else ''}: {format_score(rows[-1])}")
    return Ablation(tuple(rows), statistics.fmean(untrained) if untrained else float("nan"), Path(plan.test.path).name)


def _read_all(plan: AblationPlan) -> None:
    from munjang.train.dev import read_dev

    for source in (plan.nli, plan.sts):
        if source is not None:
            read_examples(source)
    read_dev(plan.test, seed=plan.first_seed)


def _run(
    plan: AblationPlan, objective: str, pooling: Pooling, parts: Sequence[str], seed: int, progress: Progress | None
) -> tuple[float, float]:
    """Train one model; return its score before and after."""
    from munjang.train.interrupt import Interrupted
    from munjang.train.loop import Trainer
    from munjang.train.progress import Silent

    data = plan.nli if objective == "classification" else plan.sts
    assert data is not None
    settings: dict[str, Any] = {"parts": list(parts)} if parts else {}
    name = f"{objective}, {pooling}{', ' + '+'.join(parts) if parts else ''}, seed {seed}"
    # the same amount of training for every cell: the last weights, not the best by the test set
    stage = make_stage(plan.stage, name=name, data=(data,), dev=plan.test, objective=objective, settings=settings, keep_best=False)
    with tempfile.TemporaryDirectory(prefix="munjang-ablate-") as folder:
        model = replace(plan.model, pooling=pooling)
        recipe = Recipe(output=str(Path(folder) / "model"), model=model, stages=(stage,), seed=seed, device=plan.device)
        try:
            outcome = Trainer(recipe, progress=progress or Silent()).run()
        except Interrupted:  # its checkpoint goes with the folder
            raise KeyboardInterrupt from None
    evaluations = outcome.log.evaluations
    return evaluations[0].score, evaluations[-1].score
