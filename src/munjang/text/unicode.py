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
from functools import lru_cache

from munjang.errors import TextError, UsageError, shown
from munjang.limits import LIMITS, Limits

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
        text = _long_mark_runs().sub(lambda run: run.group() + _JOINER, text)
    return unicodedata.normalize("NFC", text)


def _check_size(size: int, text: str, limits: Limits) -> None:
    if size > limits.max_text_bytes:
        raise TextError(f"the text {shown(text, 30)} is {size:,} bytes, the limit is {limits.max_text_bytes:,}\n  split the document")


@lru_cache(maxsize=1)
def _long_mark_runs() -> re.Pattern[str]:
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
    return _too_long_word(longest).sub(r"\1 ", text)


@lru_cache(maxsize=8)
def _too_long_word(longest: int) -> re.Pattern[str]:
    return re.compile(rf"(\S{{{longest}}})(?=\S)")
