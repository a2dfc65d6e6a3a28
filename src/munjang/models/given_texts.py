"""What a caller hands over as texts → texts, or a message that says what was found instead.

Iterators come in and go out unread, so that a stream stays one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from munjang.errors import UsageError


def several_texts(texts: Iterable[str]) -> Iterable[str]:
    """Return texts that can be gone through; one text alone is refused."""
    if isinstance(texts, str | bytes):
        raise UsageError("found one text where several were expected; put it into a list")
    if isinstance(texts, Sequence | Iterator):
        return texts
    if not isinstance(texts, Iterable):
        raise UsageError(f"found a {type(texts).__name__} where texts were expected; give a string or a list of strings")
    return list(texts)


def only_texts(texts: list[str]) -> list[str]:
    """Refuse what is not text before anything is computed."""
    for number, text in enumerate(texts):
        if not isinstance(text, str):
            raise UsageError(f"text {number} is a {type(text).__name__}, expected str")
    return texts
