"""Languages, by code → the characters that they are written in.

Only as much as is needed to say which pieces of a vocabulary a language could use. Digits, punctuation, symbols and emoji belong to every
language and are told apart by `is_shared`.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeAlias

from munjang.errors import UsageError, shown

Ranges: TypeAlias = tuple[tuple[int, int], ...]

_HANGUL: Ranges = ((0x1100, 0x11FF), (0x3130, 0x318F), (0xA960, 0xA97F), (0xAC00, 0xD7FF))
_LATIN: Ranges = ((0x41, 0x5A), (0x61, 0x7A), (0xC0, 0xD6), (0xD8, 0xF6), (0xF8, 0x24F))
_HAN: Ranges = ((0x3005, 0x3007), (0x3400, 0x4DBF), (0x4E00, 0x9FFF), (0xF900, 0xFAFF))
_KANA: Ranges = ((0x3040, 0x30FF), (0x31F0, 0x31FF))

_JOINERS = frozenset("\u200d\ufe0f\ufe0e\u20e3")
"""What emoji are made with."""


@dataclass(frozen=True)
class Script:
    """What one language is written in."""

    letters: Ranges
    """Every letter that its texts may hold, names and loan words included."""
    words: Ranges
    """The letters that its ordinary words are made of."""


SCRIPTS: dict[str, Script] = {
    "ko": Script(_HANGUL, _HANGUL),
    "en": Script(_LATIN, _LATIN[:2]),
    "latin": Script(_LATIN, _LATIN),
    "ja": Script(_KANA + _HAN, _KANA + _HAN),
    "zh": Script(_HAN, _HAN),
    "ru": Script(((0x400, 0x52F),), ((0x400, 0x45F),)),
    "el": Script(((0x370, 0x3FF),), ((0x370, 0x3FF),)),
    "ar": Script(((0x600, 0x6FF), (0x750, 0x77F)), ((0x600, 0x6FF),)),
    "he": Script(((0x590, 0x5FF),), ((0x590, 0x5FF),)),
    "hi": Script(((0x900, 0x97F),), ((0x900, 0x97F),)),
    "th": Script(((0xE00, 0xE7F),), ((0xE00, 0xE7F),)),
}


def named_scripts(names: Iterable[str]) -> tuple[Script, ...]:
    """Return the scripts of language codes, in their order."""
    wanted = list(names)
    for name in wanted:
        if name not in SCRIPTS:
            raise UsageError(f"the script {shown(name)} is unknown; known are {', '.join(SCRIPTS)}")
    return tuple(SCRIPTS[name] for name in wanted)


def is_shared(character: str) -> bool:
    """Tell whether a character belongs to every language: digits, punctuation, symbols, emoji, white space.

    >>> [is_shared(character) for character in "7!€😀a가"]
    [True, True, True, True, False, False]
    """
    return unicodedata.category(character)[0] in "PSZ" or character in "0123456789" or character in _JOINERS


def is_written_with(text: str, ranges: Ranges) -> bool:
    """Tell whether all characters of a text lie in the ranges.

    >>> is_written_with("문장", SCRIPTS["ko"].words)
    True
    """
    return all(any(low <= ord(character) <= high for low, high in ranges) for character in text)
