"""Examples and something that tunes a model → a classifier on the tuned model, where held-out examples say that it is better.

What tunes is handed in (`munjang.train.tune_labels.BodyTuner`): training needs torch, this does not. The tuned model is compared with the
frozen one on the same folds, and kept in the classifier's folder unless it labels clearly fewer held-out rows right, or the same ones: few
examples decide little, and without the third that is held out a body has more to lose than a head.

Shapes: N rows, D dimensions, C labels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from math import comb
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from munjang.analyze.classify.classifier import TextClassifier
from munjang.analyze.classify.doubtful import give_numbers, predict_rows
from munjang.analyze.classify.fitting import ClassWeight, Strength, find_repeats, find_vectors, fit_classifier, make_folds
from munjang.analyze.classify.labels import Multi, label_rows
from munjang.analyze.classify.saving import FOLDER
from munjang.errors import UsageError
from munjang.options import Seed
from munjang.types import Encoder, Vectors
from munjang.wording import brief_repr

FOLDS = 3
"""How often a body is tuned to be compared with the frozen one."""


HARM = 0.2
"""The p of the sign test over held-out rows, that the tuned body is worse, below which it is not kept."""


class Tuner(Protocol):
    """Tunes the model that it was made with."""

    def tune(self, texts: Sequence[str], target_NC: NDArray[np.bool_], /, *, seed: int) -> Any:
        """Return an encoder that has learnt which labels texts have."""
        ...

    def save(self, body: Any, folder: Path, /) -> tuple[Encoder, str]:
        """Save what `tune` returned into a classifier's folder; return it as it will be loaded, and its place."""
        ...


@dataclass(frozen=True)
class TuneOutcome:
    """What tuning did to labels of held-out rows."""

    kept: bool
    """It labels other held-out rows right than the frozen one, and not clearly fewer."""
    frozen_accuracy: float
    tuned_accuracy: float
    mended: int
    """Rows that the tuned body labels better; where a text may have several labels, with fewer errors."""
    broken: int
    """Rows that the frozen one labels better."""
    p: float
    """One-sided, by the sign test over held-out rows: with few examples a gain is rarely certain."""

    def facts(self) -> dict[str, Any]:
        """Return what JSON output says."""
        return {name: round(value, 4) if isinstance(value, float) else value for name, value in asdict(self).items()}


@brief_repr
@dataclass(frozen=True, eq=False)
class TunedFit:
    """A classifier and the encoder that it reads: the tuned one where it was kept, else the frozen one."""

    classifier: TextClassifier
    encoder: Encoder
    vectors_ND: Vectors
    """The examples' vectors."""
    outcome: TuneOutcome


def fit_tuned_classifier(
    texts: Sequence[str],
    labels: object,
    encoder: Encoder,
    tuner: Tuner,
    folder: Path | str,
    *,
    multi: Multi = False,
    class_weight: ClassWeight = "none",
    strength: Strength = None,
    seed: Seed = 0,
) -> TunedFit:
    """Fit a classifier as `fit_classifier` does, on a tuned encoder where that labels held-out rows better.

    A tuned encoder is saved into `folder`, where the classifier is to be saved too; the classifier itself is not saved yet.
    """
    FOLDER.check(Path(folder))
    target_NC = label_rows(labels, len(texts), multi=multi).target_NC
    options: dict[str, Any] = {"multi": multi, "class_weight": class_weight, "strength": strength, "seed": seed}
    vectors_ND = find_vectors(texts, encoder, None)
    outcome = compare_tuned(texts, target_NC, tuner, vectors_ND, multi=multi, seed=seed)
    name = str(getattr(encoder, "name", ""))
    if outcome.kept:
        encoder, name = tuner.save(tuner.tune(texts, target_NC, seed=seed), Path(folder))
        vectors_ND = find_vectors(texts, encoder, None)
    made = fit_classifier(texts, labels, encoder, **options, vectors=vectors_ND)
    return TunedFit(replace(made, encoder_name=name), encoder, vectors_ND, outcome)


def compare_tuned(
    texts: Sequence[str], target_NC: NDArray[np.bool_], tuner: Tuner, vectors_ND: Vectors, *, multi: bool, seed: int
) -> TuneOutcome:
    """Label every row by bodies that have not seen it, tuned and frozen, and say which does better."""
    fold_N = make_folds(target_NC, find_repeats(texts, vectors_ND, target_NC).group_N, seed=seed, folds=FOLDS)
    held = np.flatnonzero(fold_N >= 0)
    if not len(held):
        raise UsageError("tuning needs examples that can be held out, found no label with two different texts\n  fit without tuning")
    errors = {"frozen": np.zeros(len(texts), dtype=np.int64), "tuned": np.zeros(len(texts), dtype=np.int64)}
    for fold in np.unique(fold_N[held]):
        inside, outside = np.flatnonzero(fold_N == fold), np.flatnonzero(fold_N != fold)
        known = [texts[int(row)] for row in outside]
        body = tuner.tune(known, target_NC[outside], seed=seed)
        for name, rows_ND in (("frozen", vectors_ND), ("tuned", find_vectors(texts, None, body.encode(list(texts))))):
            made = fit_classifier(known, give_numbers(target_NC[outside], multi=multi), multi=multi, vectors=rows_ND[outside])
            best_NC = predict_rows(made, rows_ND[inside], target_NC.shape[1])
            errors[name][inside] = (best_NC != target_NC[inside]).sum(axis=1)
    return judge_errors(errors["frozen"][held], errors["tuned"][held])


def judge_errors(frozen_N: NDArray[np.int64], tuned_N: NDArray[np.int64]) -> TuneOutcome:
    """Return whether a tuned body is kept, from the errors in the labels of held-out rows.

    >>> judge_errors(np.array([1, 0, 1]), np.array([0, 1, 1])).kept, judge_errors(np.array([0, 0, 0]), np.array([1, 1, 1])).kept
    (True, False)
    """
    mended, broken = int((tuned_N < frozen_N).sum()), int((frozen_N < tuned_N).sum())
    frozen, tuned = (float((each == 0).mean()) for each in (frozen_N, tuned_N))
    is_kept = mended + broken > 0 and _sign_test(broken, mended + broken) >= HARM
    return TuneOutcome(is_kept, frozen, tuned, mended, broken, _sign_test(mended, mended + broken))


def _sign_test(wins: int, rows: int) -> float:
    """Return how likely so many wins or more are by chance."""
    chance: float = sum(comb(rows, count) for count in range(wins, rows + 1)) / 2**rows
    return chance
