"""A text → the words by which it can be found: morphemes for Korean, plain words for other scripts.

Korean is split by Kiwi (extra `korean`): particles and endings go, stems stay, so that 달렸다 is found by 달리는. Without Kiwi, Hangul
becomes overlapping pairs of characters, which finds more and less exactly; a note says so once. Han and Kana, which are written without
spaces, always become pairs. An index must be asked with the analyser that made it, so analysers have names.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from functools import lru_cache
from importlib.util import find_spec
from typing import Literal, TypeAlias, cast, get_args

from munjang.errors import MissingExtra, UsageError, shown
from munjang.text.kiwi import MAX_CHARACTERS, kiwi_tokens
from munjang.text.unicode import clean

Analyser: TypeAlias = Literal["kiwi", "bigrams"]

_HANGUL = "\u1100-\u11ff\u3130-\u318f\uac00-\ud7af"
_RUNS = re.compile(rf"[{_HANGUL}]+|[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]+|[^\W_{_HANGUL}\u3040-\u30ff\u3400-\u9fff]+")
_KOREAN = re.compile(f"[{_HANGUL}]")
_PAIRED = re.compile(f"[{_HANGUL}\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]")
_MEANINGFUL = ("NNG", "NNP", "NNB", "NR", "NP", "VV", "VA", "MM", "MAG", "XR", "SL", "SN", "SH", "W_")


class KoreanNote(UserWarning):
    """Korean is split into pairs of characters because Kiwi is not installed."""


def morphemes(text: str, *, analyser: Analyser | None = None) -> list[str]:
    """Return the words of a text in their order, in lower case; with no analyser named, the best there is.

    >>> morphemes("It is RAINING 눈이", analyser="bigrams")
    ['it', 'is', 'raining', '눈이']
    """
    return [word for word, _ in tagged_morphemes(text, analyser=analyser)]


def tagged_morphemes(text: str, *, analyser: Analyser | None = None) -> list[tuple[str, str]]:
    """Return the same words, each with its tag (Sejong's, by Kiwi); a word that no analyser has read has the tag "".

    >>> tagged_morphemes("It is 눈이", analyser="bigrams")
    [('it', ''), ('is', ''), ('눈이', '')]
    """
    text = clean(text)
    split = split_by(analyser or best_analyser(noted=has_hangul(text)))
    return [word for start in range(0, len(text), MAX_CHARACTERS) for word in split(text[start : start + MAX_CHARACTERS])]


def has_hangul(text: str) -> bool:
    """Return whether a text holds any Hangul."""
    return _KOREAN.search(text) is not None


def note_missing_kiwi() -> None:
    """Say once that Korean is split by rules because Kiwi is not installed."""
    _note()


def best_analyser(*, noted: bool = False) -> Analyser:
    """Return "kiwi" if it is installed, otherwise "bigrams", with a note if wanted."""
    if find_spec("kiwipiepy") is not None:
        return "kiwi"
    if noted:
        _note()
    return "bigrams"


def split_by(analyser: str) -> Callable[[str], list[tuple[str, str]]]:
    """Return the function of an analyser; refuse one that is unknown or not installed."""
    if analyser not in get_args(Analyser):
        raise UsageError(f"the analyser {shown(analyser)} is unknown, expected one of {', '.join(get_args(Analyser))}")
    if analyser == "bigrams":
        return _plain
    if find_spec("kiwipiepy") is None:
        raise MissingExtra("splitting Korean into morphemes", "korean")
    return _by_kiwi


def _plain(text: str) -> list[tuple[str, str]]:
    runs = _RUNS.findall(text.casefold())
    return [(word, "") for run in runs for word in (_pairs(run) if _PAIRED.match(run) else [run])]


def _pairs(run: str) -> list[str]:
    return [run[i : i + 2] for i in range(len(run) - 1)] or [run]


def _by_kiwi(text: str) -> list[tuple[str, str]]:
    if not has_hangul(text):
        return _plain(text)
    kept = [(cast(str, token.form), cast(str, token.tag)) for _, token in kiwi_tokens(text) if token.tag.startswith(_MEANINGFUL)]
    return [word for form, tag in kept for word in ([(form, tag)] if _KOREAN.match(form) else _plain(form))]


@lru_cache(maxsize=1)
def _note() -> None:
    message = "Korean is split by plain rules and pairs of characters: Kiwi is not installed (pip install 'munjang[korean]')"
    warnings.warn(message, KoreanNote, stacklevel=4)
