"""A bag of words and a topic for each document → the words that tell each topic from the others (class-based TF-IDF).

A word's weight in a topic is its share of the topic's words, times log(1 + A / f): A is the average number of words of a topic, f how
often the word stands in all topics. Documents without a topic do not count.

Shapes: K topics, V words.
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from munjang.analyze.topics.bag import Bag
from munjang.types import Floats, Ints

SEED_BOOST = 1.5
"""What the weight of a seed word is multiplied by."""


def topic_counts(bag: Bag, labels_N: Ints, topics: int) -> Floats:
    """Return how often each word stands in each topic, (K, V); labels below 0 do not count."""
    entry_labels = labels_N[bag.rows()]
    held = entry_labels >= 0
    flat = entry_labels[held] * len(bag.vocabulary) + bag.terms[held]
    counts = np.bincount(flat, weights=bag.counts[held], minlength=topics * len(bag.vocabulary)).astype(np.float64)
    return counts.reshape(topics, len(bag.vocabulary))


def class_tfidf(counts_KV: Floats, *, boosted: Collection[int] = ()) -> Floats:
    """Return the weight of each word in each topic; `boosted` are columns of seed words.

    >>> class_tfidf(np.array([[2.0, 0.0], [0.0, 2.0]])).round(3).tolist()
    [[0.693, 0.0], [0.0, 0.693]]
    """
    if counts_KV.size == 0:
        return counts_KV
    sizes_K1 = counts_KV.sum(axis=1, keepdims=True)
    in_all_V = counts_KV.sum(axis=0)
    rarity_V = np.log1p(float(sizes_K1.mean()) / np.maximum(in_all_V, 1.0))
    rarity_V[list(boosted)] *= SEED_BOOST
    weights_KV: Floats = counts_KV / np.maximum(sizes_K1, 1.0) * rarity_V
    return weights_KV
