"""Labels without examples → a TextClassifier, calibrated against the collection that is to be labelled.

A label's vector is the mean of the vectors of its name, its description and its words. Some labels are close to every text ("society"), so
a plain cosine would give them too much; every label's cosines are therefore centred and scaled over the collection. For a small
collection, what the labels say of each other stands in for the texts that are missing. Then the labels move towards the texts that they
fit, a few times (`rounds`), as in k-means with named centres. Rounds and weights were chosen on paraKQC and StyleKQC. The result is a
linear function, as a trained one is.

Shapes: N texts, D dimensions, C labels.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from munjang.analyze.classify.apply import TextLabels, score_rows
from munjang.analyze.classify.classifier import HeldOut, TextClassifier
from munjang.analyze.classify.fitting import HALF, find_vectors
from munjang.analyze.classify.labels import Label, Multi, make_labels
from munjang.analyze.classify.logistic import LinearHead
from munjang.options import Option, check_options
from munjang.text.validate_texts import validate_texts
from munjang.types import Encoder, Vectors, check_encoder
from munjang.vectors.similarity import normalize

ROUNDS = 5
Rounds: TypeAlias = Annotated[int, Option("How often the labels move towards the texts that they fit.", min=0, max=20)]

PRIOR_TEXTS = 20
"""How many texts the labels themselves count as, where a label's usual cosine is sought."""
NAME_TEXTS = 10
"""How many texts a label's own vector counts as, where it moves towards the texts that it fits."""
TEMPERATURE = 0.5
"""Of scores in standard deviations; nothing was held out that could say a better one."""
SAMPLE = 20_000
"""Texts of a collection that are looked at."""


def classify_texts(
    texts: Sequence[str],
    labels: object,
    encoder: Encoder,
    *,
    rounds: Rounds = ROUNDS,
    multi: Multi = False,
    vectors: ArrayLike | None = None,
) -> TextLabels:
    """Return the labels of texts, of which nothing is known but their names, descriptions and typical words.

    >>> classify_texts(["금리가 올랐다"], ["경제", "스포츠"], model)[0].label      # doctest: +SKIP
    '경제'
    """
    texts = validate_texts(texts)
    rows_ND = find_vectors(texts, encoder, vectors) if texts else np.zeros((0, encoder.dimension), dtype=np.float32)
    made = make_classifier(labels, encoder, rounds=rounds, multi=multi, vectors=rows_ND)
    return TextLabels(made.labels, score_rows(made, rows_ND), HALF if multi else 0.0, multi)


def make_classifier(
    labels: object,
    encoder: Encoder,
    *,
    rounds: Rounds = ROUNDS,
    multi: Multi = False,
    vectors: ArrayLike,
) -> TextClassifier:
    """Return a classifier made of labels and of the vectors of a collection, or a sample of it."""
    check_options(make_classifier, locals())
    check_encoder(encoder)
    named = make_labels(labels)
    label_CD = encode_labels(named, encoder)
    rows_ND = np.asarray(vectors, dtype=np.float32).reshape(-1, label_CD.shape[1])
    rows_ND = normalize(rows_ND[:: max(1, -(-len(rows_ND) // SAMPLE))]) if len(rows_ND) else rows_ND
    head = calibrate_labels(label_CD, label_CD, rows_ND)
    for _ in range(rounds if len(rows_ND) > len(named) else 0):
        head = calibrate_labels(_move_labels(label_CD, head, rows_ND), label_CD, rows_ND)
    none, empty = np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.float32)
    return TextClassifier(
        tuple(label.name for label in named),
        head,
        TEMPERATURE,
        multi,
        "labels",
        0.0,
        np.zeros(len(named), dtype=np.int64),
        HeldOut(none, none, none, empty, empty),
        encoder.fingerprint,
        str(getattr(encoder, "name", "")),
    )


def encode_labels(labels: Sequence[Label], encoder: Encoder) -> Vectors:
    """Return one unit vector per label: the mean of the vectors of its name, its description and its words."""
    parts = [[label.name, *([label.description] if label.description.strip() else []), *label.words] for label in labels]
    rows_PD = normalize(np.asarray(encoder.encode([text for each in parts for text in each]), dtype=np.float32))
    starts = np.cumsum([0, *(len(each) for each in parts[:-1])])
    return normalize(np.add.reduceat(rows_PD, starts, axis=0))


def calibrate_labels(centre_CD: Vectors, label_CD: Vectors, rows_ND: Vectors) -> LinearHead:
    """Return scores in standard deviations: each label's cosines, less their mean over the collection, by their spread."""
    among_CC = label_CD @ centre_CD.T
    apart = ~np.eye(len(centre_CD), dtype=bool)
    prior_C = among_CC.mean(axis=0, where=apart)
    cosine_NC = rows_ND @ centre_CD.T
    weight = len(rows_ND) / (len(rows_ND) + PRIOR_TEXTS)
    mean_C = weight * cosine_NC.mean(axis=0) + (1 - weight) * prior_C if len(rows_ND) else prior_C
    spread = float(among_CC.std(where=apart)) or 1.0
    variance_C = np.full(len(centre_CD), max(spread, 1e-3) ** 2)
    if len(rows_ND):
        variance_C = weight * cosine_NC.var(axis=0) + (1 - weight) * variance_C
    deviation_C = np.sqrt(np.maximum(variance_C, 1e-6)).astype(np.float32)
    return LinearHead((centre_CD / deviation_C[:, None]).astype(np.float32), (-mean_C / deviation_C).astype(np.float32))


def _move_labels(label_CD: Vectors, head: LinearHead, rows_ND: Vectors) -> Vectors:
    """Return each label's vector, moved towards the mean of the texts that fit it best."""
    best_N = head.scores(rows_ND).argmax(axis=1)
    moved_CD = label_CD.astype(np.float64) * NAME_TEXTS
    np.add.at(moved_CD, best_N, rows_ND)
    return normalize(moved_CD)
