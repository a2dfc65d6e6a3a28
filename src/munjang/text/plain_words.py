"""Words and sentences by rules alone: for languages that write spaces, and for Korean where no analyser is installed.

In: a cleaned text. Out: (form, tag, start, end), with Kiwi's tags as far as rules know them: letters are SL, numbers SN, Han and Kana SH. A
Hangul word that ends like a verb is a verb; otherwise it is a noun, and what looks like a particle at its end is taken off. This is
right for most words and wrong for some; Kiwi knows better.
"""

from __future__ import annotations

import re

_HANGUL = "\uac00-\ud7af\u1100-\u11ff\u3130-\u318f"
_HAN = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
_WORDS = re.compile(
    rf"(?P<hangul>[{_HANGUL}]+)|(?P<han>[{_HAN}]+)|(?P<number>\d[\d.,]*\d|\d)|(?P<letters>[^\W\d_{_HANGUL}{_HAN}][^\W_{_HANGUL}{_HAN}]*)"
    r"|(?P<mark>[^\w\s]|_)"
)
_PARTICLES = sorted(
    """
    은 는 이 가 을 를 의 에 에서 에게 에게서 께 께서 로 으로 와 과 도 만 까지 부터 보다 처럼 마다 조차 밖에 이나 나 라도 이라도 이며
    에는 에도 에서는 에서도 으로는 으로도 로는 로도 와의 과의 에의 으로의 로의 까지의 부터의 에게는 이란 란 이라는 라는 에만 만을 만이
    들은 들이 들을 들의 들에게
    """.split(),  # noqa: SIM905
    key=len,
    reverse=True,
)
_OFTEN_PART_OF_A_WORD = frozenset("이가나로도만의과와란은")
_VERBS = re.compile(
    "(?:다|요|죠|니까|습니까|는데|지만|면서|하는|되는|있는|없는|하고|하여|하면|하지|하게|하기|되어|되고|하며|되며|위해|위한|통해|대한|대해|관한|따라|따른|했던|하던|"
    "하도록|되도록|하였음|있음|없음|것임|했음|됐음|되었음|함|됨|임)$"
)
_SENTENCE_END = re.compile(r"[.!?…][\"'”’)\]]*(?=\s)|[。！？][」』”’]*|\n\s*\n")
_ABBREVIATIONS = re.compile(r"(?:\b(?:Mr|Mrs|Ms|Dr|Prof|St|No|vs|etc|e\.g|i\.e|cf|Inc|Ltd|Co|Jr|Sr)|\b[A-Z]|\b\d+)\.$")


def plain_morphemes(text: str) -> list[tuple[str, str, int, int]]:
    """Return the words of a text with a tag and their place.

    >>> plain_morphemes("비가 heavy")
    [('비', 'NNG', 0, 1), ('가', 'JX', 1, 2), ('heavy', 'SL', 3, 8)]
    """
    found: list[tuple[str, str, int, int]] = []
    for word in _WORDS.finditer(text):
        start, end, kind = word.start(), word.end(), word.lastgroup
        if kind == "hangul":
            found += _hangul(word.group(), start)
        else:
            tag = {"han": "SH", "number": "SN", "letters": "SL"}.get(kind or "", "SO" if word.group() == "-" else "SW")
            found.append((word.group(), tag, start, end))
    return found


def plain_sentences(text: str) -> list[tuple[int, int]]:
    """Return where each sentence starts and ends: at . ! ? before white space, at 。 and at empty lines.

    >>> plain_sentences("It rains. Dr. Kim stays.")
    [(0, 9), (10, 24)]
    """
    places, start = [], 0
    for end in _SENTENCE_END.finditer(text):
        before = text[start : end.end()]
        if _ABBREVIATIONS.search(before) and not before.endswith("\n"):
            continue
        places.append((start, end.end()))
        start = end.end()
    places.append((start, len(text)))
    return [trimmed for place in places if (trimmed := _trimmed(text, *place))]


def _hangul(word: str, start: int) -> list[tuple[str, str, int, int]]:
    end = start + len(word)
    particle = next((p for p in _PARTICLES if word.endswith(p) and len(word) > len(p)), "")
    stem = word[: len(word) - len(particle)]
    if word in _PARTICLES:
        return [(word, "JX", start, end)]
    if _VERBS.search(word) and len(word) > 1:
        return [(word, "VV", start, end)]
    short = len(word) == 2 and particle in _OFTEN_PART_OF_A_WORD
    # A word of two characters more often ends in its own last one (나이, 종이) than in a particle, unless the particle is a sure one.
    if not particle or (short and not _sure(stem, particle)):
        return [(word, "NNG", start, end)]
    middle = start + len(stem)
    return [(stem, "NNG", start, middle), (particle, "JX", middle, end)]


def _sure(stem: str, particle: str) -> bool:
    """Return whether the last consonant before a particle is the one that this particle wants; 가 and 는 follow vowels only."""
    closed = (ord(stem[-1]) - 0xAC00) % 28 > 0 if "가" <= stem[-1] <= "힣" else False
    return {"이": closed, "은": closed, "과": closed, "가": not closed, "와": not closed}.get(particle, False)


def _trimmed(text: str, start: int, end: int) -> tuple[int, int] | None:
    inner = text[start:end]
    if not inner.strip():
        return None
    return start + len(inner) - len(inner.lstrip()), end - (len(inner) - len(inner.rstrip()))
