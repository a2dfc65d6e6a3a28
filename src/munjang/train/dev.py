"""The dev score of a model in training: one number that decides what is best, and the others beside it.

In: a dev file (or a test file, measured once) and an encoder. Scored pairs give Spearman of the cosine, same/different pairs average
precision, triplets accuracy, plain pairs the accuracy of finding the partner, classes the accuracy of the classifier that is being trained.
Intervals are left to `munjang evaluate`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

import numpy as np

from munjang.errors import InputError
from munjang.evaluate.nli import score_nli
from munjang.evaluate.pairs import score_pairs
from munjang.evaluate.sts import score_sts
from munjang.evaluate.translation import score_translation
from munjang.evaluate.triplets import score_triplets
from munjang.train.classifier import Classifier
from munjang.train.diagnoses import class_answers, score_answers
from munjang.train.examples import DataSource, ExampleSet, read_examples
from munjang.train.log import Answers
from munjang.types import Encoder, Vectors
from munjang.vectors.similarity import similarity_pairwise

Scores: TypeAlias = dict[str, float]
Role: TypeAlias = Literal["dev", "test"]


class Evaluation(NamedTuple):
    """The name of the number that decides, all numbers, and how much the answers differ where the rows have labels."""

    metric: str
    scores: Scores
    answers: Answers | None = None


@dataclass(frozen=True)
class DevSet:
    """A dev or test file, read once, and the classifier that its classes need."""

    examples: ExampleSet
    name: str
    classifier: Classifier | None = None

    def score(self, encoder: Encoder) -> Evaluation:
        """Measure an encoder."""
        count = len(self.examples)
        texts = [text for column in range(self.examples.columns) for text in (example.texts[column] for example in self.examples.examples)]
        vectors = encoder.encode(texts)
        if not np.isfinite(vectors).all():
            raise InputError(
                "the model gives vectors that are not finite numbers\n  lower the learning rate; the last checkpoint is intact"
            )
        sides = [vectors[start : start + count] for start in range(0, len(vectors), count)]
        labels = [example.label or 0.0 for example in self.examples.examples]
        if self.classifier is not None:
            gold = [self.examples.classes[int(label)] for label in labels]
            predicted = self.classifier.predict(sides[0], sides[1])
            found = score_nli(predicted, gold, resamples=0)
            return Evaluation("accuracy", {"accuracy": found.accuracy, "macro_f1": found.macro_f1}, class_answers(predicted, gold))
        if self.examples.label_kind == "score":
            scores = score_sts(sides[0], sides[1], labels, resamples=0, worst=0).scores
            return Evaluation("spearman_cosine", without_nan(scores), _cosine_answers(sides, labels))
        if self.examples.label_kind == "binary":
            scores = score_pairs(sides[0], sides[1], [int(label) for label in labels], resamples=0).scores
            return Evaluation("cosine_ap", without_nan(scores), _cosine_answers(sides, labels))
        if self.examples.columns >= 3:
            return Evaluation("cosine_accuracy", score_triplets(sides[0], sides[1], sides[2], resamples=0).scores)
        return Evaluation("mean_accuracy", _partners(sides[0], sides[1]))


def read_dev(source: DataSource, *, seed: int, classifiers: Sequence[Classifier] = (), role: Role = "dev") -> DevSet:
    """Return a dev set; one with classes needs a classifier in training that knows them all, and is refused without."""
    found = read_examples(source, seed=seed)
    refuse_one_label(found, role)
    if found.label_kind != "class":
        return DevSet(found, found.source)
    for classifier in classifiers:
        if set(found.classes) <= set(classifier.classes):
            return DevSet(found, found.source, classifier)
    trained = "; ".join(", ".join(classifier.classes) for classifier in classifiers)
    raise InputError(
        f"{found.source}: a {role} file with the classes {', '.join(found.classes[:3])} needs a classifier, and "
        + (f"this stage trains one of {trained}\n" if trained else "this stage trains none\n")
        + f"  name a {role} file with the stage's classes, an STS file, same/different pairs, or triplets"
    )


def refuse_one_label(found: ExampleSet, role: Role) -> None:
    """Refuse scored or same/different pairs that all have one label: no order of theirs is better than another."""
    if found.label_kind in ("score", "binary") and len({example.label for example in found.examples}) == 1:
        raise InputError(
            f"{found.source}: every row of the {role} file has the same label, so nothing can be measured on it\n"
            "  name a file whose labels differ, or check which column holds them"
        )


def without_nan(scores: Scores) -> Scores:
    """Return the scores with 0 for those that have no meaning where all answers are equal: such answers order nothing.

    A score that is no number would never be better or worse than another, and fits in no JSON.
    """
    return {name: 0.0 if math.isnan(value) else value for name, value in scores.items()}


def _cosine_answers(sides: Sequence[Vectors], labels: Sequence[float]) -> Answers:
    return score_answers(similarity_pairwise(sides[0], sides[1], metric="cosine"), labels, kind="cosine")


def _partners(a: Vectors, b: Vectors) -> Scores:
    found = score_translation(a, b, resamples=0)
    return {name: getattr(found, name) for name in ("mean_accuracy", "src2trg_accuracy", "trg2src_accuracy")}
