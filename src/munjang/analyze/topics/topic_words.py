"""Texts → the words that can describe a topic: nouns and foreign words, never particles or endings.

Words of one character say little and are left out, unless a collection has no others.
"""

from __future__ import annotations

from collections.abc import Sequence

from munjang.analyze.topics.bag import Bag, make_bag
from munjang.text.phrases import nouns
from munjang.text.tagging import Tagger

FEW, MANY = 100, 1_000
"""Collections smaller than this keep words of one document, of two, beyond only words of three."""


def words_of(texts: Sequence[str], by: Tagger) -> list[list[str]]:
    """Return the words of each text, in order, in lower case."""
    return [[span.text.casefold() for span in spans] for spans in nouns(texts, by=by)]


def bag_of(texts: Sequence[str], by: Tagger) -> Bag:
    """Count the words of texts; one row per text."""
    found = words_of(texts, by)
    long = [[word for word in words if len(word) > 1] for words in found]
    least = 1 if len(texts) < FEW else 2 if len(texts) < MANY else 3
    return make_bag(long if any(long) else found, min_documents=least)
