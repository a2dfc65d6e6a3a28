"""Documents with components → topics with words, a name, typical documents and coherence; and topics over time, or per class.

`describe_topics` takes a model whose `topics` are out of date and returns the same model with new ones. Which document belongs where is not
touched.

Trends take one value for each document. Times are numbers, years, months or dates as text; they are cut into periods of equal length, of
whole months or years where they are dates. Words of a topic in a period are its words weighted as in the whole model, counted in that
period alone.

Shapes: N documents, K topics, T periods or classes, V words.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, ClassVar

import numpy as np

from munjang.analyze.contextual import ContextualTopics
from munjang.analyze.topics.model import Topic, TopicModel
from munjang.analyze.topics.topic_words import Bag, compute_npmi
from munjang.errors import InputError, UsageError, quote
from munjang.tables import Row, Table
from munjang.types import Floats, Ints
from munjang.wording import brief_repr

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
            size=int(model.size_P[model.topic_P == id].sum()),
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
    if model.streamed is not None:
        counts_KV = count_topics(model.streamed.words, np.searchsorted(ids, model.topic_P), len(ids))
    else:
        labels_N = model.labels
        counts_KV = count_topics(model.bag, np.where(labels_N >= 0, np.searchsorted(ids, labels_N), -1), len(ids))
    return weigh_class_words(counts_KV, boosted=_find_seed_columns(model.bag, (word for group in model.settings.guides for word in group)))


def name_topic(words: Sequence[str], id: int) -> str:
    """Return a name made of words.

    >>> name_topic(["선거", "투표", "후보", "정당", "비례"], 3)
    '선거 · 투표 · 후보 · 정당'
    """
    return " · ".join(words[:NAME_WORDS]) if words else f"topic {id}"


def _choose_topic_words(model: TopicModel, weights_V: Floats, members: Ints) -> list[tuple[str, float]]:
    return choose_words(weights_V, model.bag.select(members), count=model.settings.words, diversity=model.settings.diversity)


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


MONTHS = (1, 3, 6, 12)
"""Lengths of periods where times are dates, in months; beyond, twice, four times … as long."""
SLICE_WORDS = 5
"""Words for a topic in a period or class."""

_DATE = re.compile(r"(\d{4})[-./년 ]*(?:(\d{1,2})[-./월 ]*(?:(\d{1,2}))?)?")


@brief_repr
@dataclass(frozen=True)
class Slices(Table):
    """How many documents of each topic fall into each period or class."""

    names: tuple[str, ...]
    topics: tuple[int, ...]
    counts_TK: Ints
    words: tuple[tuple[tuple[str, ...], ...], ...]
    """For each period or class, for each topic, its words there."""

    columns: ClassVar[tuple[str, ...]] = ("name", "topic", "documents", "words")
    bars: ClassVar[tuple[str, ...]] = ("documents",)

    def to_rows(self) -> list[Row]:
        """Return for each period or class, and each topic, how many documents there are and with which words; none is left out."""
        return [
            {"name": name, "topic": topic, "documents": int(self.counts_TK[at, place]), "words": list(self.words[at][place])}
            for at, name in enumerate(self.names)
            for place, topic in enumerate(self.topics)
        ]

    def facts(self) -> list[dict[str, Any]]:
        """Return what JSON says: each period or class with the topics that stand in it."""
        return [
            {
                "name": name,
                "topics": [
                    {"id": id, "documents": int(counts_K[place]), "words": list(words[place])}
                    for place, id in enumerate(self.topics)
                    if counts_K[place]
                ],
            }
            for name, counts_K, words in zip(self.names, self.counts_TK, self.words, strict=True)
        ]


def topics_over_time(model: TopicModel, times: Sequence[Any], *, periods: int = 20) -> Slices:
    """Return the topics in up to `periods` stretches of time of equal length; periods without documents are kept, as gaps are news too."""
    if periods < 1:
        raise UsageError(f"periods={periods}, expected 1 or more")
    _check_length(model, times)
    moments_N = np.array([parse_moment(time, place) for place, time in enumerate(times, 1)])
    if bool((moments_N == np.round(moments_N)).all()):
        return _make_slices(model, *_cut_slices(moments_N, periods, steps=(1, 2, 5), name=lambda value: f"{value:.0f}"))
    if bool(((moments_N >= 1000) & (moments_N < 3000)).all()):  # years with their fraction
        place_N, months = _cut_slices(np.floor(moments_N * 12 + 1e-6), periods, steps=MONTHS, name=_name_month)
        whole_years = all(month.endswith("-01") for month in months) and len(months) > 1
        return _make_slices(model, place_N, [month[:4] for month in months] if whole_years else months)
    low, width = float(moments_N.min()), float(np.ptp(moments_N)) / periods
    if not width:
        return _make_slices(model, np.zeros(len(moments_N), dtype=np.int64), [f"{low:.4g}"])
    place_N = np.minimum(((moments_N - low) / width).astype(np.int64), periods - 1)
    return _make_slices(model, place_N, [f"{low + width * number:.4g}" for number in range(periods)])


def topics_per_class(model: TopicModel, classes: Sequence[Any]) -> Slices:
    """Return the topics in each class, classes in their order of first appearance."""
    _check_length(model, classes)
    names = list(dict.fromkeys(map(str, classes)))
    place = {name: number for number, name in enumerate(names)}
    return _make_slices(model, np.array([place[str(each)] for each in classes]), names)


def parse_moment(time: Any, row: int) -> float:
    """Return a time as a number: years with their fraction, or the number itself.

    >>> parse_moment("2024-07", 1), parse_moment(3, 1)
    (2024.5, 3.0)
    """
    if isinstance(time, int | float) and not isinstance(time, bool) and math.isfinite(time):
        return float(time)
    if isinstance(time, datetime) or hasattr(time, "timetuple"):
        return float(time.year + (time.timetuple().tm_yday - 1) / 366)
    found = _DATE.match(str(time).strip())
    if found is None:
        raise InputError(f"row {row}: {quote(str(time))} is no time, expected a date such as 2024-07-01, a year or a number")
    year, month, day = (int(part) if part else 1 for part in found.groups())
    return year + (min(max(month, 1), 12) - 1) / 12 + (min(max(day, 1), 31) - 1) / 372


def _cut_slices(whole_N: Floats, periods: int, *, steps: Sequence[int], name: Callable[[float], str]) -> tuple[Ints, list[str]]:
    """Cut whole numbers into periods of one of the steps, or of the last step times 1, 2, 4, …, each beginning at a multiple of it."""
    low, high = int(whole_N.min()), int(whole_N.max())
    longer = (steps[-1] * 2**power for power in range(1, 64))
    step = next(step for step in (*steps, *longer) if high // step - low // step < periods)
    first = low // step
    return (whole_N // step).astype(np.int64) - first, [name((first + number) * step) for number in range(high // step - first + 1)]


def _name_month(month: float) -> str:
    year, rest = divmod(int(month), 12)
    return f"{year}-{rest + 1:02d}"


def _check_length(model: TopicModel, values: Sequence[Any]) -> None:
    if model.streamed is not None:
        raise UsageError(f"the topics were counted over {model.size:,} documents, of which the model keeps {len(model.documents):,}")
    if len(values) != len(model.documents):
        raise UsageError(f"{len(values):,} values for {len(model.documents):,} documents, expected one for each")


def _make_slices(model: TopicModel, place_N: Ints, names: Sequence[str]) -> Slices:
    ids = np.unique(model.topic_P)
    labels_N = model.labels
    at_N = np.where(labels_N >= 0, np.searchsorted(ids, labels_N), -1)
    counts_TK = np.zeros((len(names), len(ids)), dtype=np.int64)
    np.add.at(counts_TK, (place_N[at_N >= 0], at_N[at_N >= 0]), 1)
    totals_V = np.maximum(count_topics(model.bag, at_N, len(ids)).sum(axis=0), 1.0)
    average = float(totals_V.sum()) / len(ids)
    rarity_V = np.log1p(average / totals_V)
    words = tuple(_choose_slice_words(model, np.where(place_N == number, at_N, -1), rarity_V, len(ids)) for number in range(len(names)))
    return Slices(tuple(names), tuple(ids.tolist()), counts_TK, words)


def _choose_slice_words(model: TopicModel, at_N: Ints, rarity_V: Floats, topics: int) -> tuple[tuple[str, ...], ...]:
    weights_KV = count_topics(model.bag, at_N, topics) * rarity_V
    return tuple(tuple(model.bag.vocabulary[term] for term in choose_strongest(row_V, SLICE_WORDS)) for row_V in weights_KV)
