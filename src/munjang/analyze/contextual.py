"""A bag of words and sentence vectors → a contextual topic model: the second way to find topics.

A variational auto-encoder (`contextual_network`) learns to give back a document's words from its words and its vector together. In every
second batch the words are hidden, so that the vector alone is enough: a document in another language has a topic too, if the vectors are
multilingual, and documents are assigned by vectors alone like everywhere else. Topics start at the words of k-means groups of the vectors,
because from a random start they end in worse places. Seeded; no torch.

Shapes: N documents, D dimensions, V words of the bag, W words that are given back, K topics, I = W + D inputs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from munjang.analyze.contextual_network import Adam, Array, Batch, Weights, followed, gradients, mixtures, new_weights, softmax
from munjang.analyze.topics.bag import Bag
from munjang.analyze.topics.kmeans import kmeans
from munjang.analyze.topics.reduce import unit_rows
from munjang.errors import InputError
from munjang.types import Floats, Ints, Vectors
from munjang.vectors.similarity import prepared

WORDS = 2_000
"""Words that the network gives back: those in most documents, but not in more than half."""
HIDDEN, BATCH, STEPS, RATE = 100, 128, 1_200, 5e-3
DROPOUT = 0.2
SMOOTHING = np.float32(10)
"""Added to how often a word stands in a group and to how often it should, where topics start: what is rare proves little."""
RELEVANCE = 0.6
"""How far a word's frequency counts among a topic's words: 1 is its share of the topic, 0 only how much more often it stands there than
elsewhere. The value that readers did best with (Sievert and Shirley 2014): words that every topic has say nothing of any."""
TOPICS = 20
"""Topics where no number is given."""


@dataclass(frozen=True)
class ContextualTopics:
    """A trained network as an assigner: features are topic mixtures, and a document's component is its largest share."""

    words: tuple[str, ...]
    weights: Mapping[str, Array]
    centre_D: Array
    scale: float
    norm_mean_K: Array
    norm_variance_K: Array
    background_W: Array
    """The logarithm of each word's share of all words."""

    @property
    def dimension(self) -> int:
        """How many numbers a vector must have."""
        return len(self.centre_D)

    @property
    def centres_PR(self) -> Vectors:
        """A document that is about one topic only, for each topic."""
        return np.eye(len(self.norm_mean_K), dtype=np.float32)

    def features(self, vectors_ND: Vectors, /) -> Vectors:
        """Return the topic mixture of each vector."""
        return self.mixtures(vectors_ND)

    def scores(self, rows_NR: Vectors, /) -> Vectors:
        """Return the mixtures themselves."""
        return rows_NR

    def mixtures(self, vectors_ND: Vectors, bag: Bag | None = None) -> Vectors:
        """Return how much of each document is about each topic, by its vector and, if handed in, by its words."""
        shown_NW = np.zeros((len(vectors_ND), len(self.words)), dtype=np.float32) if bag is None else dense_counts(bag, self.words)
        inputs_NI = _inputs(_loud(shown_NW), _vector_inputs(vectors_ND, self.centre_D, self.scale))
        return mixtures(dict(self.weights), inputs_NI, self.norm_mean_K, self.norm_variance_K).astype(np.float32)

    def word_weights(self, vocabulary: Sequence[str]) -> Floats:
        """Return the weight of each word of a vocabulary in each topic, (K, V); they sum to 1 over the words that the network knows."""
        column = {word: place for place, word in enumerate(self.words)}
        places = np.array([column.get(word, -1) for word in vocabulary], dtype=np.int64)
        weights_KV = softmax(RELEVANCE * self.background_W + self.weights["topics"])[:, places]
        return np.where(places >= 0, weights_KV, 0.0)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return what is saved."""
        return {
            **{f"weights_{name}": array for name, array in self.weights.items()},
            "centre": self.centre_D,
            "scale": np.array([self.scale], dtype=np.float64),
            "norm_mean": self.norm_mean_K,
            "norm_variance": self.norm_variance_K,
            "background": self.background_W,
        }

    @classmethod
    def from_arrays(cls, words: Sequence[str], arrays: Mapping[str, NDArray[Any]]) -> ContextualTopics:
        """Return what was saved."""
        weights = {name.removeprefix("weights_"): array for name, array in arrays.items() if name.startswith("weights_")}
        rest = (arrays[name] for name in ("norm_mean", "norm_variance", "background"))
        return cls(tuple(words), weights, arrays["centre"], float(arrays["scale"][0]), *rest)


def fit_contextual(bag: Bag, vectors_ND: Vectors, *, topics: int | None = None, seed: int = 0, steps: int = STEPS) -> ContextualTopics:
    """Train the network; one row of vectors for each document of the bag."""
    words = _frequent(bag)
    if len(bag) < 2 or not words:
        raise InputError(
            f"{len(bag)} documents with {len(words)} words that recur: too few for a contextual topic model\n  use the method graph"
        )
    count = min(topics or TOPICS, len(bag))
    counts_NW = dense_counts(bag, words)
    unit_ND = prepared(vectors_ND, "cosine")
    centre_D = unit_ND.mean(axis=0)
    scale = float(1 / max((unit_ND - centre_D).std(), 1e-6))
    inputs_NI = _inputs(_loud(counts_NW), _vector_inputs(vectors_ND, centre_D, scale))
    totals_W = counts_NW.sum(axis=0, dtype=np.float64)
    background_W = np.log(totals_W / totals_W.sum()).astype(np.float32)
    random = np.random.default_rng(seed)
    weights = new_weights(inputs_NI.shape[1], HIDDEN, count, len(words), random)
    groups_N = kmeans(unit_rows(unit_ND - centre_D), count, seed=seed)
    weights["topics"] += _lifts(counts_NW, background_W, groups_N, count)
    mean_K, variance_K = _train(weights, inputs_NI, counts_NW, background_W, random, steps)
    return ContextualTopics(words, weights, centre_D, scale, mean_K, variance_K, background_W)


def _train(
    weights: Weights, inputs_NI: Array, counts_NW: Array, background_W: Array, random: np.random.Generator, steps: int
) -> tuple[Array, Array]:
    """Change the weights in place and return the batch norm's mean and variance."""
    topics, words = weights["topics"].shape
    adam = Adam(RATE)
    running: tuple[Array, Array] | None = None
    size = min(BATCH, len(inputs_NI))
    order = np.zeros(0, dtype=np.int64)
    for step in range(steps):
        if len(order) < size:
            order = random.permutation(len(inputs_NI))
        rows, order = order[:size], order[size:]
        inputs_BI = inputs_NI[rows]
        if step % 2:
            inputs_BI[:, :words] = 0
        noise_BK = random.standard_normal((size, topics), dtype=np.float32)
        kept_BH = (random.random((size, HIDDEN), dtype=np.float32) >= DROPOUT).astype(np.float32) / np.float32(1 - DROPOUT)
        _, found, seen = gradients(weights, Batch(inputs_BI, counts_NW[rows], background_W, noise_BK, kept_BH))
        adam.rate = RATE * (1 - 0.9 * step / steps)
        adam.move(weights, found)
        if step % 2:  # documents are assigned with their words hidden, so the norm is that of such batches
            running = followed(running, seen)
    return running or seen


def _lifts(counts_NW: Array, background_W: Array, groups_N: Ints, groups: int) -> Array:
    """Return how much more often each word stands in a group than anywhere, as a logarithm: where topics start, (K, W)."""
    held_KW = np.stack([counts_NW[groups_N == group].sum(axis=0) for group in range(groups)])
    expected_KW = held_KW.sum(axis=1, keepdims=True) * np.exp(background_W)
    lifts_KW: Array = np.log((held_KW + SMOOTHING) / (expected_KW + SMOOTHING))
    return lifts_KW


def _frequent(bag: Bag) -> tuple[str, ...]:
    held_V = bag.document_counts()
    usable = np.flatnonzero((held_V <= max(1, len(bag) / 2)) & (held_V >= (2 if len(bag) >= 20 else 1)))
    order = usable[np.argsort(-held_V[usable], kind="stable")][:WORDS]
    return tuple(sorted(bag.vocabulary[place] for place in order))


def dense_counts(bag: Bag, words: Sequence[str]) -> Array:
    """Return how often each document holds each of these words, (N, W)."""
    column = {word: place for place, word in enumerate(words)}
    places_V = np.array([column.get(word, -1) for word in bag.vocabulary] or [-1], dtype=np.int64)
    at_E, rows_E = places_V[bag.terms], bag.rows()
    counts_NW = np.zeros((len(bag), len(words)), dtype=np.float32)
    counts_NW[rows_E[at_E >= 0], at_E[at_E >= 0]] = bag.counts[at_E >= 0]
    return counts_NW


def _loud(counts_NW: Array) -> Array:
    """Return counts as rows of one length, so that long documents do not shout; documents without words stay zeros."""
    logs_NW = np.log1p(counts_NW)
    loud_NW: Array = logs_NW / np.maximum(np.linalg.norm(logs_NW, axis=1, keepdims=True), 1e-6) * np.float32(10)
    return loud_NW


def _vector_inputs(vectors_ND: Vectors, centre_D: Array, scale: float) -> Array:
    scaled_ND: Array = ((prepared(vectors_ND, "cosine") - centre_D) * scale).astype(np.float32)
    return scaled_ND


def _inputs(words_NW: Array, vectors_ND: Array) -> Array:
    return np.concatenate([words_NW, vectors_ND], axis=1)
