"""A TopicModel and one value for each document → its topics over time, or per class.

Times are numbers, years, months or dates as text; they are cut into periods of equal length, of whole months or years where they are
dates. Words of a topic in a period are its words weighted as in the whole model, counted in that period alone.

Shapes: N documents, K topics, T periods or classes, V words.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np

from munjang.analyze.topics.describe import choose_strongest, count_topics
from munjang.analyze.topics.model import TopicModel
from munjang.errors import InputError, UsageError, quote
from munjang.types import Floats, Ints
from munjang.wording import brief_repr

MONTHS = (1, 3, 6, 12)
"""Lengths of periods where times are dates, in months; beyond, twice, four times … as long."""
SLICE_WORDS = 5
"""Words for a topic in a period or class."""

_DATE = re.compile(r"(\d{4})[-./년 ]*(?:(\d{1,2})[-./월 ]*(?:(\d{1,2}))?)?")


@brief_repr
@dataclass(frozen=True)
class Slices:
    """How many documents of each topic fall into each period or class."""

    names: tuple[str, ...]
    topics: tuple[int, ...]
    counts_TK: Ints
    words: tuple[tuple[tuple[str, ...], ...], ...]
    """For each period or class, for each topic, its words there."""

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
