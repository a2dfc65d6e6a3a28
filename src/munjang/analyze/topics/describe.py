"""Documents with components → topics with words, a name, typical documents and coherence.

In: a model whose `topics` are out of date. Out: the same model with new ones. Which document belongs where is not touched.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from munjang.analyze.contextual import ContextualTopics
from munjang.analyze.topics.bag import Bag
from munjang.analyze.topics.class_tfidf import class_tfidf, topic_counts
from munjang.analyze.topics.coherence import npmi
from munjang.analyze.topics.model import Topic, TopicModel
from munjang.analyze.topics.word_choice import choose_words
from munjang.types import Floats, Ints

NAME_WORDS = 4
"""Words of a name."""


def described(model: TopicModel) -> TopicModel:
    """Return the model with its topics described anew, the largest first."""
    labels_N = model.labels
    ids = sorted(set(model.topic_P.tolist()))
    weights_KV = topic_weights(model)
    words = [_words(model, weights_KV[place], np.flatnonzero(labels_N == id)) for place, id in enumerate(ids)]
    scores = npmi([[word for word, _ in each] for each in words], model.bag)
    topics = [
        Topic(
            id=id,
            name=model.names.get(id) or topic_name([word for word, _ in words[place]], id),
            words=tuple(words[place]),
            size=int((labels_N == id).sum()),
            documents=_typical(model, np.flatnonzero(labels_N == id)),
            coherence=scores[place],
        )
        for place, id in enumerate(ids)
    ]
    return replace(model, topics=tuple(sorted(topics, key=lambda topic: (-topic.size, topic.id))))


def topic_weights(model: TopicModel) -> Floats:
    """Return the weight of every word in every topic, topics by their number, (K, V): class-based TF-IDF, or what a network learned."""
    ids = np.unique(model.topic_P)
    if isinstance(model.assigner, ContextualTopics):
        learned_PV = model.assigner.word_weights(model.bag.vocabulary)
        return np.stack([learned_PV[model.topic_P == id].mean(axis=0) for id in ids])
    labels_N = model.labels
    places_N = np.where(labels_N >= 0, np.searchsorted(ids, labels_N), -1)
    counts_KV = topic_counts(model.bag, places_N, len(ids))
    return class_tfidf(counts_KV, boosted=_seed_columns(model.bag, (word for group in model.settings.guides for word in group)))


def topic_name(words: Sequence[str], id: int) -> str:
    """Return a name made of words.

    >>> topic_name(["선거", "투표", "후보", "정당", "비례"], 3)
    '선거 · 투표 · 후보 · 정당'
    """
    return " · ".join(words[:NAME_WORDS]) if words else f"topic {id}"


def _words(model: TopicModel, weights_V: Floats, members: Ints) -> list[tuple[str, float]]:
    return choose_words(weights_V, model.bag.chosen(members), count=model.settings.words, diversity=model.settings.diversity)


def _typical(model: TopicModel, members: Ints) -> tuple[int, ...]:
    documents = model.documents
    order = members[np.lexsort((members, -documents.score_N[members]))].tolist()
    first: dict[int, int] = {}
    for row in order:
        first.setdefault(int(documents.keys_N[row]), row)
        if len(first) == model.settings.representatives:
            break
    return tuple(first.values())[: model.settings.representatives]


def _seed_columns(bag: Bag, words: Iterable[str]) -> list[int]:
    wanted = {word.casefold() for word in words}
    return [column for column, word in enumerate(bag.vocabulary) if word in wanted]
