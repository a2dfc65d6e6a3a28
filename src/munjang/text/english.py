"""English words → their stems, so that "raining" is found by "rains"; words of other scripts stay as they are.

The stems are Snowball's. A word of another language in Latin letters gets one too: an index and its question treat it alike.
"""

from __future__ import annotations

import re
import threading
from functools import lru_cache
from typing import cast

_LATIN = re.compile(r"[a-z]+")
_LONGEST = 40
"""Letters of a word; what is longer is no word that anybody bends."""
_own = threading.local()


@lru_cache(maxsize=2**16)
def stem(word: str) -> str:
    """Return the stem of a word in lower case.

    >>> [stem(word) for word in ("raining", "rains", "libraries", "bert4", "달리")]
    ['rain', 'rain', 'librari', 'bert4', '달리']
    """
    if len(word) > _LONGEST or not _LATIN.fullmatch(word):
        return word
    if not hasattr(_own, "stemmer"):  # a stemmer is for one thread at a time
        from snowballstemmer.english_stemmer import EnglishStemmer

        _own.stemmer = EnglishStemmer()
    return cast(str, _own.stemmer.stemWord(word))
