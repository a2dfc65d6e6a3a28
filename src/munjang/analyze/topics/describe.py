"""Documents with components → topics with words, a name, typical documents and coherence.

In: a model whose `topics` are out of date. Out: the same model with new ones. Which document belongs where is not touched.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

import numpy as np

from munjang.analyze.contextual import ContextualTopics
from munjang.analyze.topics.model import Topic, TopicModel
from munjang.analyze.topics.topic_words import Bag, compute_npmi
from munjang.types import Floats, Ints

SEED_BOOST = 1.5
"""What the weight of a seed word is multiplied by."""


def count_topics(bag: Bag, labels_N: Ints, topics: int) -> Floats:
    """Return how often each word stands in each topic, (K, V); labels below 0 do not count."""
    entry_labels = labels_N[bag.rows()]
    held = entry_labels >= 0
    flat = entry_labels[held] * len(bag.vocabulary) + bag.terms[held]
    counts = np.bincount(flat, weights=bag.counts[held], minlength=topics * len(bag.vocabulary)).astype(np.float64)
    return counts.reshape(topics, len(bag.vocabulary))


def weigh_class_words(counts_KV: Floats, *, boosted: Collection[int] = ()) -> Floats:
    """Return the weight of each word in each topic; `boosted` are columns of seed words.

    >>> weigh_class_words(np.array([[2.0, 0.0], [0.0, 2.0]])).round(3).tolist()
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


CANDIDATES = 3
"""Candidates per word that is wanted."""


def choose_words(weights_V: Floats, members: Bag, *, count: int, diversity: float) -> list[tuple[str, float]]:
    """Return up to `count` words with their weights, strongest first; `members` are the topic's documents."""
    candidates = choose_strongest(weights_V, count * CANDIDATES if diversity > 0 else count)
    if diversity > 0 and len(candidates) > count:
        chosen = _choose_marginal(weights_V[candidates], _count_together(members, candidates), count, diversity)
        candidates = [candidates[place] for place in chosen]
    found = [(members.vocabulary[term], float(weights_V[term])) for term in candidates]
    return sorted(found, key=lambda pair: (-pair[1], pair[0]))


def choose_strongest(weights_V: Floats, count: int) -> list[int]:
    """Return the columns of the largest weights above zero, equal weights by column.

    >>> choose_strongest(np.array([0.0, 2.0, 1.0, 2.0]), 3)
    [1, 3, 2]
    """
    order = np.argsort(-weights_V, kind="stable")[:count]
    return [int(term) for term in order if weights_V[term] > 0]


def _count_together(members: Bag, candidates: list[int]) -> Floats:
    """Return the cosine of the candidates' document sets, (C, C)."""
    place_V = np.full(len(members.vocabulary), -1)
    place_V[candidates] = np.arange(len(candidates))
    at_E = place_V[members.terms]
    present_CM = np.zeros((len(candidates), len(members)))
    present_CM[at_E[at_E >= 0], members.rows()[at_E >= 0]] = 1
    length_C = np.sqrt(np.maximum(present_CM.sum(axis=1), 1))
    together_CC: Floats = (present_CM @ present_CM.T) / length_C[:, None] / length_C
    return together_CC


def _choose_marginal(weights_C: Floats, together_CC: Floats, count: int, diversity: float) -> list[int]:
    relevance_C = weights_C / weights_C.max()
    chosen = [0]
    while len(chosen) < count:
        score_C = (1 - diversity) * relevance_C - diversity * together_CC[:, chosen].max(axis=1)
        score_C[chosen] = -np.inf
        chosen.append(int(np.argmax(score_C)))
    return chosen


NAME_WORDS = 4
"""Words of a name."""


def describe_topics(model: TopicModel) -> TopicModel:
    """Return the model with its topics described anew, the largest first."""
    labels_N = model.labels
    ids = sorted(set(model.topic_P.tolist()))
    weights_KV = weigh_topic_words(model)
    words = [_choose_topic_words(model, weights_KV[place], np.flatnonzero(labels_N == id)) for place, id in enumerate(ids)]
    scores = compute_npmi([[word for word, _ in each] for each in words], model.bag)
    topics = [
        Topic(
            id=id,
            name=model.names.get(id) or name_topic([word for word, _ in words[place]], id),
            words=tuple(words[place]),
            size=int((labels_N == id).sum()),
            documents=_find_typical(model, np.flatnonzero(labels_N == id)),
            coherence=scores[place],
        )
        for place, id in enumerate(ids)
    ]
    return replace(model, topics=tuple(sorted(topics, key=lambda topic: (-topic.size, topic.id))))


def weigh_topic_words(model: TopicModel) -> Floats:
    """Return the weight of every word in every topic, topics by their number, (K, V): class-based TF-IDF, or what a network learned."""
    ids = np.unique(model.topic_P)
    if isinstance(model.assigner, ContextualTopics):
        learned_PV = model.assigner.word_weights(model.bag.vocabulary)
        return np.stack([learned_PV[model.topic_P == id].mean(axis=0) for id in ids])
    labels_N = model.labels
    places_N = np.where(labels_N >= 0, np.searchsorted(ids, labels_N), -1)
    counts_KV = count_topics(model.bag, places_N, len(ids))
    return weigh_class_words(counts_KV, boosted=_find_seed_columns(model.bag, (word for group in model.settings.guides for word in group)))


def name_topic(words: Sequence[str], id: int) -> str:
    """Return a name made of words.

    >>> name_topic(["선거", "투표", "후보", "정당", "비례"], 3)
    '선거 · 투표 · 후보 · 정당'
    """
    return " · ".join(words[:NAME_WORDS]) if words else f"topic {id}"


def _choose_topic_words(model: TopicModel, weights_V: Floats, members: Ints) -> list[tuple[str, float]]:
    return choose_words(weights_V, model.bag.chosen(members), count=model.settings.words, diversity=model.settings.diversity)


def _find_typical(model: TopicModel, members: Ints) -> tuple[int, ...]:
    documents = model.documents
    order = members[np.lexsort((members, -documents.score_N[members]))].tolist()
    first: dict[int, int] = {}
    for row in order:
        first.setdefault(int(documents.keys_N[row]), row)
        if len(first) == model.settings.representatives:
            break
    return tuple(first.values())[: model.settings.representatives]


def _find_seed_columns(bag: Bag, words: Iterable[str]) -> list[int]:
    wanted = {word.casefold() for word in words}
    return [column for column, word in enumerate(bag.vocabulary) if word in wanted]
