"""Clustering: texts with gold classes → k-means over their vectors → V-measure and its like.

k-means comes from scikit-learn (the extra `topics`). Vectors are scaled to length 1 first, so that Euclidean k-means follows cosine.
Several seeds are run and the mean is reported with the spread, since k-means depends on its start.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from munjang.errors import InputError, MissingExtra, UsageError
from munjang.evaluate.datasets.rows import LabelledText
from munjang.evaluate.inputs import same_length, typed_rows
from munjang.evaluate.partition import partition_scores
from munjang.evaluate.result import jsonable
from munjang.types import Encoder, Vectors, check_encoder
from munjang.vectors.similarity import normalize
from munjang.wording import brief_repr


@brief_repr
@dataclass(frozen=True)
class ClusteringResult:
    """Mean agreement of k-means with the gold classes over several seeds, and the standard deviation of V-measure."""

    n: int
    classes: int
    k: int
    scores: dict[str, float]
    v_measure_sd: float
    seeds: tuple[int, ...]

    def to_json(self) -> dict[str, Any]:
        """Return counts and every score by name."""
        head = {"n": self.n, "classes": self.classes, "k": self.k, **self.scores}
        return dict(jsonable({**head, "v_measure_sd": self.v_measure_sd, "seeds": self.seeds}))


def evaluate_clustering(
    encoder: Encoder, texts: Sequence[LabelledText], *, k: int | None = None, seeds: Sequence[int] = (0, 1, 2)
) -> ClusteringResult:
    """Return how well k-means finds the classes again; k is their number unless given."""
    texts = typed_rows(texts, LabelledText, name="texts")
    check_encoder(encoder)
    if not texts:
        raise InputError("no texts to cluster")
    return score_clustering(encoder.encode([text.text for text in texts]), [text.label for text in texts], k=k, seeds=seeds)


def score_clustering(
    vectors: Vectors, classes: Sequence[str], *, k: int | None = None, seeds: Sequence[int] = (0, 1, 2)
) -> ClusteringResult:
    """Return the scores of vectors already made."""
    same_length(vectors, classes, names=("vectors", "classes"))
    count = len(set(classes)) if k is None else k
    if not 1 <= count <= len(classes) or not seeds:
        raise UsageError(f"k is {count} with {len(classes)} texts and {len(seeds)} seeds, expected 1 ≤ k ≤ texts and a seed")
    runs = [asdict(partition_scores(classes, _k_means(vectors, count, seed))) for seed in seeds]
    means = {name: float(np.mean([run[name] for run in runs])) for name in runs[0]}
    spread = float(np.std([run["v_measure"] for run in runs]))
    return ClusteringResult(len(classes), len(set(classes)), count, means, spread, tuple(seeds))


def _k_means(vectors: Vectors, k: int, seed: int) -> list[int]:
    try:
        from sklearn.cluster import KMeans
    except ImportError:
        raise MissingExtra("clustering with k-means", "topics") from None
    rows = normalize(vectors)
    distinct = len(np.unique(rows, axis=0))
    found = KMeans(n_clusters=min(k, distinct), n_init=1, random_state=seed).fit_predict(rows)
    return [int(label) for label in found]
