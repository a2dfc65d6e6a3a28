"""The dev score of a model in training: one number that decides what is best, and the others beside it.

In: a dev file (or a test file, measured once) and an encoder. Scored pairs give Spearman of the cosine, same/different pairs average
precision, triplets accuracy, plain pairs the accuracy of finding the partner, classes the accuracy of the classifier that is being trained.
Intervals are left to `munjang evaluate`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from munjang.errors import InputError
from munjang.evaluate.nli import score_nli
from munjang.evaluate.pairs import score_pairs
from munjang.evaluate.sts import score_sts
from munjang.evaluate.translation import score_translation
from munjang.evaluate.triplets import score_triplets
from munjang.train.classifier import Classifier
from munjang.train.examples import DataSource, ExampleSet, read_examples
from munjang.types import Encoder, Vectors

Scores: TypeAlias = dict[str, float]
Role: TypeAlias = Literal["dev", "test"]


@dataclass(frozen=True)
class DevSet:
    """A dev or test file, read once, and the classifier that its classes need."""

    examples: ExampleSet
    name: str
    classifier: Classifier | None = None

    def score(self, encoder: Encoder) -> tuple[str, Scores]:
        """Return the name of the deciding number and all of them."""
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
            found = score_nli(self.classifier.predict(sides[0], sides[1]), gold, resamples=0)
            return "accuracy", {"accuracy": found.accuracy, "macro_f1": found.macro_f1}
        if self.examples.label_kind == "score":
            return "spearman_cosine", score_sts(sides[0], sides[1], labels, resamples=0, worst=0).scores
        if self.examples.label_kind == "binary":
            return "cosine_ap", score_pairs(sides[0], sides[1], [int(label) for label in labels], resamples=0).scores
        if self.examples.columns >= 3:
            return "cosine_accuracy", score_triplets(sides[0], sides[1], sides[2], resamples=0).scores
        return "mean_accuracy", _partners(sides[0], sides[1])


def read_dev(source: DataSource, *, seed: int, classifiers: Sequence[Classifier] = (), role: Role = "dev") -> DevSet:
    """Return a dev set; one with classes needs a classifier in training that knows them all, and is refused without."""
    found = read_examples(source, seed=seed)
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


def _partners(a: Vectors, b: Vectors) -> Scores:
    found = score_translation(a, b, resamples=0)
    return {name: getattr(found, name) for name in ("mean_accuracy", "src2trg_accuracy", "trg2src_accuracy")}
