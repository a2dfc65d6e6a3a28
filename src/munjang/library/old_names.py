"""Arguments of searches by the names that they had in Munjang 0.1, taken with a DeprecationWarning until 0.3.

`hybrid` is the only one: words are searched for by default now, and `by` restricts a search to one of the two.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import ParamSpec, TypeVar, cast

from munjang.library.ranking import By, Hybrid

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")

HYBRID = 'hybrid is deprecated and will be removed in 0.3: words and meaning are searched by default, by="meaning" looks at meaning alone'


def choose_by(hybrid: bool | Hybrid) -> By:
    """Return `by` for what `hybrid` asks for.

    >>> choose_by(True), choose_by(False)
    (None, 'meaning')
    """
    return hybrid if isinstance(hybrid, Hybrid) else None if hybrid else "meaning"


def take_hybrid(function: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
    """Make a function with the argument `by` take `hybrid` too, and warn."""

    @functools.wraps(function)
    def call(*given: Arguments.args, **named: Arguments.kwargs) -> Result:
        if "hybrid" in named:
            hybrid = cast(bool | Hybrid | None, named.pop("hybrid"))
            warnings.warn(HYBRID, DeprecationWarning, stacklevel=2)
            if hybrid is not None:
                named["by"] = choose_by(hybrid)
        return function(*given, **named)

    return call
