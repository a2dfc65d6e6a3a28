"""How topics were asked for: what `fit_topics` was called with, kept in the model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from munjang.errors import UsageError
from munjang.wording import brief_repr

Method: TypeAlias = Literal["graph", "kmeans", "hdbscan", "contextual"]
Reduction: TypeAlias = Literal["pca", "umap", "none"]


@brief_repr
@dataclass(frozen=True)
class TopicSettings:
    """What `fit_topics` was asked for; its signature explains each and has the defaults and bounds."""

    method: Method
    topics: int | None
    min_size: int
    outliers: float
    reduction: Reduction
    dimensions: int
    words: int
    diversity: float
    representatives: int
    guides: tuple[tuple[str, ...], ...]
    labels: tuple[str, ...]
    label_similarity: float
    seed: int

    def __post_init__(self) -> None:
        """Refuse wanted topics that say nothing."""
        if any(not group for group in self.guides):
            raise UsageError("guides: a group of seed words is empty, expected at least one word in each")
        if any(not label.strip() for label in self.labels) or len(set(self.labels)) < len(self.labels):
            raise UsageError("labels: expected different labels, none of them empty")
