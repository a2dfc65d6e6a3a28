"""The dev score of a cross-encoder in training: one number that decides what is best, and the others beside it.

In: a dev file and a Scorer. Scored pairs give Pearson and Spearman of the score, classes accuracy and macro F1, same/different pairs
average precision, rows of query, answer and negatives the share whose answer wins. Intervals are left to `munjang evaluate`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from munjang.errors import InputError
from munjang.evaluate.nli import labels_of, score_nli
from munjang.evaluate.pairs import score_binary
from munjang.evaluate.sts_scores import score_correlations
from munjang.train.dev import Evaluation, Role, refuse_one_label, without_nan
from munjang.train.diagnoses import class_answers, score_answers
from munjang.train.examples import DataSource, ExampleSet, read_examples
from munjang.types import Scorer, Vectors


@dataclass(frozen=True)
class CrossDevSet:
    """A dev file, read once, and the model's labels."""

    examples: ExampleSet
    labels: tuple[str, ...]

    def score(self, scorer: Scorer) -> Evaluation:
        """Measure a cross-encoder."""
        rows = self.examples.examples
        if self.examples.columns > 2:
            return _wins(scorer, [row.texts for row in rows])
        scores = _finite(scorer.predict([(row.texts[0], row.texts[1]) for row in rows]))
        if len(self.labels) > 1:
            gold = [self.examples.classes[int(row.label or 0)] for row in rows]
            predicted = labels_of(scores, self.labels)
            found = score_nli(predicted, gold, resamples=0)
            return Evaluation("accuracy", {"accuracy": found.accuracy, "macro_f1": found.macro_f1}, class_answers(predicted, gold))
        labels = [row.label or 0.0 for row in rows]
        answers = score_answers(scores, labels, kind="score")
        if self.examples.label_kind == "binary":
            return Evaluation("ap", without_nan(score_binary(scores, [int(label) for label in labels])), answers)
        return Evaluation("spearman", without_nan(score_correlations(scores, labels, resamples=0).scores), answers)


def read_cross_dev(source: DataSource, labels: Sequence[str], *, seed: int, role: Role = "dev") -> CrossDevSet:
    """Return a dev set that a model with these labels can be measured on; any other is refused."""
    found = read_examples(source, seed=seed)
    if len(labels) == 1:
        refuse_one_label(found, role)
    if len(labels) > 1:
        unknown = sorted(set(found.classes) - set(labels))
        if found.label_kind not in ("class", "binary") or unknown:
            what = f"the classes {', '.join(unknown[:3])}" if unknown else "no classes"
            raise InputError(
                f"{found.source}: a {role} file with {what}, the model's labels are {', '.join(labels)}\n  name a file with these"
            )
    elif found.label_kind == "class":
        raise InputError(
            f"{found.source}: a {role} file with the classes {', '.join(found.classes[:3])}, and the model learns one score\n"
            "  name scored pairs, same/different pairs, or triplets"
        )
    elif found.label_kind is None and found.columns < 3:
        raise InputError(
            f"{found.source}: a {role} file of pairs without labels or negatives\n  name scored pairs, same/different pairs, or triplets"
        )
    return CrossDevSet(found, tuple(labels))


def _wins(scorer: Scorer, rows: Sequence[tuple[str, ...]]) -> Evaluation:
    """Measure the share of rows whose first document scores above all others."""
    scores = _finite(scorer.predict([(texts[0], document) for texts in rows for document in texts[1:]]))
    ends = np.cumsum([len(texts) - 1 for texts in rows])[:-1]
    share = float(np.mean([part[0] > part[1:].max() for part in np.split(scores, ends)]))
    right = [float(place == 0) for texts in rows for place in range(len(texts) - 1)]
    return Evaluation("accuracy", {"accuracy": share}, score_answers(scores, right, kind="score"))


def _finite(scores: Vectors) -> Vectors:
    if not np.isfinite(scores).all():
        raise InputError("the model gives scores that are not finite numbers\n  lower the learning rate; the last checkpoint is intact")
    return scores
