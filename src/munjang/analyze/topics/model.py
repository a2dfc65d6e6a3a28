"""What fitting gives: topics, the documents they were made of, what was asked for, and the function that assigns others.

A TopicModel is data. What can be done with it are functions in the other files; each that changes something returns a new model.

A vector belongs to the nearest of a few centres (prototypes) in the space of a projection. This is how every document gets its topic, those
that the topics were made of included: what a fitted model says and what a saved one says of the same vector are the answers of the same
function. Several centres may stand for one topic, so that topics can be merged without moving any other document.

Shapes: N documents or rows, D dimensions, R features or reduced dimensions, P prototypes, K topics.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Literal, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from munjang.analyze.topics.groups import Projection
from munjang.analyze.topics.topic_words import Bag, compute_diversity
from munjang.errors import UsageError
from munjang.tables import Row, Table
from munjang.text.unicode import clean
from munjang.types import Floats, Ints, Vectors
from munjang.wording import brief_repr, count, name_facts, quote_place

FENCE = 1.5
NO_FLOOR = -2.0
"""Below every cosine."""


def find_outlier_floors(
    component_N: Ints, score_N: Floats, prototypes: int, *, share: float, core_N: NDArray[np.bool_] | None = None
) -> NDArray[np.float64]:
    """Return each prototype's floor, such that at most `share` of the documents lie below theirs.

    `core_N` says which documents set the norm; without it, all do.
    """
    low_P, spread_P = np.zeros(prototypes), np.zeros(prototypes)
    for prototype in range(prototypes):
        held = component_N == prototype
        typical = score_N[held & core_N] if core_N is not None and (held & core_N).any() else score_N[held]
        if len(typical):
            low, high = np.quantile(typical.astype(np.float64), [0.25, 0.75])
            low_P[prototype], spread_P[prototype] = low, max(high - low, 1e-4)
    depth_N = (low_P[component_N] - score_N) / spread_P[component_N] if len(component_N) else np.zeros(0)
    floors: NDArray[np.float64] = low_P - _find_fence(depth_N, int(share * len(depth_N))) * spread_P
    return np.maximum(floors, NO_FLOOR)


def _find_fence(depth_N: Floats, allowed: int) -> float:
    deepest = np.sort(depth_N)[::-1]
    if allowed >= len(deepest):
        return FENCE
    beyond = float(deepest[allowed])
    # Half-way between two documents, so that no document lies on the fence.
    clear = beyond + 1.0 if allowed == 0 else (beyond + float(deepest[allowed - 1])) / 2
    return max(FENCE, clear)


_BLOCK = 8_192  # rows scored at once


class Assigner(Protocol):
    """Turns vectors into features, and features into the nearest component."""

    @property
    def dimension(self) -> int:
        """How many numbers a vector must have."""
        ...

    @property
    def centres_PR(self) -> Vectors:
        """The features that stand for each component."""
        ...

    def features(self, vectors_ND: Vectors, /) -> Vectors:
        """Return what decides, (N, R)."""
        ...

    def scores(self, rows_NR: Vectors, /) -> Vectors:
        """Return how well each row fits each component, (N, P)."""
        ...


@dataclass(frozen=True)
class Prototypes:
    """A projection and unit centres in its space; scores are cosines."""

    projection: Projection
    centres_PR: Vectors

    @property
    def dimension(self) -> int:
        """How many numbers a vector must have."""
        return len(self.projection.mean_D)

    def features(self, vectors_ND: Vectors, /) -> Vectors:
        """Return unit rows in the reduced space."""
        return self.projection.apply(vectors_ND)

    def scores(self, rows_NR: Vectors, /) -> Vectors:
        """Return the cosine of each row with each centre."""
        return rows_NR @ self.centres_PR.T


def find_nearest(assigner: Assigner, rows_NR: Vectors) -> tuple[Ints, Vectors]:
    """Return the best component of each row and its score; equal scores go to the lower component."""
    component_N = np.zeros(len(rows_NR), dtype=np.int64)
    score_N = np.zeros(len(rows_NR), dtype=np.float32)
    for start in range(0, len(rows_NR), _BLOCK):
        scores_NP = assigner.scores(rows_NR[start : start + _BLOCK])
        best_N = scores_NP.argmax(axis=1)
        component_N[start : start + _BLOCK] = best_N
        score_N[start : start + _BLOCK] = np.take_along_axis(scores_NP, best_N[:, None], axis=1)[:, 0]
    return component_N, score_N


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


OUTLIER = -1
"""The label of a document without a topic."""
EXCERPT = 200
"""Characters of a document that a model keeps."""


@brief_repr
@dataclass(frozen=True)
class Topic:
    """One topic."""

    id: int
    name: str
    words: tuple[tuple[str, float], ...]
    """Strongest first, with their weights."""
    size: int
    documents: tuple[int, ...]
    """Rows of the most typical documents, different texts each."""
    coherence: float
    """NPMI of the words."""


@brief_repr
@dataclass(frozen=True)
class Documents:
    """What a model keeps of the documents it was fitted on."""

    keys_N: NDArray[np.uint64]
    """A hash of each text, by which it is known again."""
    rows_NR: Vectors
    component_N: Ints
    score_N: Vectors
    excerpts: tuple[str, ...]

    def __len__(self) -> int:
        """How many documents."""
        return len(self.keys_N)


@brief_repr
@dataclass(frozen=True, eq=False)
class Streamed:
    """What was counted over more documents than a model keeps."""

    documents: int
    size_P: Ints
    """Documents of each component that have its topic."""
    words: Bag
    """The words of these documents; a row for each component."""
    place_N: Ints
    """Where the documents that the model keeps stand among all."""


@brief_repr
@dataclass(frozen=True)
class Assigned(Table):
    """Topics of texts: −1 for none; the score says how well a text fits the nearest topic, whether or not that is enough."""

    columns: ClassVar[tuple[str, ...]] = ("topic", "name", "score")

    labels: Ints
    scores: Vectors
    names: dict[int, str] = field(default_factory=dict)
    """The names of the topics."""

    def to_rows(self) -> list[Row]:
        """Return the topic, its name and the score of each text; a text without a topic has no name."""
        found = zip(self.labels.tolist(), self.scores.tolist(), strict=True)
        return [{"topic": topic, "name": self.names.get(topic), "score": score} for topic, score in found]


@dataclass(frozen=True)
class TopicModel(Table):
    """Topics and how they were found."""

    settings: TopicSettings
    encoder: str
    """Fingerprint of the encoder; empty where vectors were handed in."""
    tagger: str
    assigner: Assigner
    floors_P: NDArray[np.float64]
    """A document that fits its component less than this has no topic."""
    topic_P: Ints
    """The topic of each component."""
    bag: Bag
    documents: Documents
    topics: tuple[Topic, ...]
    """The largest first."""
    names: Mapping[int, str] = field(default_factory=dict)
    """Names that were given, not made of words."""
    encoder_name: str = ""
    """What the encoder was called where the topics were found, for people and for the command line."""
    streamed: Streamed | None = None
    """Where the documents that the model keeps are a sample of more: figures of all of them."""

    def __repr__(self) -> str:
        made = [count(len(self.topics), "topic"), count(self.size, "document"), f"{self.outliers:,} without a topic"]
        return name_facts("TopicModel", [*made, f"method {self.settings.method}", f"encoder {quote_place(self.encoder_name)}"])

    bars: ClassVar[tuple[str, ...]] = ("size", "coherence")
    columns: ClassVar[tuple[str, ...]] = ("topic", "name", "size", "coherence", "words")

    def to_rows(self) -> list[Row]:
        """Return the topics, the largest first."""
        return [
            {"topic": each.id, "name": each.name, "size": each.size, "coherence": each.coherence, "words": [word for word, _ in each.words]}
            for each in self.topics
        ]

    @property
    def assigned(self) -> Assigned:
        """The topic of each document, and how well it fits."""
        return Assigned(self.labels, self.documents.score_N, self.topic_names)

    @property
    def topic_names(self) -> dict[int, str]:
        """The name of each topic."""
        return {topic.id: topic.name for topic in self.topics}

    @property
    def labels(self) -> Ints:
        """The topic of each document, −1 for none."""
        return label_documents(self, self.documents.component_N, self.documents.score_N)

    @property
    def size(self) -> int:
        """How many documents the topics were found in."""
        return len(self.documents) if self.streamed is None else self.streamed.documents

    @property
    def size_P(self) -> Ints:
        """How many documents of each component have its topic."""
        if self.streamed is not None:
            return self.streamed.size_P
        held_N = self.labels != OUTLIER
        return np.bincount(self.documents.component_N[held_N], minlength=len(self.topic_P))

    @property
    def outliers(self) -> int:
        """How many documents have no topic."""
        return self.size - int(self.size_P.sum())

    def row_number(self, document: int) -> int:
        """Return the row of a kept document among all, from 1."""
        return 1 + (document if self.streamed is None else int(self.streamed.place_N[document]))

    @property
    def coherence(self) -> float:
        """Mean NPMI of the topics."""
        return float(np.mean([topic.coherence for topic in self.topics])) if self.topics else 0.0

    @property
    def diversity(self) -> float:
        """Share of different words among the words of all topics."""
        return compute_diversity([[word for word, _ in topic.words] for topic in self.topics])

    def topic(self, id: int) -> Topic:
        """Return a topic by its number."""
        found = next((topic for topic in self.topics if topic.id == id), None)
        if found is None:
            known = ", ".join(str(topic.id) for topic in sorted(self.topics, key=lambda topic: topic.id)[:20])
            raise UsageError(f"topic {id}: there is none, expected one of {known}{', …' if len(self.topics) > 20 else ''}")
        return found


def label_documents(model: TopicModel, component_N: Ints, score_N: Vectors) -> Ints:
    """Return the topics of documents from their components and scores."""
    return np.where(score_N >= model.floors_P[component_N], model.topic_P[component_N], OUTLIER)


def make_text_keys(texts: Sequence[str]) -> NDArray[np.uint64]:
    """Return a hash of each text; texts that look alike (NFC, NFD) have the same."""
    found = (hashlib.blake2b(clean(text).encode(), digest_size=8).digest() for text in texts)
    return np.frombuffer(b"".join(found), dtype="<u8").astype(np.uint64)


def excerpt(text: str) -> str:
    """Return the beginning of a text on one line."""
    line = " ".join(clean(text[: 4 * EXCERPT]).split())
    return line if len(line) <= EXCERPT else line[: EXCERPT - 1] + "…"
