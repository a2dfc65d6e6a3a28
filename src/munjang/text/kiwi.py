"""Kiwi, the Korean morphological analyser (extra `korean`): loaded once, one caller at a time, with the user's own words if there are any.

In: cleaned texts (`unicode.clean`). Out: Kiwi's own tokens, which know their form, tag and place. A long text is analysed in pieces that
break at white space. What tokens mean is left to `korean` (words to search by) and `tagging` (nouns and phrases).
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from functools import lru_cache
from importlib.util import find_spec
from itertools import islice
from typing import Any

from munjang.errors import MissingExtra, UsageError, shown
from munjang.limits import usable_cores

MAX_CHARACTERS = 20_000
"""Characters that are given to Kiwi at once; a longer text is analysed in pieces."""

MAX_INSTANCES = 4
"""Sets of user words for which Kiwi stays loaded; each takes about as much memory as the first."""

_BLOCK = 256  # texts that are given to Kiwi's threads at once
_lock = threading.Lock()


def kiwi_is_installed() -> bool:
    """Return whether the extra `korean` is there."""
    return find_spec("kiwipiepy") is not None


def kiwi_tokens(text: str, *, user_words: tuple[str, ...] = ()) -> list[tuple[int, Any]]:
    """Return each token of a cleaned text with the offset of the piece it stands in; its place is offset + token.start."""
    found: list[tuple[int, Any]] = []
    for offset, piece in pieces(text):
        with _lock:  # one analysis at a time; Kiwi's own threads are for lists of texts
            tokens = _kiwi(user_words).tokenize(piece)
        found += [(offset, token) for token in tokens]
    return found


def kiwi_tokens_of_each(texts: Iterable[str], *, user_words: tuple[str, ...] = ()) -> Iterator[list[tuple[int, Any]]]:
    """Yield the tokens of each cleaned text, as `kiwi_tokens` does, analysed in blocks on all cores."""
    waiting = iter(texts)
    while block := list(islice(waiting, _BLOCK)):
        cut = [list(pieces(text)) for text in block]
        with _lock:
            answers = iter(list(_kiwi(user_words).tokenize([piece for parts in cut for _, piece in parts])))
        for parts in cut:
            yield [(offset, token) for offset, _ in parts for token in next(answers)]


def kiwi_sentences(text: str, *, user_words: tuple[str, ...] = ()) -> list[tuple[int, int]]:
    """Return where each sentence of a cleaned text starts and ends."""
    places = []
    for offset, piece in pieces(text):
        with _lock:
            found = _kiwi(user_words).split_into_sents(piece)
        places += [(offset + sentence.start, offset + sentence.end) for sentence in found]
    return places


def pieces(text: str, *, longest: int = MAX_CHARACTERS) -> Iterator[tuple[int, str]]:
    """Yield a text in pieces with their offsets, cut at white space where there is some.

    >>> list(pieces("ab cd ef", longest=4))
    [(0, 'ab '), (3, 'cd '), (6, 'ef')]
    """
    start = 0
    while len(text) - start > longest:
        spaces = (at for at in range(start + longest, start, -1) if text[at - 1].isspace())
        end = next(spaces, start + longest)
        yield start, text[start:end]
        start = end
    if start < len(text):
        yield start, text[start:]


def check_user_words(words: Iterable[str]) -> tuple[str, ...]:
    """Return the words sorted and once each; refuse what cannot be a word."""
    kept = sorted({" ".join(word.split()) for word in words})
    wrong = next((word for word in kept if not word or len(word) > 100), None)
    if wrong is not None:
        raise UsageError(f"user word {shown(wrong)} has {len(wrong)} characters, expected 1 to 100")
    return tuple(kept)


@lru_cache(maxsize=MAX_INSTANCES)
def _kiwi(user_words: tuple[str, ...]) -> Any:
    if not kiwi_is_installed():
        raise MissingExtra("splitting Korean into morphemes", "korean")
    from kiwipiepy import Kiwi

    # Without its list of names of several words: 200 MB less, twice as fast to load, and a search for one word of a name finds it.
    kiwi = Kiwi(num_workers=usable_cores(), load_multi_dict=False)
    for word in user_words:
        kiwi.add_user_word(word, "NNP", 10.0)
    return kiwi
