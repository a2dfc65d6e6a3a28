"""A bag of words and sentence vectors → a contextual topic model: the second way to find topics.

A variational auto-encoder (`contextual_network`) learns to give back a document's words from its words and its vector together. In every
second batch the words are hidden, so that the vector alone is enough: a document in another language has a topic too, if the vectors are
multilingual, and documents are assigned by vectors alone like everywhere else. Topics start at the words of k-means groups of the vectors,
because from a random start they end in worse places. Seeded; no torch.

Shapes: N documents, D dimensions, V words of the bag, W words that are given back, K topics, I = W + D inputs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from munjang.analyze.topics.groups import normalize_rows, run_kmeans
from munjang.analyze.topics.topic_words import Bag
from munjang.errors import InputError
from munjang.types import Floats, Ints, Vectors
from munjang.vectors.similarity import prepare_rows

Array = NDArray[np.float32]
Weights = dict[str, Array]

_EPSILON = 1e-5
_MOMENTUM = 0.1  # share of a batch in the running mean and variance


@dataclass(frozen=True)
class WordBatch:
    """Inputs, the words to give back, and this step's randomness, drawn outside."""

    inputs_BI: Array
    counts_BV: Array
    background_V: Array
    """The logarithm of each word's share of the whole collection."""
    noise_BK: Array
    kept_BH: Array
    """Dropout: 0, or 1 over the share that is kept."""


def make_weights(inputs: int, hidden: int, topics: int, words: int, random: np.random.Generator) -> Weights:
    """Draw starting weights."""

    def draw(rows: int, columns: int) -> Array:
        made: Array = (random.standard_normal((rows, columns)) * np.sqrt(2 / (rows + columns))).astype(np.float32)
        return made

    return {
        "hidden": draw(inputs, hidden),
        "hidden_bias": np.zeros(hidden, dtype=np.float32),
        "mean": draw(hidden, topics),
        "spread": draw(hidden, topics),
        "topics": draw(topics, words),
    }


def compute_gradients(weights: Weights, batch: WordBatch) -> tuple[float, Weights, tuple[Array, Array]]:
    """Return the loss per document, its gradients, and the mean and variance that the means of the mixtures had."""
    count, topics = batch.noise_BK.shape
    prior = 1 - 1 / topics  # variance of the Laplace approximation to a flat Dirichlet
    before_BH = batch.inputs_BI @ weights["hidden"] + weights["hidden_bias"]
    hidden_BH = np.logaddexp(before_BH, 0) * batch.kept_BH
    mean_BK, mean_norm = _normalize(hidden_BH @ weights["mean"])
    spread_BK, spread_norm = _normalize(hidden_BH @ weights["spread"])
    sigma_BK: Array = np.exp(spread_BK / np.float32(2))
    mixture_BK = softmax(mean_BK + sigma_BK * batch.noise_BK)
    shares_BV = softmax(batch.background_V + mixture_BK @ weights["topics"])
    lengths_B1 = batch.counts_BV.sum(axis=1, keepdims=True)

    rebuilt = -(batch.counts_BV * np.log(shares_BV + 1e-12)).sum()
    apart = 0.5 * (sigma_BK**2 / prior + mean_BK**2 / prior - 1 + np.log(prior) - spread_BK).sum()

    d_logits_BV = (shares_BV * lengths_B1 - batch.counts_BV) / np.float32(count)
    d_mixture_BK = d_logits_BV @ weights["topics"].T
    d_drawn_BK = mixture_BK * (d_mixture_BK - (d_mixture_BK * mixture_BK).sum(axis=1, keepdims=True))
    d_mean_BK = _normalize_backward(d_drawn_BK + mean_BK / prior / count, mean_BK, mean_norm)
    d_spread_BK = d_drawn_BK * batch.noise_BK * sigma_BK / 2 + (sigma_BK**2 / prior - 1) / 2 / count
    d_spread_BK = _normalize_backward(d_spread_BK, spread_BK, spread_norm)
    d_hidden_BH = (d_mean_BK @ weights["mean"].T + d_spread_BK @ weights["spread"].T) * batch.kept_BH / (1 + np.exp(-before_BH))
    found = {
        "hidden": batch.inputs_BI.T @ d_hidden_BH,
        "hidden_bias": d_hidden_BH.sum(axis=0),
        "mean": hidden_BH.T @ d_mean_BK,
        "spread": hidden_BH.T @ d_spread_BK,
        "topics": mixture_BK.T @ d_logits_BV,
    }
    return float((rebuilt + apart) / count), found, mean_norm


def compute_mixtures(weights: Weights, inputs_BI: Array, mean_K: Array, variance_K: Array) -> Array:
    """Return the topic mixture of documents, without randomness, by the running mean and variance of the batch norm."""
    hidden_BH = np.logaddexp(inputs_BI @ weights["hidden"] + weights["hidden_bias"], 0)
    return softmax((hidden_BH @ weights["mean"] - mean_K) / np.sqrt(variance_K + _EPSILON))


def softmax(rows_BK: Array) -> Array:
    """Return rows that sum to 1."""
    powers_BK = np.exp(rows_BK - rows_BK.max(axis=1, keepdims=True))
    shares_BK: Array = powers_BK / powers_BK.sum(axis=1, keepdims=True)
    return shares_BK


@dataclass
class Adam:
    """Adam's state."""

    rate: float
    decay: tuple[float, float] = (0.95, 0.999)
    step: int = 0
    first: Weights = field(default_factory=dict)
    second: Weights = field(default_factory=dict)

    def move(self, weights: Weights, found: Weights) -> None:
        """Change the weights in place."""
        self.step += 1
        low, high = self.decay
        rate = float(self.rate * np.sqrt(1 - high**self.step) / (1 - low**self.step))  # a numpy number would make everything float64
        for name, gradient in found.items():
            first = self.first.setdefault(name, np.zeros_like(gradient))
            second = self.second.setdefault(name, np.zeros_like(gradient))
            first += (1 - low) * (gradient - first)
            second += (1 - high) * (gradient**2 - second)
            weights[name] -= rate * first / (np.sqrt(second) + 1e-8)


def update_averages(running: tuple[Array, Array] | None, seen: tuple[Array, Array]) -> tuple[Array, Array]:
    """Return the running mean and variance, moved towards a batch's."""
    mean, variance = running or seen
    return mean + _MOMENTUM * (seen[0] - mean), variance + _MOMENTUM * (seen[1] - variance)


def _normalize(rows_BK: Array) -> tuple[Array, tuple[Array, Array]]:
    mean_K, variance_K = rows_BK.mean(axis=0), rows_BK.var(axis=0)
    normed_BK: Array = (rows_BK - mean_K) / np.sqrt(variance_K + _EPSILON)
    return normed_BK, (mean_K, variance_K)


def _normalize_backward(d_BK: Array, normed_BK: Array, norm: tuple[Array, Array]) -> Array:
    back_BK: Array = (d_BK - d_BK.mean(axis=0) - normed_BK * (d_BK * normed_BK).mean(axis=0)) / np.sqrt(norm[1] + _EPSILON)
    return back_BK


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
        shown_NW = np.zeros((len(vectors_ND), len(self.words)), dtype=np.float32) if bag is None else count_densely(bag, self.words)
        inputs_NI = _make_inputs(_scale_loudness(shown_NW), _make_vector_inputs(vectors_ND, self.centre_D, self.scale))
        return compute_mixtures(dict(self.weights), inputs_NI, self.norm_mean_K, self.norm_variance_K).astype(np.float32)

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
    words = _choose_frequent(bag)
    if len(bag) < 2 or not words:
        raise InputError(
            f"{len(bag)} documents with {len(words)} words that recur: too few for a contextual topic model\n  use the method graph"
        )
    count = min(topics or TOPICS, len(bag))
    counts_NW = count_densely(bag, words)
    unit_ND = prepare_rows(vectors_ND, "cosine")
    centre_D = unit_ND.mean(axis=0)
    scale = float(1 / max((unit_ND - centre_D).std(), 1e-6))
    inputs_NI = _make_inputs(_scale_loudness(counts_NW), _make_vector_inputs(vectors_ND, centre_D, scale))
    totals_W = counts_NW.sum(axis=0, dtype=np.float64)
    background_W = np.log(totals_W / totals_W.sum()).astype(np.float32)
    random = np.random.default_rng(seed)
    weights = make_weights(inputs_NI.shape[1], HIDDEN, count, len(words), random)
    groups_N = run_kmeans(normalize_rows(unit_ND - centre_D), count, seed=seed)
    weights["topics"] += _compute_lifts(counts_NW, background_W, groups_N, count)
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
        _, found, seen = compute_gradients(weights, WordBatch(inputs_BI, counts_NW[rows], background_W, noise_BK, kept_BH))
        adam.rate = RATE * (1 - 0.9 * step / steps)
        adam.move(weights, found)
        if step % 2:  # documents are assigned with their words hidden, so the norm is that of such batches
            running = update_averages(running, seen)
    return running or seen


def _compute_lifts(counts_NW: Array, background_W: Array, groups_N: Ints, groups: int) -> Array:
    """Return how much more often each word stands in a group than anywhere, as a logarithm: where topics start, (K, W)."""
    held_KW = np.stack([counts_NW[groups_N == group].sum(axis=0) for group in range(groups)])
    expected_KW = held_KW.sum(axis=1, keepdims=True) * np.exp(background_W)
    lifts_KW: Array = np.log((held_KW + SMOOTHING) / (expected_KW + SMOOTHING))
    return lifts_KW


def _choose_frequent(bag: Bag) -> tuple[str, ...]:
    held_V = bag.document_counts()
    usable = np.flatnonzero((held_V <= max(1, len(bag) / 2)) & (held_V >= (2 if len(bag) >= 20 else 1)))
    order = usable[np.argsort(-held_V[usable], kind="stable")][:WORDS]
    return tuple(sorted(bag.vocabulary[place] for place in order))


def count_densely(bag: Bag, words: Sequence[str]) -> Array:
    """Return how often each document holds each of these words, (N, W)."""
    column = {word: place for place, word in enumerate(words)}
    places_V = np.array([column.get(word, -1) for word in bag.vocabulary] or [-1], dtype=np.int64)
    at_E, rows_E = places_V[bag.terms], bag.rows()
    counts_NW = np.zeros((len(bag), len(words)), dtype=np.float32)
    counts_NW[rows_E[at_E >= 0], at_E[at_E >= 0]] = bag.counts[at_E >= 0]
    return counts_NW


def _scale_loudness(counts_NW: Array) -> Array:
    """Return counts as rows of one length, so that long documents do not shout; documents without words stay zeros."""
    logs_NW = np.log1p(counts_NW)
    loud_NW: Array = logs_NW / np.maximum(np.linalg.norm(logs_NW, axis=1, keepdims=True), 1e-6) * np.float32(10)
    return loud_NW


def _make_vector_inputs(vectors_ND: Vectors, centre_D: Array, scale: float) -> Array:
    scaled_ND: Array = ((prepare_rows(vectors_ND, "cosine") - centre_D) * scale).astype(np.float32)
    return scaled_ND


def _make_inputs(words_NW: Array, vectors_ND: Array) -> Array:
    return np.concatenate([words_NW, vectors_ND], axis=1)
