"""Clustering: texts with gold classes → k-means over their vectors → V-measure, homogeneity, completeness, ARI, NMI, purity.

k-means and all scores but purity come from scikit-learn (the extra `topics`). Vectors are scaled to length 1 first, so that Euclidean
k-means follows cosine. Several seeds are run and the mean is reported with the spread. Its rules for one class or one cluster hold
(homogeneity is 1 if there is one class, completeness is 1 if there is one cluster). Without rows every answer is nan. Labels may be
anything hashable; a cluster −1 (outliers) is one cluster like any other.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Annotated, Any

import numpy as np

from munjang.data.rows import LabelledText
from munjang.errors import InputError, MissingExtra, UsageError
from munjang.evaluate.bootstrap import to_jsonable
from munjang.evaluate.inputs import IntArray, check_rows, check_same_length
from munjang.options import Option, check_options, default_of
from munjang.types import Encoder, Vectors, check_encoder
from munjang.vectors.similarity import normalize
from munjang.wording import brief_repr


@dataclass(frozen=True)
class PartitionScores:
    """How well found clusters agree with gold classes."""

    v_measure: float
    homogeneity: float
    completeness: float
    ari: float
    nmi: float
    purity: float


def score_partition(gold: Sequence[Any], found: Sequence[Any]) -> PartitionScores:
    """Return all six agreements of `found` with `gold`.

    >>> score_partition(["x", "x", "y"], [1, 1, 0]).v_measure
    1.0
    """
    check_same_length(gold, found, names=("classes", "clusters"))
    if not len(gold):
        return PartitionScores(*[math.nan] * 6)
    metrics = _import_sklearn().metrics
    rows, columns = _number_labels(gold), _number_labels(found)
    homogeneity, completeness, v_measure = metrics.homogeneity_completeness_v_measure(rows, columns)
    return PartitionScores(
        v_measure=float(v_measure),
        homogeneity=float(homogeneity),
        completeness=float(completeness),
        ari=float(metrics.adjusted_rand_score(rows, columns)),
        nmi=float(metrics.normalized_mutual_info_score(rows, columns)),
        purity=float(metrics.cluster.contingency_matrix(rows, columns).max(axis=0).sum() / len(gold)),
    )


def _number_labels(labels: Sequence[Any]) -> IntArray:
    seen: dict[Any, int] = {}
    return np.asarray([seen.setdefault(label, len(seen)) for label in labels], dtype=np.int64)


def _import_sklearn() -> Any:
    try:
        import sklearn.cluster
        import sklearn.metrics
    except ImportError:
        raise MissingExtra("clustering with k-means", "topics") from None
    return sklearn


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
        return dict(to_jsonable({**head, "v_measure_sd": self.v_measure_sd, "seeds": self.seeds}))


def evaluate_clustering(
    encoder: Encoder,
    texts: Sequence[LabelledText],
    *,
    k: Annotated[int | None, Option("Number of clusters. Default: the number of classes.", min=1, flags=("--clusters", "-k"))] = None,
    seeds: Annotated[int, Option("Number of k-means runs to average.", min=1)] = 3,
) -> ClusteringResult:
    """Return how well k-means finds the classes again, over the seeds 0, 1, …; k is their number unless given."""
    check_options(evaluate_clustering, locals())
    texts = check_rows(texts, LabelledText, name="texts")
    check_encoder(encoder)
    if not texts:
        raise InputError("no texts to cluster")
    return score_clustering(encoder.encode([text.text for text in texts]), [text.label for text in texts], k=k, seeds=seeds)


def score_clustering(
    vectors: Vectors, classes: Sequence[str], *, k: int | None = None, seeds: int = default_of(evaluate_clustering, "seeds")
) -> ClusteringResult:
    """Return the scores of vectors already made."""
    check_same_length(vectors, classes, names=("vectors", "classes"))
    count = len(set(classes)) if k is None else k
    if not 1 <= count <= len(classes) or seeds < 1:
        raise UsageError(f"k is {count} with {len(classes)} texts and {seeds} seeds, expected 1 ≤ k ≤ texts and a seed")
    runs = [asdict(score_partition(classes, _run_k_means(vectors, count, seed))) for seed in range(seeds)]
    means = {name: float(np.mean([run[name] for run in runs])) for name in runs[0]}
    spread = float(np.std([run["v_measure"] for run in runs]))
    return ClusteringResult(len(classes), len(set(classes)), count, means, spread, tuple(range(seeds)))


def _run_k_means(vectors: Vectors, k: int, seed: int) -> list[int]:
    rows = normalize(vectors)
    distinct = len(np.unique(rows, axis=0))
    found = _import_sklearn().cluster.KMeans(n_clusters=min(k, distinct), n_init=1, random_state=seed).fit_predict(rows)
    return [int(label) for label in found]
