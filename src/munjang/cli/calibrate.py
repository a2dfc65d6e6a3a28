"""`munjang calibrate`: labelled pairs and a model → what its score means on them: a probability, and the best threshold.

`load_calibration_of` reads the file it wrote, for the commands that take one.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from munjang.atomic import atomic_write
from munjang.cli.data_options import DataOptions, FileArgument, LabelOption, PositiveOption, ScaleOption, facts_of
from munjang.cli.load_model import load_judge
from munjang.cli.options import Chosen, EncoderChoice, JsonOption, OutputOption, Takes, examples, new_app
from munjang.cli.scores import check_output, format_percent
from munjang.cli.show import emit, print_facts, print_table
from munjang.errors import InputError, UsageError, quote
from munjang.evaluate import calibrate as library
from munjang.evaluate.calibrate import Calibration, CalibrationReport, load_calibration

if TYPE_CHECKING:
    from munjang.data.read import AnyDataset
    from munjang.evaluate.inputs import FloatArray, IntArray
    from munjang.evaluate.pairs import PairJudge
    from munjang.models.score_pairs import PairModel


STEPS = 9
"""Rows of the table from score to probability."""

app = new_app()


@app.command(
    epilog=examples(
        "munjang calibrate my-pairs.csv --model my-model -o calibration.json",
        "munjang calibrate klue-sts.csv --same-at 3 --method logistic",
    )
)
def calibrate(
    file: FileArgument,
    *,
    chosen_model: EncoderChoice,
    options: Annotated[Chosen, Takes(library.calibrate)],
    same_at: Annotated[
        float | None, typer.Option(help="For scored pairs: the score, in the file's scale, from which a pair counts as the same.")
    ] = None,
    scale: ScaleOption = None,
    label: LabelOption = None,
    positive: PositiveOption = None,
    reading: DataOptions,
    output: OutputOption = None,
    as_json: JsonOption = False,
) -> None:
    """Find out what a score means on your own labelled pairs.

    Fits a curve from score to probability and finds the threshold with the best F1. The score is a sentence encoder's cosine, a
    cross-encoder's score, or the probability of one label of a classifier of pairs.
    Errors are measured on held-out folds. -o writes the curve as JSON.
    """
    from munjang.data.read import read_any
    from munjang.evaluate.pairs import is_scorer

    check_output(output)
    data = reading.read(file, read_any, scale=scale, labels=label)
    labels = same_labels(data, same_at)
    judge = load_judge(chosen_model.model, compute=chosen_model.compute, positive=positive)
    scores = score_rows(judge, data)
    report = library.calibrate(scores, labels, **options)
    of_model = {"model": judge.name, "fingerprint": judge.fingerprint}
    if output is not None:
        _write(output, {**report.calibration.to_json(), **of_model})
    if as_json:
        emit({**report.to_json(), **of_model, **facts_of(data)})
    else:
        _print(report, scores, output, "score" if is_scorer(judge) else "cosine")


def same_labels(data: AnyDataset, same_at: float | None) -> IntArray:
    """Return 1 for same and 0 for different; graded scores are cut at `same_at`."""

    from munjang.data.rows import LabelledPair, ScoredPair
    from munjang.evaluate.pairs import make_binary_labels

    scores = [row.score for row in data.rows if isinstance(row, ScoredPair)]
    if scores:
        low, high = data.scale or (0.0, 1.0)
        if same_at is None:
            raise UsageError(
                f"{data.source}: graded scores from {low:g} to {high:g}\n  say with --same-at from which score a pair is the same"
            )
        return np.asarray([score >= (same_at - low) / (high - low) - 1e-9 for score in scores], dtype=np.int64)
    if same_at is not None:
        raise UsageError(f"{data.source}: --same-at cuts graded scores, and these pairs have labels")
    labelled = [row for row in data.rows if isinstance(row, LabelledPair)]
    if not labelled:
        raise InputError(f"{data.source}: read as {data.layout}, expected pairs labelled same or different")
    return make_binary_labels(labelled)


def score_rows(judge: PairJudge, data: AnyDataset) -> FloatArray:
    """Return the cosine, or the score, of each pair."""
    from munjang.data.rows import LabelledPair, ScoredPair
    from munjang.evaluate.pairs import measure_pairs

    return measure_pairs(judge, [row for row in data.rows if isinstance(row, LabelledPair | ScoredPair)])  # type: ignore[arg-type]


def _write(output: Path, curve: dict[str, Any]) -> None:
    atomic_write(output, json.dumps(curve, indent=1, allow_nan=False) + "\n")


def _print(report: CalibrationReport, scores: FloatArray, output: Path | None, name: str) -> None:
    steps = np.linspace(float(scores.min()), float(scores.max()), STEPS)
    rows = [(f"{x:.2f}", f"{p:.2f}") for x, p in zip(steps, report.calibration.probability(steps), strict=True)]
    print_table((name, "probability of the same"), rows, right=(name, "probability of the same"))
    facts = [
        ("pairs", f"{report.n:,}, of which {report.positives:,} the same"),
        ("call it the same", f"from {name} {report.calibration.threshold:.3f} (best F1)"),
        ("F1 x 100", f"{format_percent(report.f1)} on held-out folds"),
        ("calibration error x 100", f"{format_percent(report.ece)} on held-out folds (0: probabilities come true)"),
        ("Brier x 100", f"{format_percent(report.brier)} on held-out folds (0: certain and right)"),
    ]
    print_facts(facts + ([("written to", str(output))] if output else []))


def load_calibration_of(model: PairModel, file: Path) -> tuple[Calibration, str | None]:
    """Return the user's own curve, and the label whose probability it reads where the model has several."""
    from munjang.models.cross_encoder import CrossEncoder
    from munjang.models.pair_classifier import PairClassifier

    curve = load_calibration(file)
    made_with = json.loads(file.read_text(encoding="utf-8"))
    labels = model.labels if isinstance(model, CrossEncoder | PairClassifier) and len(model.labels) > 1 else ()
    known: dict[str | None, str | None] = {_get_label_fingerprint(model, label): label for label in labels} or {model.fingerprint: None}
    made = made_with.get("fingerprint", None if labels else model.fingerprint)
    if made not in known:
        raise UsageError(
            f"{file.name}: measured with {quote(str(made_with.get('model')))}, and this is {model.name} in {model.compute}\n"
            "  give that model with --model and --compute, or run munjang calibrate with this one"
        )
    return curve, known[made]


def _get_label_fingerprint(model: PairModel, label: str) -> str:
    from munjang.models.cross_encoder import CrossEncoder
    from munjang.models.pair_classifier import PairClassifier

    assert isinstance(model, CrossEncoder | PairClassifier)  # others have no labels
    return model.for_label(label).fingerprint
