"""Analysers of the KoNLPy kind by name: those that may be loaded by their names, and objects that a program hands over.

An object with a `pos(text)` method, which returns pairs of a form and a tag, can split the words of a library or of an analysis. Its name
("pos:okt") goes into files, so that what was made with it is asked with it. A name of INSTALLED is loaded where its package is installed;
nothing else is imported by name. Any other object has to be handed over again (`use_analyser`) in each process.
"""

from __future__ import annotations

import re
from functools import lru_cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Literal, Protocol, TypeAlias, runtime_checkable

from munjang.errors import UsageError, quote

PosName: TypeAlias = Literal["mecab", "okt", "komoran"]
INSTALLED: dict[str, tuple[tuple[str, str], ...]] = {
    "mecab": (("mecab", "MeCab"), ("konlpy.tag", "Mecab")),  # python-mecab-ko, else KoNLPy's
    "okt": (("konlpy.tag", "Okt"),),
    "komoran": (("konlpy.tag", "Komoran"),),
}
"""Where analysers live that may be loaded by name, the preferred first."""
MARK = "pos:"

_NAME = re.compile(r"[a-z][a-z0-9_.-]{0,39}")
_used: dict[str, PosAnalyser] = {}


@runtime_checkable
class PosAnalyser(Protocol):
    """An object that reads Korean, such as KoNLPy's Okt, Komoran or Mecab."""

    def pos(self, text: str, /) -> Any:
        """Return pairs of a form and a tag."""


def use_analyser(analyser: PosAnalyser, name: str | None = None) -> str:
    """Make an object known by a name in this process, and return that name as files hold it; without a name, by that of its class.

    >>> class Letters:
    ...     def pos(self, text):
    ...         return [(letter, "NNG") for letter in text.split()]
    >>> use_analyser(Letters())
    'pos:letters'
    """
    name = (name or type(analyser).__name__).lower()
    if not isinstance(analyser, PosAnalyser):
        raise UsageError(f"the analyser is {type(analyser).__name__}, expected an object with a pos(text) method")
    if not _NAME.fullmatch(name):
        raise UsageError(f"the analyser's name {quote(name)} holds other signs than letters, digits, - . _, or has more than 40")
    _used[name] = analyser
    return MARK + name


def find_analyser(name: str) -> PosAnalyser:
    """Return the analyser that a name in a file means, with or without its mark."""
    name = name.removeprefix(MARK)
    if name in _used:
        return _used[name]
    if name in INSTALLED:
        return _load(name)
    raise UsageError(
        f"the analyser {quote(name)} is not known in this process, expected {', '.join(INSTALLED)} or an object\n"
        f"  hand it over first: munjang.use_analyser(your_object, {name!r})"
    )


def is_pos_name(name: str) -> bool:
    """Say whether a name in a file is that of such an analyser, known here or not."""
    return name.startswith(MARK) and _NAME.fullmatch(name.removeprefix(MARK)) is not None


@lru_cache(maxsize=len(INSTALLED))
def _load(name: str) -> PosAnalyser:
    for module, attribute in INSTALLED[name]:
        if find_spec(module.partition(".")[0]) is None:
            continue
        try:
            made: PosAnalyser = getattr(import_module(module), attribute)()
        except Exception as error:  # no Java, no dictionary: whatever that package says
            raise UsageError(f"the analyser {name} does not start: {quote(str(error), 200)}") from error
        return made
    package = "python-mecab-ko" if name == "mecab" else "konlpy"
    raise UsageError(f"the analyser {name} is not installed\n  pip install {package}, or choose another analyser")
