"""Munjang's own: a collection of texts, and what can be found in it."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from munjang.serve.schemas.base import OwnModel


class CollectionRequest(OwnModel):
    """Texts to analyse: as they are, or the documents of a library."""

    texts: list[str] | None = None
    library: str | None = None


class PairsRequest(CollectionRequest):
    """Texts among which pairs of nearly the same meaning are sought."""

    threshold: float = Field(default=0.8, ge=-1, le=1)
    top: int = Field(default=1_000, ge=1, le=100_000)
    max_overlap: float | None = Field(default=None, ge=0, le=1)
    """Pairs that share a larger part of their words do not count."""
    numbers: bool = False
    """Pairs whose numbers, units, model codes or variants (Pro, Mini) differ do not count."""


class ClustersRequest(CollectionRequest):
    """Texts to put into clusters."""

    method: Literal["kmeans", "agglomerative", "communities", "hdbscan"] = "kmeans"
    k: int | None = Field(default=None, ge=1, le=1_000)
    threshold: float = Field(default=0.75, ge=-1, le=1)
    min_size: int = Field(default=10, ge=1)
    seed: int = Field(default=0, ge=0, le=2**32 - 1)
    phrases: int = Field(default=5, ge=1, le=50)
    """Phrases that name a cluster."""


class MapRequest(ClustersRequest):
    """Texts to place on a plane, coloured by cluster."""

    layout: Literal["auto", "pca", "tsne", "umap"] = "auto"


class KeywordsRequest(OwnModel):
    """Texts whose keywords are sought."""

    texts: list[str]
    top: int = Field(default=5, ge=1, le=100)
    min_words: int = Field(default=1, ge=1, le=10)
    max_words: int = Field(default=3, ge=1, le=10)
    choice: Literal["mmr", "max-sum", "nearest"] = "mmr"
    diversity: float = Field(default=0.3, ge=0, le=1)
    seed_words: list[str] = Field(default_factory=list, max_length=100)
    min_frequency: int = Field(default=1, ge=1)


class TopicsRequest(CollectionRequest):
    """Texts whose topics are sought."""

    method: Literal["graph", "kmeans", "hdbscan"] = "graph"
    topics: int | None = Field(default=None, ge=1, le=1_000)
    min_size: int = Field(default=10, ge=1)
    outliers: float = Field(default=0.1, ge=0, le=1)
    words: int = Field(default=10, ge=1, le=100)
    diversity: float = Field(default=0.2, ge=0, le=1)
    labels: list[str] = Field(default_factory=list, max_length=100)
    """Topics that are wanted, in words."""
    seed: int = Field(default=0, ge=0, le=2**32 - 1)


class PairOut(OwnModel):
    """Texts a < b and their cosine."""

    a: int
    b: int
    score: float


class PairsOut(OwnModel):
    """Pairs, best first; texts that are the very same; and the groups that both tie together."""

    pairs: list[PairOut]
    same: list[list[int]]
    groups: list[list[int]]
    cut: bool
    """There are more pairs than were asked for."""
    ids: list[str] | None
    """The documents' ids where a library was analysed."""
    texts: list[str]
    """The beginning of each text."""
    truncated: list[int]


class ClusterOut(OwnModel):
    """One cluster."""

    label: int
    size: int
    phrases: list[str]


class ClustersOut(OwnModel):
    """Each text's cluster, −1 for none; and the clusters, the largest first."""

    labels: list[int]
    clusters: list[ClusterOut]
    outliers: int
    silhouette: float | None
    ids: list[str] | None
    texts: list[str]
    truncated: list[int]


class MapOut(ClustersOut):
    """The clusters, and a place for each text: two numbers from 0 to 1."""

    places: list[list[float]]


class KeywordOut(OwnModel):
    """A phrase, how close it is to its text, and where it stands there, in characters."""

    text: str
    score: float
    places: list[list[int]]


class KeywordsOut(OwnModel):
    """Each text's keywords, in the order in which they were chosen."""

    keywords: list[list[KeywordOut]]
    texts: list[str]
    """The texts in NFC, which places count in."""


class WordOut(OwnModel):
    """A word and its weight."""

    word: str
    weight: float


class TopicOut(OwnModel):
    """One topic."""

    id: int
    name: str
    size: int
    words: list[WordOut]
    documents: list[int]
    """The most typical texts."""
    coherence: float


class TopicsOut(OwnModel):
    """Each text's topic, −1 for none; and the topics, the largest first."""

    labels: list[int]
    topics: list[TopicOut]
    outliers: int
    coherence: float
    diversity: float
    ids: list[str] | None
    texts: list[str]
    truncated: list[int]
