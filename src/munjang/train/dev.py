"""The dev score of a model in training: one number that decides what is best, and the others beside it.

In: a dev file and an encoder. Scored pairs give Spearman of the cosine, same/different pairs average precision, triplets accuracy, plain
pairs the accuracy of finding the partner. Intervals are left to `munjang evaluate`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from munjang.errors import InputError
from munjang.evaluate.pairs import score_pairs
from munjang.evaluate.sts import score_sts
from munjang.evaluate.translation import score_translation
from munjang.evaluate.triplets import score_triplets
from munjang.train.examples import DataSource, ExampleSet, read_examples
from munjang.types import Encoder, Vectors

Scores: TypeAlias = dict[str, float]


@dataclass(frozen=True)
class DevSet:
    """A dev file, read once."""

    examples: ExampleSet
    name: str

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
        if self.examples.label_kind == "score":
            return "spearman_cosine", score_sts(sides[0], sides[1], labels, resamples=0, worst=0).scores
        if self.examples.label_kind == "binary":
            return "cosine_ap", score_pairs(sides[0], sides[1], [int(label) for label in labels], resamples=0).scores
        if self.examples.columns >= 3:
            return "cosine_accuracy", score_triplets(sides[0], sides[1], sides[2], resamples=0).scores
        return "mean_accuracy", _partners(sides[0], sides[1])


def read_dev(source: DataSource, *, seed: int) -> DevSet:
    """Return a dev set; labels of three classes or more need a classifier and are refused."""
    found = read_examples(source, seed=seed)
    if found.label_kind == "class":
        raise InputError(
            f"{found.source}: a dev file with the classes {', '.join(found.classes[:3])} needs a classifier, and the head is thrown away\n"
            "  name an STS file, same/different pairs, or triplets"
        )
    return DevSet(found, found.source)


def _partners(a: Vectors, b: Vectors) -> Scores:
    found = score_translation(a, b, resamples=0)
    return {name: getattr(found, name) for name in ("mean_accuracy", "src2trg_accuracy", "trg2src_accuracy")}
