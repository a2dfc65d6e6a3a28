"""Munjang's own: a collection of texts, and what can be found in it."""

from __future__ import annotations

from munjang.analyze.clusters import cluster
from munjang.analyze.keywords import extract_keywords, find_cluster_phrases
from munjang.analyze.layout import lay_out
from munjang.analyze.pairs import mine_pairs
from munjang.analyze.topics.fitting import fit_topics
from munjang.serve.schemas.base import OwnModel, takes_options

CLUSTERS = {"k": 1_000, "phrases": 50}
"""What the server lowers for clusters."""


class CollectionRequest(OwnModel):
    """Texts to analyse: as they are, or the documents of a library."""

    texts: list[str] | None = None
    library: str | None = None
    model: str | None = None
    """Which of the served models reads the texts; a library has its own."""


@takes_options(mine_pairs, most={"threshold": 1, "top": 100_000})
class PairsRequest(CollectionRequest):
    """Texts to find pairs in."""


@takes_options(cluster, find_cluster_phrases, most=CLUSTERS)
class ClustersRequest(CollectionRequest):
    """Texts to cluster."""


@takes_options(cluster, find_cluster_phrases, lay_out, most=CLUSTERS)
class MapRequest(CollectionRequest):
    """Texts to place on a plane, coloured by cluster."""


@takes_options(extract_keywords, most={"top": 100, "min_words": 10, "max_words": 10, "pool": 1_000, "seed_words": 100})
class KeywordsRequest(OwnModel):
    """Texts to extract keywords from."""

    texts: list[str]
    model: str | None = None


@takes_options(
    fit_topics,
    most={"topics": 1_000, "words": 100, "dimensions": 1_000, "labels": 100, "guides": 100},
    choices={"method": ("graph", "kmeans", "hdbscan"), "reduction": ("pca", "none")},
)
class TopicsRequest(CollectionRequest):
    """Texts whose topics are sought."""


class PairOut(OwnModel):
    """Texts a < b and their cosine."""

    a: int
    b: int
    score: float


class PairsOut(OwnModel):
    """Pairs, best first; identical texts; and the groups that both form."""

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
    """The clusters, and a position for each text: two numbers from 0 to 1."""

    places: list[list[float]]


class KeywordOut(OwnModel):
    """A phrase, its relevance, and its character offsets in the text."""

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
