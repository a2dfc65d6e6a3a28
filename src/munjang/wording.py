"""How values are said in one line: a count with its noun, an object as a short `repr`.

`brief_repr` is for objects that a person meets at the Python prompt: arrays show their shape, sequences their length, texts their
beginning. Fields that a dataclass keeps out of its repr (`field(repr=False)`, such as a password) stay out of it here too.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import fields, is_dataclass
from difflib import get_close_matches
from itertools import islice
from pathlib import Path
from typing import Literal, TypeAlias, TypeVar

from munjang.errors import quote

Language: TypeAlias = Literal["en", "ko"]
"""What our own words and samples are written in."""

LONGEST_REPR = 200
"""Characters that a repr stays below."""

_TEXT = 40
_FEW = 3
_NAME = 100
_COMPARED = 1_000
_IRREGULAR = {"index": "indexes", "query": "queries", "entry": "entries", "copy": "copies", "is": "are", "has": "have", "was": "were"}
_SECRET = re.compile(r"(?<=://)([^/\s:@]*):[^\s]*@|((?:password|token|secret|key)=)[^&\s]*", re.IGNORECASE)
_Class = TypeVar("_Class", bound=type)


def count(number: int, noun: str) -> str:
    """Return a number with its noun, in the plural unless it is one; of several words the last is bent.

    >>> count(1, "cluster"), count(1_200, "judged query"), count(0, "match")
    ('1 cluster', '1,200 judged queries', '0 matches')
    """
    return f"{number:,} {plural(number, noun)}"


def plural(number: int, word: str) -> str:
    """Return a noun, or is, has or was, as it goes with a number.

    >>> plural(1, "row"), plural(2, "row"), plural(2, "is")
    ('row', 'rows', 'are')
    """
    if number == 1:
        return word
    before, space, last = word.rpartition(" ")
    ending = "es" if last.endswith(("s", "x", "ch", "sh")) else "s"
    return before + space + _IRREGULAR.get(last, last + ending)


def nearest_name(name: str, known: Iterable[str], *, cutoff: float = 0.6) -> str | None:
    """Return the known name that was probably meant; long names and those behind many others are not looked at, which would take long.

    >>> nearest_name("yaer", ["text", "year"])
    'year'
    """
    short = [each for each in islice(known, _COMPARED) if len(each) <= _NAME]
    near = get_close_matches(name, short, n=1, cutoff=cutoff) if len(name) <= _NAME else []
    return near[0] if near else None


def brief_repr(cls: _Class) -> _Class:
    """Give a dataclass a repr of one line, below LONGEST_REPR characters.

    >>> from dataclasses import dataclass
    >>> @brief_repr
    ... @dataclass
    ... class Found:
    ...     text: str
    ...     rows: list[int]
    >>> Found("rain " * 20, [1, 2, 3])
    Found(text='rain rain rain rain rain rain rain rain…', rows=[1, 2, 3])
    >>> Found("", list(range(1_000)))
    Found(text='', rows=[0, 1, 2, … 1,000])
    """
    cls.__repr__ = _shorten  # type: ignore[method-assign, assignment]  # a function of the instance, as every method
    return cls


def quote_place(place: str | Path) -> str:
    """Quote a path or an address without the password in it, clipped.

    >>> quote_place("postgresql://me:secret@host/db?sslpassword=x")
    "'postgresql://me@host/db?sslpassword=…'"
    """
    return quote(_SECRET.sub(lambda found: f"{found[2]}…" if found[2] else f"{found[1]}@", str(place)), _TEXT)


def name_facts(name: str, facts: Sequence[str]) -> str:
    """Return `Name(fact, fact, …)`, without the facts that would make it too long.

    >>> name_facts("Library", ["'news.db'", "10 documents"])
    "Library('news.db', 10 documents)"
    """
    kept: list[str] = []
    room = LONGEST_REPR - len(name) - len("(, …)") - 1
    for fact in facts:
        room -= len(fact) + len(", ")
        if room < 0:
            return f"{name}({', '.join([*kept, '…'])})"
        kept.append(fact)
    return f"{name}({', '.join(kept)})"


def _shorten(self: object) -> str:
    assert is_dataclass(self)
    said = [f"{field.name}={_show_value(getattr(self, field.name))}" for field in fields(self) if field.repr]
    return name_facts(type(self).__name__, said)


def _show_value(value: object, *, nested: bool = False) -> str:
    if isinstance(value, str | Path):
        return quote_place(value)
    if value is None or isinstance(value, bool | int):
        return str(value)
    if isinstance(value, float):
        return f"{value:.4g}"
    if hasattr(value, "shape") and hasattr(value, "dtype"):
        return f"<{value.dtype} {' x '.join(str(size) for size in value.shape)}>"
    if isinstance(value, Mapping | Sequence | Set) and not isinstance(value, bytes):
        return f"<{len(value):,}>" if nested or type(value).__repr__ is _shorten else _show_first_few(value)
    return f"<{type(value).__name__}>" if nested and is_dataclass(value) else _show_object(value)


def _show_first_few(values: Mapping[object, object] | Sequence[object] | Set[object]) -> str:
    kept: list[str] = []
    room = _TEXT
    for each in islice(values, _FEW):
        key = f"{each}: " if isinstance(values, Mapping) else ""
        said = key[:_TEXT] + _show_value(values[each] if isinstance(values, Mapping) else each, nested=True)
        room -= len(said)
        if room < 0:
            break
        kept.append(said)
    rest = [] if len(kept) == len(values) else [f"… {len(values):,}"]
    return f"[{', '.join(kept + rest)}]" if kept or not values else f"<{len(values):,}>"


def _show_object(value: object) -> str:
    """Return an object's own repr if it is short and on one line, else only what it is."""
    text = repr(value) if type(value).__repr__ is not object.__repr__ else ""
    return text if text and len(text) <= 2 * _TEXT and text.isprintable() else f"<{type(value).__name__}>"
