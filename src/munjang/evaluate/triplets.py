"""Triplets → how often the positive is nearer to the anchor than the negative, for four similarities.

A tie counts as wrong, as in sentence-transformers' TripletEvaluator, whose names are used (`cosine_accuracy`, …).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import numpy as np

from munjang.data.rows import Triplet
from munjang.errors import InputError
from munjang.evaluate.bootstrap import RESAMPLES, NamedScores, Resamples, bootstrap_interval, resample_mean
from munjang.evaluate.inputs import check_rows
from munjang.evaluate.metrics import pair_similarities
from munjang.evaluate.sts import METRICS
from munjang.options import Option, check_options, default_of
from munjang.types import Encoder, Vectors, check_encoder


def evaluate_triplets(
    encoder: Encoder,
    triplets: Sequence[Triplet],
    *,
    margin: Annotated[float, Option("How much closer the positive must be.")] = 0.0,
    resamples: Resamples = RESAMPLES,
    seed: int = 0,
) -> NamedScores:
    """Return an encoder's accuracy; with a margin, the positive must be nearer by more than that."""
    check_options(evaluate_triplets, locals())
    triplets = check_rows(triplets, Triplet, name="triplets")
    check_encoder(encoder)
    if not triplets:
        raise InputError("no triplets to evaluate")
    n = len(triplets)
    texts = [*(t.anchor for t in triplets), *(t.positive for t in triplets), *(t.negative for t in triplets)]
    vectors = encoder.encode(texts)
    return score_triplets(vectors[:n], vectors[n : 2 * n], vectors[2 * n :], margin=margin, resamples=resamples, seed=seed)


def score_triplets(
    anchors: Vectors,
    positives: Vectors,
    negatives: Vectors,
    *,
    margin: float = default_of(evaluate_triplets, "margin"),
    resamples: Resamples = RESAMPLES,
    seed: int = 0,
) -> NamedScores:
    """Return the accuracy of vectors already made. resamples=0 leaves the interval out."""
    right = {}
    for metric in METRICS:
        near = pair_similarities(anchors, positives, metric=metric)
        far = pair_similarities(anchors, negatives, metric=metric)
        right[f"{metric}_accuracy"] = (near > far + margin).astype(np.float64)
    n = len(anchors)
    main = right["cosine_accuracy"]
    ci95 = {"cosine_accuracy": bootstrap_interval(resample_mean(main), n, resamples=resamples, seed=seed)} if resamples else {}
    return NamedScores(n, {name: float(column.mean()) if n else float("nan") for name, column in right.items()}, ci95)
