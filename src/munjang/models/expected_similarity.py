"""A model's cosine of two sentences → the similarity that people would give them, as measured on labelled pairs with this very model.

A folder may hold `expected_similarity.json`: rising curves from cosine to the mean score of people (0 to 5, as in STS), one for each
compute type and pair of languages. Cosines of different models, and of one model within and across languages, mean different things; so a
curve counts only for the model it was measured with, by its fingerprint, and for its own pair of languages. Else there is no verdict.
`recipes/ko-en-small/expected_similarity.py` measures and writes the file of the bundled model.
"""

from __future__ import annotations

import bisect
import itertools
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from munjang.errors import DamagedFile
from munjang.limits import LIMITS
from munjang.text.unicode import SCRIPTS
from munjang.wording import count, name_facts

if TYPE_CHECKING:
    from munjang.models.sentence_encoder import SentenceEncoder

FILE = "expected_similarity.json"
FORMAT = "munjang-expected-similarity-1"

SCALE = (0.0, 5.0)
"""From "on different topics" to "completely equivalent", as in the STS benchmark."""

WORDS = ((4.5, "nearly the same"), (3.5, "very similar"), (2.5, "similar"), (1.5, "somewhat similar"), (0.0, "not similar"))
"""The nearest whole score of people → words."""

_HANGUL_SYLLABLE = 2
"""Letters of the Latin alphabet that one Hangul syllable weighs as much as, when a text holds both."""


@dataclass(frozen=True)
class SimilarityCurve:
    """What one model's cosine means for sentences of a pair of languages; straight between its points, flat beyond them."""

    fingerprint: str
    languages: str
    """ko-ko, en-en or en-ko."""
    points: tuple[tuple[float, float], ...]

    def __repr__(self) -> str:
        return name_facts("SimilarityCurve", [self.languages, count(len(self.points), "point")])

    def expect(self, cosine: float) -> float:
        """Return the mean score of people at a cosine.

        >>> SimilarityCurve("", "ko-ko", ((0.5, 1.0), (0.75, 2.0))).expect(0.625)
        1.5
        """
        at = bisect.bisect_left([x for x, _ in self.points], cosine)
        if at == 0 or at == len(self.points):
            return self.points[min(at, len(self.points) - 1)][1]
        (left, low), (right, high) = self.points[at - 1], self.points[at]
        return low + (high - low) * (cosine - left) / (right - left)


def describe_expected(expected: float) -> str:
    """Return words for a score of people from 0 to 5.

    >>> describe_expected(3.6)
    'very similar'
    """
    return next(words for least, words in WORDS if expected >= least)


def expect_similarity(encoder: SentenceEncoder, a: str, b: str, cosine: float) -> float | None:
    """Return the score that people would give two texts with this cosine, or None where it was never measured."""
    curve = find_curve(encoder.folder.path, fingerprint=encoder.fingerprint, a=a, b=b)
    return None if curve is None else curve.expect(cosine)


def find_curve(folder: Path, *, fingerprint: str, a: str, b: str) -> SimilarityCurve | None:
    """Return the curve for two texts, or None where nothing was measured for this model or for their languages."""
    languages = detect_languages(a, b)
    if languages is None:
        return None
    curves = read_curves(folder)
    return next((each for each in curves if each.fingerprint == fingerprint and each.languages == languages), None)


def detect_languages(a: str, b: str) -> str | None:
    """Return the languages of two texts, in the order of the alphabet; None unless both are Korean or English by their letters.

    >>> detect_languages("비가 온다", "It is raining")
    'en-ko'
    """
    found = [_detect_language(a), _detect_language(b)]
    return None if None in found else "-".join(sorted(str(each) for each in found))


def _detect_language(text: str) -> str | None:
    korean, english = (_count_letters(text, SCRIPTS[code].words) for code in ("ko", "en"))
    if 2 * (korean + english) <= sum(map(str.isalpha, text)):
        return None
    return "ko" if _HANGUL_SYLLABLE * korean >= english else "en"


def _count_letters(text: str, ranges: Sequence[tuple[int, int]]) -> int:
    return sum(any(low <= ord(character) <= high for low, high in ranges) for character in text)


def read_curves(folder: Path) -> tuple[SimilarityCurve, ...]:
    """Return the curves in a model's folder; none where the file is missing."""
    file = folder / FILE
    if not file.is_file():
        return ()
    if file.stat().st_size > LIMITS.max_config_bytes:
        raise DamagedFile(f"{folder.name}/{FILE}: {count(file.stat().st_size, 'byte')}, the limit is {LIMITS.max_config_bytes:,}")
    try:
        return _load_curves(json.loads(file.read_text(encoding="utf-8")))
    except (ValueError, RecursionError, KeyError, TypeError, AttributeError) as error:
        raise DamagedFile(
            f"{folder.name}/{FILE}: not a curve from cosine to similarity ({type(error).__name__}: {error})\n"
            "  remove the file, or install the model again"
        ) from None


def _load_curves(value: Any) -> tuple[SimilarityCurve, ...]:
    if value["format"] != FORMAT:
        raise ValueError(f'expected "format": "{FORMAT}"')
    curves = tuple(
        SimilarityCurve(str(each["fingerprint"]), str(each["languages"]), tuple((float(x), float(y)) for x, y in each["points"]))
        for each in value["curves"]
    )
    for curve in curves:
        rising = all(a[0] < b[0] and a[1] <= b[1] for a, b in itertools.pairwise(curve.points))
        bounded = all(math.isfinite(x) and SCALE[0] <= y <= SCALE[1] for x, y in curve.points)
        if not (curve.points and rising and bounded):
            raise ValueError(f"a curve ({curve.languages}) is empty, does not rise or leaves {SCALE[0]:g} to {SCALE[1]:g}")
    return curves
