"""Texts and an encoder → the phrases of each text that say best what it is about.

Candidates (`find_candidates`) are compared with their text by cosine and chosen so that they are not all alike. Every different
candidate is encoded once, whatever number of texts it stands in, in one call together with the texts. The answer for a text does not
depend on the other texts, except through `min_frequency`.

Shapes: N texts, C candidates, D dimensions.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from munjang.errors import UsageError, quote
from munjang.options import Option, check_options
from munjang.tables import Row, Table
from munjang.text.korean import has_hangul
from munjang.text.phrases import end_in_nouns, find_noun_phrases
from munjang.text.tagging import Tagger
from munjang.text.unicode import clean
from munjang.text.validate_texts import validate_texts
from munjang.types import Encoder, Vectors, check_encoder
from munjang.vectors.similarity import normalize, to_rows
from munjang.wording import brief_repr

_LATIN = "[A-Za-z0-9]"


@dataclass(frozen=True)
class Candidate:
    """A phrase of a text and all its places in the cleaned text."""

    text: str
    places: tuple[tuple[int, int], ...]


def find_candidates(
    texts: Sequence[str], *, words: tuple[int, int] = (1, 3), min_frequency: int = 1, by: Tagger | None = None
) -> list[list[Candidate]]:
    """Return the candidates of each text in the order in which they first stand there.

    `min_frequency` is how often a phrase must stand in all texts together.

    >>> from munjang.text.tagging import choose_tagger
    >>> [c.text for c in find_candidates(["Rain and rain"], by=choose_tagger("plain"))[0]]
    ['Rain']
    """
    if not 1 <= words[0] <= words[1]:
        raise UsageError(f"words are {words[0]} to {words[1]}, expected at least 1 and no more than the most")
    if min_frequency < 1:
        raise UsageError(f"min_frequency is {min_frequency}, expected at least 1")
    found: list[dict[str, Candidate]] = []
    total: Counter[str] = Counter()
    for spans in find_noun_phrases(texts, words=words, by=by):
        places: dict[str, list[tuple[int, int]]] = {}
        written: dict[str, str] = {}
        for span in spans:
            key = make_phrase_key(span.text)
            written.setdefault(key, span.text)
            places.setdefault(key, []).append((span.start, span.end))
        found.append({key: Candidate(written[key], tuple(at)) for key, at in places.items()})
        total.update({key: len(at) for key, at in places.items()})
    frequent = [{key: one for key, one in each.items() if total[key] >= min_frequency} for each in found]
    return _keep_noun_endings(frequent, by)


def find_given(text: str, phrases: Sequence[str]) -> list[Candidate]:
    """Return those of the phrases that stand in a cleaned text, without regard to case; in Latin script as whole words.

    >>> [(one.text, one.places) for one in find_given("기후변화는 rain과 rainbow", ["기후변화", "rain", "눈"])]
    [('기후변화', ((0, 4),)), ('rain', ((6, 10),))]
    """
    found = []
    for phrase in dict.fromkeys(" ".join(clean(each).split()) for each in phrases):
        before, after = (rf"(?{look}{_LATIN})" if re.match(_LATIN, end) else "" for look, end in (("<!", phrase[:1]), ("!", phrase[-1:])))
        spaced = before + r"\s+".join(map(re.escape, phrase.split())) + after
        places = tuple(at.span() for at in re.finditer(spaced, text, re.IGNORECASE)) if phrase else ()
        found += [Candidate(phrase, places)] if places else []
    return found


def _keep_noun_endings(found: list[dict[str, Candidate]], by: Tagger | None) -> list[list[Candidate]]:
    """Leave out Korean phrases that end in a particle or an ending when they are read by themselves."""
    korean = list(dict.fromkeys(one.text for each in found for one in each.values() if has_hangul(one.text)))
    doubtful = {text for text, good in zip(korean, end_in_nouns(korean, by=by), strict=True) if not good}
    return [[one for one in each.values() if one.text not in doubtful] for each in found]


def make_phrase_key(phrase: str) -> str:
    """Return what equal phrases have in common.

    >>> make_phrase_key("Heavy  Rain")
    'heavy rain'
    """
    return " ".join(phrase.split()).casefold()


Choice: TypeAlias = Literal["mmr", "max-sum", "nearest"]


def choose(relevance_C: Vectors, unit_CD: Vectors, *, k: int, how: Choice, diversity: float, pool: int) -> list[int]:
    """Return the places of at most k candidates."""
    if how == "mmr":
        return choose_by_mmr(relevance_C, unit_CD, k=k, diversity=diversity)
    if how == "max-sum":
        return choose_by_max_sum(relevance_C, unit_CD, k=k, pool=pool)
    if how == "nearest":
        return [int(place) for place in np.argsort(-relevance_C, kind="stable")[:k]]
    raise UsageError(f"the choice {quote(str(how))} is unknown, expected mmr, max-sum or nearest")


def choose_by_mmr(relevance_C: Vectors, unit_CD: Vectors, *, k: int, diversity: float) -> list[int]:
    """Choose by maximal marginal relevance: (1 − diversity) × relevance − diversity × the closest one chosen already.

    >>> unit = np.array([[1, 0], [1, 0], [0, 1]], dtype=np.float32)
    >>> choose_by_mmr(np.array([0.9, 0.9, 0.5], dtype=np.float32), unit, k=2, diversity=0.5)
    [0, 2]
    """
    if not 0 <= diversity <= 1:
        raise UsageError(f"diversity is {diversity}, expected a number from 0 to 1")
    gain_C = (1 - diversity) * relevance_C.astype(np.float64)
    closest_C = np.full(len(relevance_C), -np.inf)
    chosen: list[int] = []
    while len(chosen) < min(k, len(relevance_C)):
        worth_C = gain_C - diversity * closest_C if chosen else relevance_C.astype(np.float64)
        worth_C[chosen] = -np.inf
        best = int(np.argmax(worth_C))
        chosen.append(best)
        np.maximum(closest_C, unit_CD @ unit_CD[best], out=closest_C)
    return chosen


def choose_by_max_sum(relevance_C: Vectors, unit_CD: Vectors, *, k: int, pool: int) -> list[int]:
    """Choose from the `pool` most relevant: the best first, then always the one least like all chosen so far.

    >>> unit = np.array([[1, 0], [1, 0], [0, 1], [-1, 0]], dtype=np.float32)
    >>> choose_by_max_sum(np.array([0.9, 0.8, 0.7, 0.1], dtype=np.float32), unit, k=2, pool=3)
    [0, 2]
    """
    if pool < 1:
        raise UsageError(f"pool is {pool}, expected at least 1 candidate")
    order = np.argsort(-relevance_C, kind="stable")[: max(pool, k)]
    alike_C = np.zeros(len(order))
    chosen: list[int] = []
    while len(chosen) < min(k, len(order)):
        worth_C = -alike_C
        worth_C[chosen] = -np.inf
        best = int(np.argmax(worth_C))  # nothing chosen yet: all are worth the same, and the first is the most relevant
        chosen.append(best)
        alike_C += unit_CD[order] @ unit_CD[order[best]]
    return [int(order[place]) for place in chosen]


def find_cluster_phrases(
    texts: Sequence[str],
    labels: Sequence[int],
    *,
    phrases: Annotated[int, Option("Number of key phrases per cluster.", min=0, max=1_000)] = 5,
    by: Tagger | None = None,
) -> dict[int, tuple[str, ...]]:
    """Return the phrases of each cluster, the most telling first, of equal ones the longer; −1 is no cluster and gets none.

    >>> from munjang.text.tagging import choose_tagger
    >>> find_cluster_phrases(["heavy rain", "rain", "a goal", "the goal"], [0, 0, 1, 1], phrases=1, by=choose_tagger("plain"))
    {0: ('rain',), 1: ('goal',)}
    """
    check_options(find_cluster_phrases, locals())
    texts = validate_texts(texts)
    if len(texts) != len(labels):
        raise UsageError(f"labels: found {len(labels):,} for {len(texts):,} texts; expected one for each")
    counts: dict[int, Counter[str]] = {label: Counter() for label in sorted({int(label) for label in labels}) if label >= 0}
    written: dict[str, Counter[str]] = {}
    for label, found in zip(labels, find_candidates(texts, words=(1, 2), by=by), strict=True):
        for one in found:
            if int(label) in counts:
                key = make_phrase_key(one.text)
                counts[int(label)][key] += len(one.places)
                written.setdefault(key, Counter())[one.text] += len(one.places)
    total: Counter[str] = Counter()
    for each in counts.values():
        total.update(each)
    average = sum(total.values()) / max(len(counts), 1)
    return {label: _find_most_telling(each, total, average, phrases, written) for label, each in counts.items()}


def _find_most_telling(
    counts: Counter[str], total: Counter[str], average: float, top: int, written: dict[str, Counter[str]]
) -> tuple[str, ...]:
    here = max(counts.total(), 1)
    worth = {key: count / here * math.log(1 + average / total[key]) for key, count in counts.items()}
    chosen: list[str] = []
    for key in sorted(worth, key=lambda key: (-worth[key], -key.count(" "), key)):
        if len(chosen) == top:
            break
        if not any(f" {key} " in f" {other} " or f" {other} " in f" {key} " for other in chosen):
            chosen.append(key)
    return tuple(max(written[key].items(), key=lambda item: (item[1], item[0]))[0] for key in chosen)


TEXT_WEIGHT = 3.0
"""How much a text counts against the seed words when both are mixed."""


@brief_repr
@dataclass(frozen=True)
class Keyword:
    """A phrase that stands in the text, how close it is to the text, and where it stands: clean(text)[start:end]."""

    text: str
    score: float
    places: tuple[tuple[int, int], ...]


class Keywords(Table, list[tuple[Keyword, ...]]):
    """The keywords of each text, in the order of the texts; a list of tuples of `Keyword`."""

    columns: ClassVar[tuple[str, ...]] = ("text", "keyword", "score")

    def to_rows(self) -> list[Row]:
        """Return the keywords of all texts, each with the number of its text, from 0."""
        return [{"text": place, "keyword": one.text, "score": one.score} for place, each in enumerate(self) for one in each]


def extract_keywords(
    texts: Sequence[str],
    encoder: Encoder,
    *,
    top: Annotated[int, Option("Maximum number of keywords per text.", min=1, flags=("--top", "-k"))] = 5,
    min_words: Annotated[int, Option("Minimum words in a phrase.", min=1)] = 1,
    max_words: Annotated[int, Option("Maximum words in a phrase.", min=1)] = 3,
    choice: Annotated[
        Choice, Option("How phrases are chosen: mmr and max-sum prefer different ones, nearest takes the most relevant.")
    ] = "mmr",
    diversity: Annotated[float, Option("For mmr: 0 considers relevance only, 1 diversity only.", min=0, max=1)] = 0.5,
    pool: Annotated[int, Option("For max-sum: number of most relevant phrases to choose from.", min=1)] = 20,
    seed_words: Annotated[Sequence[str], Option("A word towards which to steer the choice; may be repeated.", flags=("--seed-word",))] = (),
    min_frequency: Annotated[int, Option("Minimum number of times a phrase occurs in all texts together.", min=1)] = 1,
    vectors: ArrayLike | None = None,
    by: Tagger | None = None,
    candidates: Sequence[str] | Sequence[Sequence[str]] | None = None,
) -> Keywords:
    """Return the keywords of each text in the order in which they were chosen; a text without candidates has none.

    `vectors` are the texts' vectors if they are known already. `by` finds nouns (`text.tagging.choose_tagger`); without it, the best
    tagger there is.
    """
    check_encoder(encoder)
    check_options(extract_keywords, locals())
    texts = validate_texts(texts)
    asked = _pair_with_candidates(texts, candidates)
    different = list(dict.fromkeys(asked))
    found = (
        find_candidates([text for text, _ in different], words=(min_words, max_words), min_frequency=min_frequency, by=by)
        if candidates is None
        else [find_given(text, given) for text, given in different]
    )
    phrases = list(dict.fromkeys(one.text for each in found for one in each))
    if vectors is not None and len(to_rows(vectors, "vectors")) != len(texts):
        raise UsageError(f"vectors: found {len(to_rows(vectors, 'vectors')):,} for {len(texts):,} texts; expected one for each")
    seed = [" ".join(seed_words)] if seed_words else []
    known = _encode_phrases([*((text for text, _ in different) if vectors is None else ()), *seed, *phrases], encoder)
    if vectors is not None:
        known.add(list(map(clean, texts)), normalize(vectors))
    answers = {}
    for (text, given), each in zip(different, found, strict=True):
        text_D = _draw(known[text], known[seed[0]] if seed else None)
        unit_CD = known.several([one.text for one in each])
        relevance_C = np.asarray(unit_CD @ text_D)
        places = choose(relevance_C, unit_CD, k=top, how=choice, diversity=diversity, pool=pool) if each else ()
        answers[text, given] = tuple(Keyword(each[at].text, float(relevance_C[at]), each[at].places) for at in places)
    return Keywords(answers[key] for key in asked)


def _pair_with_candidates(
    texts: Sequence[str], candidates: Sequence[str] | Sequence[Sequence[str]] | None
) -> list[tuple[str, tuple[str, ...]]]:
    """Return each cleaned text with the phrases that it may have as keywords; with none where they are to be found."""
    if candidates is None:
        return [(clean(text), ()) for text in texts]
    if isinstance(candidates, str) or not isinstance(candidates, Sequence):
        raise UsageError(f"candidates are {quote(str(candidates))}, expected a list of phrases, or one such list for each text")
    if all(isinstance(each, str) for each in candidates):
        return [(clean(text), tuple(validate_texts(candidates, name="candidates"))) for text in texts]
    if len(candidates) != len(texts):
        raise UsageError(f"candidates: found {len(candidates):,} lists for {len(texts):,} texts; expected one for each")
    return [(clean(text), tuple(validate_texts(given, name="candidates"))) for text, given in zip(texts, candidates, strict=True)]


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


def _encode_phrases(texts: Sequence[str], encoder: Encoder) -> _Known:
    different = list(dict.fromkeys(texts))
    return _Known(different, normalize(encoder.encode(different)) if different else np.zeros((0, encoder.dimension), np.float32))


def _draw(text_D: Vectors, seed_D: Vectors | None) -> Vectors:
    """Return the text's vector, drawn towards the seed words."""
    return text_D if seed_D is None else normalize(TEXT_WEIGHT * text_D + seed_D)
