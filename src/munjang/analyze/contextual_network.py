"""One step of a variational auto-encoder over words: forward, backward, Adam; numpy alone.

An inference network reads a document (counted words beside its sentence vector) and gives the mean and log-variance of its topic
mixture; how frequent words are anyway, plus the mixture times a table of topics, gives back the document's words (ProdLDA: a product of
experts, not a mixture of them). So topics only learn by what they differ from the whole collection. Batch norm before the mixture keeps
topics from dying out. Gradients are written out by hand and checked against differences in the tests.

Shapes: B documents, I inputs, H hidden units, K topics, V words.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float32]
Weights = dict[str, Array]

_EPSILON = 1e-5
_MOMENTUM = 0.1  # share of a batch in the running mean and variance


@dataclass(frozen=True)
class Batch:
    """Inputs, the words to give back, and this step's randomness, drawn outside."""

    inputs_BI: Array
    counts_BV: Array
    background_V: Array
    """The logarithm of each word's share of the whole collection."""
    noise_BK: Array
    kept_BH: Array
    """Dropout: 0, or 1 over the share that is kept."""


def new_weights(inputs: int, hidden: int, topics: int, words: int, random: np.random.Generator) -> Weights:
    """Draw starting weights."""

    def drawn(rows: int, columns: int) -> Array:
        made: Array = (random.standard_normal((rows, columns)) * np.sqrt(2 / (rows + columns))).astype(np.float32)
        return made

    return {
        "hidden": drawn(inputs, hidden),
        "hidden_bias": np.zeros(hidden, dtype=np.float32),
        "mean": drawn(hidden, topics),
        "spread": drawn(hidden, topics),
        "topics": drawn(topics, words),
    }


def gradients(weights: Weights, batch: Batch) -> tuple[float, Weights, tuple[Array, Array]]:
    """Return the loss per document, its gradients, and the mean and variance that the means of the mixtures had."""
    count, topics = batch.noise_BK.shape
    prior = 1 - 1 / topics  # variance of the Laplace approximation to a flat Dirichlet
    before_BH = batch.inputs_BI @ weights["hidden"] + weights["hidden_bias"]
    hidden_BH = np.logaddexp(before_BH, 0) * batch.kept_BH
    mean_BK, mean_norm = _normed(hidden_BH @ weights["mean"])
    spread_BK, spread_norm = _normed(hidden_BH @ weights["spread"])
    sigma_BK: Array = np.exp(spread_BK / np.float32(2))
    mixture_BK = softmax(mean_BK + sigma_BK * batch.noise_BK)
    shares_BV = softmax(batch.background_V + mixture_BK @ weights["topics"])
    lengths_B1 = batch.counts_BV.sum(axis=1, keepdims=True)

    rebuilt = -(batch.counts_BV * np.log(shares_BV + 1e-12)).sum()
    apart = 0.5 * (sigma_BK**2 / prior + mean_BK**2 / prior - 1 + np.log(prior) - spread_BK).sum()

    d_logits_BV = (shares_BV * lengths_B1 - batch.counts_BV) / np.float32(count)
    d_mixture_BK = d_logits_BV @ weights["topics"].T
    d_drawn_BK = mixture_BK * (d_mixture_BK - (d_mixture_BK * mixture_BK).sum(axis=1, keepdims=True))
    d_mean_BK = _normed_back(d_drawn_BK + mean_BK / prior / count, mean_BK, mean_norm)
    d_spread_BK = d_drawn_BK * batch.noise_BK * sigma_BK / 2 + (sigma_BK**2 / prior - 1) / 2 / count
    d_spread_BK = _normed_back(d_spread_BK, spread_BK, spread_norm)
    d_hidden_BH = (d_mean_BK @ weights["mean"].T + d_spread_BK @ weights["spread"].T) * batch.kept_BH / (1 + np.exp(-before_BH))
    found = {
        "hidden": batch.inputs_BI.T @ d_hidden_BH,
        "hidden_bias": d_hidden_BH.sum(axis=0),
        "mean": hidden_BH.T @ d_mean_BK,
        "spread": hidden_BH.T @ d_spread_BK,
        "topics": mixture_BK.T @ d_logits_BV,
    }
    return float((rebuilt + apart) / count), found, mean_norm


def mixtures(weights: Weights, inputs_BI: Array, mean_K: Array, variance_K: Array) -> Array:
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


def followed(running: tuple[Array, Array] | None, seen: tuple[Array, Array]) -> tuple[Array, Array]:
    """Return the running mean and variance, moved towards a batch's."""
    mean, variance = running or seen
    return mean + _MOMENTUM * (seen[0] - mean), variance + _MOMENTUM * (seen[1] - variance)


def _normed(rows_BK: Array) -> tuple[Array, tuple[Array, Array]]:
    mean_K, variance_K = rows_BK.mean(axis=0), rows_BK.var(axis=0)
    normed_BK: Array = (rows_BK - mean_K) / np.sqrt(variance_K + _EPSILON)
    return normed_BK, (mean_K, variance_K)


def _normed_back(d_BK: Array, normed_BK: Array, norm: tuple[Array, Array]) -> Array:
    back_BK: Array = (d_BK - d_BK.mean(axis=0) - normed_BK * (d_BK * normed_BK).mean(axis=0)) / np.sqrt(norm[1] + _EPSILON)
    return back_BK
