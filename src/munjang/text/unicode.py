"""What Munjang does to a text before a tokenizer sees it.

A str comes in, a str goes out that is safe to tokenise and canonically equal for equal-looking input: NFC and NFD Hangul become the same
text. Stated replacements, so that odd input never crashes: a lone surrogate becomes U+FFFD, a NUL becomes a space, and after 30 combining
marks in a row a combining grapheme joiner is inserted (Unicode's stream-safe form; without it normalising is quadratic). Case, width and
compatibility forms are left to each model's own tokenizer.
"""

from __future__ import annotations

import re
import sys
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

from munjang.errors import TextError, UsageError, quote
from munjang.limits import LIMITS, Limits

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


def find_scripts(names: Iterable[str]) -> tuple[Script, ...]:
    """Return the scripts of language codes, in their order."""
    wanted = list(names)
    for name in wanted:
        if name not in SCRIPTS:
            raise UsageError(f"the script {quote(name)} is unknown; known are {', '.join(SCRIPTS)}")
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


STREAM_SAFE_MARKS = 30
"""Marks in a row that Unicode's stream-safe form allows (UAX 15)."""

_JOINER = "\u034f"
_QUADRATIC_FROM = 1_000  # characters; below this even the worst order of marks normalises within a millisecond
_SURROGATES = re.compile("[\ud800-\udfff]")


def clean(text: str, *, limits: Limits = LIMITS) -> str:
    r"""Return the text in NFC, without NUL and lone surrogates, or refuse it when it is too large.

    >>> clean("\u1112\u1161\u11ab") == "한"
    True
    >>> clean("a\x00b\ud800")
    'a b�'
    """
    if not isinstance(text, str):
        raise UsageError(f"a text is a {type(text).__name__}, expected str")
    if text.isascii():
        _check_size(len(text), text, limits)
    else:
        text = _clean_unicode(text, limits)
    return text.replace("\x00", " ") if "\x00" in text else text


def _clean_unicode(text: str, limits: Limits) -> str:
    try:
        size = len(text.encode())
    except UnicodeEncodeError:
        text = _SURROGATES.sub("\ufffd", text)
        size = len(text.encode())
    _check_size(size, text, limits)
    if unicodedata.is_normalized("NFC", text):
        return text
    if len(text) > _QUADRATIC_FROM:
        text = _find_long_mark_runs().sub(lambda run: run.group() + _JOINER, text)
    return unicodedata.normalize("NFC", text)


def _check_size(size: int, text: str, limits: Limits) -> None:
    if size > limits.max_text_bytes:
        raise TextError(f"the text {quote(text, 30)} is {size:,} bytes, the limit is {limits.max_text_bytes:,}\n  split the document")


@lru_cache(maxsize=1)
def _find_long_mark_runs() -> re.Pattern[str]:
    """Match 30 combining marks that another one follows. Built on first need: it walks all of Unicode once."""
    marks = "".join(re.escape(ch) for ch in map(chr, range(sys.maxunicode + 1)) if unicodedata.combining(ch))
    return re.compile(f"[{marks}]{{{STREAM_SAFE_MARKS}}}(?=[{marks}])")


def break_long_words(text: str, *, limits: Limits = LIMITS) -> str:
    """Put a space into every run without white space that is longer than the limit; for the tokenizer's eyes only.

    >>> from dataclasses import replace
    >>> break_long_words("ab abcdefgh", limits=replace(LIMITS, max_word_characters=3))
    'ab abc def gh'
    """
    longest = limits.max_word_characters
    if len(text) <= longest:
        return text
    return _find_too_long_word(longest).sub(r"\1 ", text)


@lru_cache(maxsize=8)
def _find_too_long_word(longest: int) -> re.Pattern[str]:
    return re.compile(rf"(\S{{{longest}}})(?=\S)")
