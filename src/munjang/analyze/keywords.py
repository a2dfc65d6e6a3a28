"""Texts and an encoder → the phrases of each text that say best what it is about.

Candidates (`candidates`) are compared with their text by cosine and chosen so that they are not all alike (`diversity`). Every different
candidate is encoded once, whatever number of texts it stands in, in one call together with the texts. The answer for a text does not
depend on the other texts, except through `min_frequency`.

Shapes: N texts, C candidates, D dimensions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from munjang.analyze.candidates import Candidate, candidates
from munjang.analyze.diversity import Choice, choose
from munjang.errors import UsageError
from munjang.text.tagging import Tagger
from munjang.text.unicode import clean
from munjang.text.validate_texts import validate_texts
from munjang.types import Encoder, Vectors, check_encoder
from munjang.vectors.similarity import as_rows, normalize
from munjang.wording import brief_repr

TEXT_WEIGHT = 3.0
"""How much a text counts against the seed words when both are mixed."""


@brief_repr
@dataclass(frozen=True)
class Keyword:
    """A phrase that stands in the text, how close it is to the text, and where it stands: clean(text)[start:end]."""

    text: str
    score: float
    places: tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class KeywordOptions:
    """How keywords are sought."""

    top: int = 5
    words: tuple[int, int] = (1, 3)
    """The fewest and the most words of a phrase."""
    choice: Choice = "mmr"
    diversity: float = 0.5
    """For "mmr": 0 looks at closeness alone, 1 at unlikeness alone."""
    pool: int = 20
    """For "max-sum": how many of the closest are looked at."""
    seed_words: tuple[str, ...] = ()
    """Words towards which the choice is drawn."""
    min_frequency: int = 1
    """How often a phrase must stand in all texts together."""


def extract_keywords(
    texts: Sequence[str],
    encoder: Encoder,
    *,
    options: KeywordOptions | None = None,
    vectors: ArrayLike | None = None,
    by: Tagger | None = None,
) -> list[tuple[Keyword, ...]]:
    """Return the keywords of each text in the order in which they were chosen; a text without candidates has none.

    `vectors` are the texts' vectors if they are known already. `by` finds nouns (`munjang.text.tagging.tagger`); without it, the best
    tagger there is.
    """
    check_encoder(encoder)
    chosen = options or KeywordOptions()
    if chosen.top < 1:
        raise UsageError(f"top is {chosen.top}, expected at least 1")
    texts = validate_texts(texts)
    different = list(dict.fromkeys(map(clean, texts)))
    found = candidates(different, words=chosen.words, min_frequency=chosen.min_frequency, by=by)
    phrases = list(dict.fromkeys(one.text for each in found for one in each))
    if vectors is not None and len(as_rows(vectors, "vectors")) != len(texts):
        raise UsageError(f"vectors: found {len(as_rows(vectors, 'vectors')):,} for {len(texts):,} texts; expected one for each")
    seed = [" ".join(chosen.seed_words)] if chosen.seed_words else []
    known = _encoded([*(different if vectors is None else []), *seed, *phrases], encoder)
    if vectors is not None:
        known.add(list(map(clean, texts)), normalize(vectors))
    answers = {}
    for text, each in zip(different, found, strict=True):
        text_D = _drawn(known[text], known[seed[0]] if seed else None)
        answers[text] = _keywords(text_D, each, known, chosen)
    return [answers[clean(text)] for text in texts]


class _Known:
    """The unit vectors of different texts."""

    def __init__(self, texts: Sequence[str], unit_ND: Vectors) -> None:
        self.rows = {text: row for row, text in enumerate(texts)}
        self.unit_ND = unit_ND
        self._given: dict[str, Vectors] = {}

    def add(self, texts: Sequence[str], unit_ND: Vectors) -> None:
        """Take vectors that were known before; they count before encoded ones."""
        self._given = dict(zip(texts, unit_ND, strict=True))

    def __getitem__(self, text: str) -> Vectors:
        return self._given[text] if text in self._given else self.unit_ND[self.rows[text]]

    def several(self, texts: Sequence[str]) -> Vectors:
        """Return one row for each text, as encoded."""
        return self.unit_ND[[self.rows[text] for text in texts]]


def _encoded(texts: Sequence[str], encoder: Encoder) -> _Known:
    different = list(dict.fromkeys(texts))
    return _Known(different, normalize(encoder.encode(different)) if different else np.zeros((0, encoder.dimension), np.float32))


def _drawn(text_D: Vectors, seed_D: Vectors | None) -> Vectors:
    """Return the text's vector, drawn towards the seed words."""
    return text_D if seed_D is None else normalize(TEXT_WEIGHT * text_D + seed_D)


def _keywords(text_D: Vectors, each: Sequence[Candidate], known: _Known, options: KeywordOptions) -> tuple[Keyword, ...]:
    if not each:
        return ()
    unit_CD = known.several([one.text for one in each])
    relevance_C = np.asarray(unit_CD @ text_D)
    places = choose(relevance_C, unit_CD, k=options.top, how=options.choice, diversity=options.diversity, pool=options.pool)
    return tuple(Keyword(each[at].text, float(relevance_C[at]), each[at].places) for at in places)
