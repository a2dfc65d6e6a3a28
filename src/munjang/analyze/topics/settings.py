"""How topics are found: one frozen dataclass, checked when it is made."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

from munjang.errors import UsageError, shown
from munjang.wording import brief_repr

Method: TypeAlias = Literal["graph", "kmeans", "hdbscan", "contextual"]
Reduction: TypeAlias = Literal["pca", "umap", "none"]


@brief_repr
@dataclass(frozen=True)
class TopicSettings:
    """What `fit_topics` is asked for."""

    method: Method = "graph"
    """graph: communities of the nearest-neighbour graph, as many as there are; kmeans; hdbscan; contextual: a variational auto-encoder."""
    topics: int | None = None
    """How many topics there shall be at most; None: as many as the method finds."""
    min_size: int = 10
    """The fewest documents of a topic; in small collections it is less."""
    outliers: float = 0.1
    """The largest share of documents that may stay without a topic."""
    reduction: Reduction = "pca"
    """What comes before the grouping. Documents are assigned by the PCA in each case, because it is exact and can be saved."""
    dimensions: int = 200
    """Dimensions that the PCA keeps."""
    words: int = 10
    """Words that describe a topic."""
    diversity: float = 0.2
    """0: the strongest words; towards 1: words that stand in different documents."""
    representatives: int = 3
    """Documents shown for each topic."""
    guides: tuple[tuple[str, ...], ...] = ()
    """Seed words: each group asks for a topic of its own."""
    labels: tuple[str, ...] = ()
    """Zero-shot labels: documents close enough to one form its topic. Needs an encoder."""
    label_similarity: float = 0.35
    """The least cosine of document and label, after the collection's mean is taken off."""
    seed: int = 0

    def __post_init__(self) -> None:
        """Refuse what cannot be meant."""
        _one_of("method", self.method, get_args(Method))
        _one_of("reduction", self.reduction, get_args(Reduction))
        _within("topics", self.topics, 1, None)
        _within("min_size", self.min_size, 1, None)
        _within("outliers", self.outliers, 0, 1)
        _within("dimensions", self.dimensions, 1, None)
        _within("words", self.words, 1, 1_000)
        _within("diversity", self.diversity, 0, 1)
        _within("representatives", self.representatives, 0, 100)
        _within("label_similarity", self.label_similarity, -1, 1)
        if any(not group for group in self.guides):
            raise UsageError("guides: a group of seed words is empty, expected at least one word in each")
        if any(not label.strip() for label in self.labels) or len(set(self.labels)) < len(self.labels):
            raise UsageError("labels: expected different labels, none of them empty")


def _one_of(name: str, value: str, known: Sequence[str]) -> None:
    if value not in known:
        raise UsageError(f"{name}={shown(str(value))} is unknown, expected one of {', '.join(known)}")


def _within(name: str, value: float | None, low: float, high: float | None) -> None:
    if value is not None and not (value >= low and (high is None or value <= high)):
        raise UsageError(f"{name}={value}, expected {f'{low} or more' if high is None else f'a number from {low} to {high}'}")
