"""`munjang classify fit --tune`: whether a tuned body labels held-out texts better; if so, it is kept beside the classifier."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from math import comb
from pathlib import Path
from typing import TYPE_CHECKING, Any

from munjang.errors import UsageError

if TYPE_CHECKING:
    import numpy as np

    from munjang.types import Encoder, Ints, Vectors

TRIES = 3
"""Folds on which the tuned body is compared with the frozen one."""


@dataclass(frozen=True)
class TuneOutcome:
    """What tuning did to labels of held-out rows."""

    kept: bool
    """It labels more held-out rows right than the frozen one."""
    frozen_accuracy: float
    tuned_accuracy: float
    mended: int
    """Rows that only the tuned body labels right."""
    broken: int
    """Rows that only the frozen one labels right."""
    p: float
    """One-sided, by the sign test over held-out rows: with few examples a gain is rarely certain."""

    def facts(self) -> dict[str, Any]:
        """Return what JSON output says."""
        return {name: round(value, 4) if isinstance(value, float) else value for name, value in asdict(self).items()}


def compare_tuned(texts: Sequence[str], labels: Sequence[Any], model: Path, vectors_ND: Vectors, *, seed: int) -> TuneOutcome:
    """Label every row by bodies that have not seen it, tuned and frozen, and say which does better."""
    import numpy as np

    from munjang.analyze.classify.folds import NEVER, find_repeats, make_folds
    from munjang.analyze.classify.labels import label_rows
    from munjang.train import explain_import_error

    try:
        from munjang.train.tune_labels import tune_body
    except ImportError as error:
        raise explain_import_error(error) from error

    labelled = label_rows(labels, len(texts), multi=False)
    fold_N = make_folds(labelled.target_NC, find_repeats(texts, vectors_ND, labelled.target_NC).group_N, seed=seed)
    fold_N = np.where(fold_N == NEVER, NEVER, fold_N % TRIES)
    held = np.flatnonzero(fold_N != NEVER)
    if not len(held):
        raise UsageError("--tune needs examples that can be held out, found no label with two different texts\n  leave --tune out")
    gold_N = labelled.first_N
    right = {"frozen": np.zeros(len(texts), dtype=bool), "tuned": np.zeros(len(texts), dtype=bool)}
    for fold in np.unique(fold_N[held]):
        inside, outside = np.flatnonzero(fold_N == fold), np.flatnonzero(fold_N != fold)
        body = tune_body(model, [texts[row] for row in outside.tolist()], gold_N[outside].tolist(), seed=seed)
        for name, rows_ND in (("frozen", vectors_ND), ("tuned", body.encode(texts))):
            right[name][inside] = _predict(texts, gold_N, rows_ND, outside, inside) == gold_N[inside]
    mended = int((right["tuned"] & ~right["frozen"]).sum())
    broken = int((right["frozen"] & ~right["tuned"]).sum())
    p = sum(comb(mended + broken, wins) for wins in range(mended, mended + broken + 1)) / 2 ** (mended + broken)
    accuracy = {name: float(each[held].mean()) for name, each in right.items()}
    return TuneOutcome(mended > broken, accuracy["frozen"], accuracy["tuned"], mended, broken, p)


def save_tuned(texts: Sequence[str], labels: Sequence[Any], model: Path, output: Path, *, seed: int) -> tuple[Encoder, str]:
    """Tune a body on all examples, save it into the classifier's folder, and return it with its place."""
    import hashlib

    from munjang.analyze.classify.labels import label_rows
    from munjang.atomic import atomic_folder, make_folder
    from munjang.cli.load_model import load_encoder
    from munjang.train.sentence_task import save_encoder
    from munjang.train.tune_labels import tune_body

    body = tune_body(model, texts, label_rows(labels, len(texts), multi=False).first_N.tolist(), seed=seed)
    make_folder(output)
    target = output / f"body-{hashlib.sha256(body.fingerprint.encode()).hexdigest()[:16]}"
    if not target.is_dir():
        with atomic_folder(target) as folder:
            save_encoder(body, folder)
    return load_encoder(str(target)), str(target)


def _predict(texts: Sequence[str], gold_N: Ints, rows_ND: Vectors, outside: Ints, inside: Ints) -> np.ndarray[Any, Any]:
    import numpy as np

    from munjang.analyze.classify.apply import apply_classifier
    from munjang.analyze.classify.fitting import fit_classifier

    made = fit_classifier([texts[row] for row in outside], gold_N[outside], vectors=rows_ND[outside])
    found = apply_classifier(made, [texts[row] for row in inside], vectors=rows_ND[inside])
    return np.asarray(np.array([int(name) for name in made.labels])[found.best_N])
