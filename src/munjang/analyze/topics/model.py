"""What fitting gives: topics, the documents they were made of, and the function that assigns others.

A TopicModel is data. What can be done with it are functions in the other files; each that changes something returns a new model.

Shapes: N documents, R features, P components (prototypes), K topics.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from munjang.analyze.topics.prototypes import Assigner
from munjang.analyze.topics.settings import TopicSettings
from munjang.analyze.topics.topic_words import Bag, compute_diversity
from munjang.errors import UsageError
from munjang.text.unicode import clean
from munjang.types import Ints, Vectors
from munjang.wording import brief_repr, count, name_facts, quote_place

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


@dataclass(frozen=True)
class TopicModel:
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

    def __repr__(self) -> str:
        made = [count(len(self.topics), "topic"), count(len(self.documents), "document"), f"{self.outliers:,} without a topic"]
        return name_facts("TopicModel", [*made, f"method {self.settings.method}", f"encoder {quote_place(self.encoder_name)}"])

    @property
    def labels(self) -> Ints:
        """The topic of each document, −1 for none."""
        return label_documents(self, self.documents.component_N, self.documents.score_N)

    @property
    def outliers(self) -> int:
        """How many documents have no topic."""
        return int((self.labels == OUTLIER).sum())

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
