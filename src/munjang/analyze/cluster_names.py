"""Texts and their clusters → the phrases that set each cluster apart.

Class-based TF-IDF over nouns and phrases of two words (`text.phrases`): a phrase counts for a cluster by its share of the cluster's
phrases, and the more, the rarer it is over all clusters. A word that only stands within a chosen phrase is not said twice.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

from munjang.analyze.candidates import candidates, phrase_key
from munjang.errors import UsageError
from munjang.text.tagging import Tagger
from munjang.text.validate_texts import validate_texts


def cluster_phrases(texts: Sequence[str], labels: Sequence[int], *, top: int = 5, by: Tagger | None = None) -> dict[int, tuple[str, ...]]:
    """Return the phrases of each cluster, the most telling first, of equal ones the longer; −1 is no cluster and gets none.

    >>> from munjang.text.tagging import tagger
    >>> cluster_phrases(["heavy rain", "rain", "a goal", "the goal"], [0, 0, 1, 1], top=1, by=tagger("plain"))
    {0: ('rain',), 1: ('goal',)}
    """
    texts = validate_texts(texts)
    if len(texts) != len(labels):
        raise UsageError(f"labels: found {len(labels):,} for {len(texts):,} texts; expected one for each")
    counts: dict[int, Counter[str]] = {label: Counter() for label in sorted({int(label) for label in labels}) if label >= 0}
    written: dict[str, Counter[str]] = {}
    for label, found in zip(labels, candidates(texts, words=(1, 2), by=by), strict=True):
        for one in found:
            if int(label) in counts:
                key = phrase_key(one.text)
                counts[int(label)][key] += len(one.places)
                written.setdefault(key, Counter())[one.text] += len(one.places)
    total: Counter[str] = Counter()
    for each in counts.values():
        total.update(each)
    average = sum(total.values()) / max(len(counts), 1)
    return {label: _most_telling(each, total, average, top, written) for label, each in counts.items()}


def _most_telling(counts: Counter[str], total: Counter[str], average: float, top: int, written: dict[str, Counter[str]]) -> tuple[str, ...]:
    here = max(counts.total(), 1)
    worth = {key: count / here * math.log(1 + average / total[key]) for key, count in counts.items()}
    chosen: list[str] = []
    for key in sorted(worth, key=lambda key: (-worth[key], -key.count(" "), key)):
        if len(chosen) == top:
            break
        if not any(f" {key} " in f" {other} " or f" {other} " in f" {key} " for other in chosen):
            chosen.append(key)
    return tuple(max(written[key].items(), key=lambda item: (item[1], item[0]))[0] for key in chosen)
