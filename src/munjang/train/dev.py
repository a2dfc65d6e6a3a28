"""The dev score of a model in training: one number that decides what is best, and the others beside it.

In: a dev file (or a test file, measured once) and an encoder or a Scorer. Scored pairs give Spearman (of the cosine, or of the score),
same/different pairs average precision, classes accuracy and macro F1. Of an encoder, triplets give accuracy and plain pairs the accuracy of
finding the partner; of a cross-encoder, rows of query, answer and negatives give the share whose answer wins. An encoder's classes are
measured by the classifier that a stage trains beside it: the saved model has no head. Intervals are left to `munjang evaluate`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
import torch

from munjang.engine.pair_head import PairHead
from munjang.errors import InputError, UsageError
from munjang.evaluate.nli import choose_labels, score_nli
from munjang.evaluate.pairs import score_binary, score_pair_vectors
from munjang.evaluate.sts import score_correlations, score_sts
from munjang.evaluate.translation import score_translation
from munjang.evaluate.triplets import score_triplets
from munjang.train.diagnoses import describe_classes, describe_scores
from munjang.train.examples import DataSource, ExampleSet, read_examples
from munjang.train.log import Answers
from munjang.train.objectives.labelled import Classification
from munjang.train.stage import Stage
from munjang.types import Encoder, Scorer, Vectors
from munjang.vectors.similarity import similarity_pairwise

Scores: TypeAlias = dict[str, float]
Role: TypeAlias = Literal["dev", "test"]


class Evaluation(NamedTuple):
    """The name of the number that decides, all numbers, and how much the answers differ where the rows have labels."""

    metric: str
    scores: Scores
    answers: Answers | None = None


@dataclass(frozen=True)
class Classifier:
    """A classification head in training, and the names of its outputs in order."""

    head: Classification
    classes: tuple[str, ...]

    def to_head(self, encoder: str) -> PairHead:
        """Return the head as the engine runs it; `encoder` is the fingerprint of the encoder's folder."""
        weight_KF, bias_K = (tensor.detach().cpu().float().numpy() for tensor in (self.head.head.weight, self.head.head.bias))
        return PairHead(self.classes, self.head.parts, weight_KF, bias_K, encoder)

    def predict(self, u_ND: Vectors, v_ND: Vectors) -> list[str]:
        """Return the most likely class of each pair of vectors."""
        weight = self.head.head.weight
        with torch.no_grad():
            logits_NK = self.head.logits([torch.from_numpy(side).to(weight) for side in (u_ND, v_ND)])
        return choose_labels(logits_NK.cpu().numpy(), self.classes)


def list_classifiers(stage: Stage) -> tuple[Classifier, ...]:
    """Return the classifiers of a stage, one for each classification objective."""
    found: dict[int, Classifier] = {}
    for data in stage.data:
        objective = stage.objectives[data.objective]
        if isinstance(objective, Classification):
            found.setdefault(data.objective, Classifier(objective, data.examples.classes))
    return tuple(found.values())


def find_kept_classifier(stage: Stage) -> Classifier | None:
    """Return the classifier that a stage keeps; None where it keeps none. A stage that trains none, or several, is refused."""
    if not stage.recipe.keep_head:
        return None
    trained = list_classifiers(stage)
    if len(trained) != 1:
        found = f"{len(trained)} classifiers" if trained else "no classifier"
        raise UsageError(
            f"keep_head: the stage trains {found}, expected one\n"
            '  keep_head goes with objective = "classification" and data of the same classes'
        )
    return trained[0]


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
        vectors = _refuse_not_finite(encoder.encode(texts), "vectors")
        sides = [vectors[start : start + count] for start in range(0, len(vectors), count)]
        labels = [example.label or 0.0 for example in self.examples.examples]
        if self.classifier is not None:
            return _score_classes(self.classifier.predict(sides[0], sides[1]), [self.examples.classes[int(label)] for label in labels])
        if self.examples.label_kind == "score":
            scores = score_sts(sides[0], sides[1], labels, resamples=0, worst=0).scores
            return Evaluation("spearman_cosine", replace_nan(scores), _describe_cosines(sides, labels))
        if self.examples.label_kind == "binary":
            scores = score_pair_vectors(sides[0], sides[1], [int(label) for label in labels], resamples=0).scores
            return Evaluation("cosine_ap", replace_nan(scores), _describe_cosines(sides, labels))
        if self.examples.columns >= 3:
            return Evaluation("cosine_accuracy", score_triplets(sides[0], sides[1], sides[2], resamples=0).scores)
        found = score_translation(sides[0], sides[1], resamples=0)
        return Evaluation(
            "mean_accuracy", {name: getattr(found, name) for name in ("mean_accuracy", "src2trg_accuracy", "trg2src_accuracy")}
        )


@dataclass(frozen=True)
class CrossDevSet:
    """A dev or test file, read once, and the cross-encoder's labels."""

    examples: ExampleSet
    labels: tuple[str, ...]

    def score(self, scorer: Scorer) -> Evaluation:
        """Measure a cross-encoder."""
        rows = self.examples.examples
        if self.examples.columns > 2:
            return _score_wins(scorer, [row.texts for row in rows])
        scores = _refuse_not_finite(scorer.predict([(row.texts[0], row.texts[1]) for row in rows]), "scores")
        if len(self.labels) > 1:
            return _score_classes(choose_labels(scores, self.labels), [self.examples.classes[int(row.label or 0)] for row in rows])
        labels = [row.label or 0.0 for row in rows]
        answers = describe_scores(scores, labels, kind="score")
        if self.examples.label_kind == "binary":
            return Evaluation("ap", replace_nan(score_binary(scores, [int(label) for label in labels])), answers)
        return Evaluation("spearman", replace_nan(score_correlations(scores, labels, resamples=0).scores), answers)


def read_dev(source: DataSource, *, seed: int, classifiers: Sequence[Classifier] = (), role: Role = "dev") -> DevSet:
    """Return a dev set of an encoder; one with classes needs a classifier in training that knows them all, and is refused without."""
    found = read_examples(source, seed=seed)
    _refuse_one_label(found, role)
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


def read_cross_dev(source: DataSource, labels: Sequence[str], *, seed: int, role: Role = "dev") -> CrossDevSet:
    """Return a dev set that a cross-encoder with these labels can be measured on; any other is refused."""
    found = read_examples(source, seed=seed)
    unknown = sorted(set(found.classes) - set(labels))
    kinds = "scored pairs, same/different pairs, or triplets"
    if len(labels) == 1:
        _refuse_one_label(found, role)
    if len(labels) > 1 and (found.label_kind not in ("class", "binary") or unknown):
        what = f"the classes {', '.join(unknown[:3])}" if unknown else "no classes"
        raise InputError(f"{found.source}: a {role} file with {what}, the model's labels are {', '.join(labels)}\n  name a file with these")
    if len(labels) == 1 and found.label_kind == "class":
        classes = ", ".join(found.classes[:3])
        raise InputError(f"{found.source}: a {role} file with the classes {classes}, and the model learns one score\n  name {kinds}")
    if len(labels) == 1 and found.label_kind is None and found.columns < 3:
        raise InputError(f"{found.source}: a {role} file of pairs without labels or negatives\n  name {kinds}")
    return CrossDevSet(found, tuple(labels))


def replace_nan(scores: Scores) -> Scores:
    """Return the scores with 0 for those that have no meaning where all answers are equal: such answers order nothing.

    A score that is no number would never be better or worse than another, and fits in no JSON.
    """
    return {name: 0.0 if math.isnan(value) else value for name, value in scores.items()}


def _refuse_one_label(found: ExampleSet, role: Role) -> None:
    """Refuse scored or same/different pairs that all have one label: no order of theirs is better than another."""
    if found.label_kind in ("score", "binary") and len({example.label for example in found.examples}) == 1:
        raise InputError(
            f"{found.source}: every row of the {role} file has the same label, so nothing can be measured on it\n"
            "  name a file whose labels differ, or check which column holds them"
        )


def _refuse_not_finite(values: Vectors, what: str) -> Vectors:
    if not np.isfinite(values).all():
        raise InputError(f"the model gives {what} that are not finite numbers\n  lower the learning rate; the last checkpoint is intact")
    return values


def _score_classes(predicted: Sequence[str], gold: Sequence[str]) -> Evaluation:
    found = score_nli(predicted, gold, resamples=0)
    return Evaluation("accuracy", {"accuracy": found.accuracy, "macro_f1": found.macro_f1}, describe_classes(predicted, gold))


def _score_wins(scorer: Scorer, rows: Sequence[tuple[str, ...]]) -> Evaluation:
    """Measure the share of rows whose first document scores above all others."""
    scores = _refuse_not_finite(scorer.predict([(texts[0], document) for texts in rows for document in texts[1:]]), "scores")
    ends = np.cumsum([len(texts) - 1 for texts in rows])[:-1]
    share = float(np.mean([part[0] > part[1:].max() for part in np.split(scores, ends)]))
    right = [float(place == 0) for texts in rows for place in range(len(texts) - 1)]
    return Evaluation("accuracy", {"accuracy": share}, describe_scores(scores, right, kind="score"))


def _describe_cosines(sides: Sequence[Vectors], labels: Sequence[float]) -> Answers:
    return describe_scores(similarity_pairwise(sides[0], sides[1], metric="cosine"), labels, kind="cosine")
