"""What Munjang's verbs do with every kind of thing that may be handed over as texts, as a table.

`test_text_inputs.py` holds the verbs to it, and the pages docs/python-inputs.md and docs/ko/python-inputs.md show it. After a change here:

    python -m tests.contract.text_inputs        writes the tables of both pages
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

ROOT = Path(__file__).parents[2]
PAGES = {"en": ROOT / "docs/python-inputs.md", "ko": ROOT / "docs/ko/python-inputs.md"}

Group: TypeAlias = Literal["one or several", "several", "records", "pairs", "one", "ids"]
GROUPS: Mapping[Group, Mapping[str, str]] = {
    "one or several": {"en": "`encode`", "ko": "`encode`"},
    "several": {"en": "several texts", "ko": "여러 글"},
    "records": {"en": "records", "ko": "레코드"},
    "pairs": {"en": "pairs", "ko": "글 쌍"},
    "one": {"en": "one text", "ko": "글 하나"},
    "ids": {"en": "ids", "ko": "id"},
}

TEXTS = ["rain", "snow", "wind and rain"]


@dataclass(frozen=True)
class Kind:
    """A kind of thing to hand over: what it is called, how one is made, and which groups of verbs take it."""

    en: str
    ko: str
    make: Callable[[], Any]
    taken: frozenset[Group] = frozenset()


def _frame(library: str) -> Any:
    import importlib

    return importlib.import_module(library).DataFrame({"id": ["a", "b", "c"], "text": TEXTS, "year": [2023, 2024, 2025]})


def _series(library: str, values: list[Any]) -> Any:
    import importlib

    return importlib.import_module(library).Series(values)


def _array(values: list[Any], dtype: Any = None) -> Any:
    import numpy as np

    return np.array(values, dtype=dtype)


_SEVERAL: frozenset[Group] = frozenset({"one or several", "several", "records", "ids"})

KINDS = (
    Kind("a text", "글 하나", lambda: "rain", frozenset({"one or several", "one"})),
    Kind("a list of texts", "글 리스트", lambda: list(TEXTS), _SEVERAL),
    Kind("a tuple of texts", "글 튜플", lambda: tuple(TEXTS), _SEVERAL),
    Kind("a generator of texts", "글 제너레이터", lambda: (text for text in TEXTS), _SEVERAL),
    Kind("the values of a dict", "dict의 값들", lambda: dict(enumerate(TEXTS)).values(), _SEVERAL),
    Kind("a NumPy array of texts", "글 NumPy 배열", lambda: _array(TEXTS), _SEVERAL),
    Kind("a NumPy array of objects, all texts", "object형 NumPy 배열, 모두 글", lambda: _array(TEXTS, object), _SEVERAL),
    Kind("a pandas Series of texts", "글 pandas Series", lambda: _series("pandas", TEXTS), _SEVERAL),
    Kind("a polars Series of texts", "글 polars Series", lambda: _series("polars", TEXTS), _SEVERAL),
    Kind("a pandas DataFrame", "pandas DataFrame", lambda: _frame("pandas"), frozenset({"records"})),
    Kind("a polars DataFrame", "polars DataFrame", lambda: _frame("polars"), frozenset({"records"})),
    Kind("a polars LazyFrame", "polars LazyFrame", lambda: _frame("polars").lazy()),
    Kind("a list of mappings with `text`", "`text`가 있는 dict 리스트", lambda: [{"text": text} for text in TEXTS], frozenset({"records"})),
    Kind("a list of pairs of texts", "글 쌍 리스트", lambda: [("rain", "snow"), ("snow", "wind")], frozenset({"pairs"})),
    Kind(
        "a NumPy array of two columns", "열이 둘인 NumPy 배열", lambda: _array([["rain", "snow"], ["snow", "wind"]]), frozenset({"pairs"})
    ),
    Kind("a pandas Series with a missing value", "빈 값이 있는 pandas Series", lambda: _series("pandas", ["rain", None])),
    Kind("a polars Series with a missing value", "빈 값이 있는 polars Series", lambda: _series("polars", ["rain", None])),
    Kind("a list with `None` in it", "`None`이 든 리스트", lambda: ["rain", None]),
    Kind("a list with a number in it", "수가 든 리스트", lambda: ["rain", 3]),
    Kind("a list of bytes", "bytes 리스트", lambda: [b"rain"]),
    Kind("a generator of numbers", "수 제너레이터", lambda: iter(range(3))),
    Kind("a dict", "dict", lambda: {"a": "rain", "b": "snow"}),
    Kind("a set", "set", lambda: set(TEXTS), frozenset({"ids"})),
    Kind("bytes", "bytes", lambda: b"rain"),
    Kind("`None`", "`None`", lambda: None),
    Kind("a number", "수", lambda: 3),
)

_WORDS = {"en": ("what is handed over", "taken", "error"), "ko": ("넘겨주는 것", "받음", "오류")}


def table(language: str) -> str:
    """Return the table in Markdown."""
    head, yes, no = _WORDS[language]
    lines = [f"| {head} | {' | '.join(names[language] for names in GROUPS.values())} |", "|---|" + "---|" * len(GROUPS)]
    for kind in KINDS:
        cells = (yes if group in kind.taken else no for group in GROUPS)
        lines.append(f"| {getattr(kind, language)} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def with_table(page: str, language: str) -> str:
    """Return a page with this table in the place of its first one."""
    lines = page.splitlines(keepends=True)
    start = next(place for place, line in enumerate(lines) if line.startswith("|"))
    stop = next((place for place in range(start, len(lines)) if not lines[place].startswith("|")), len(lines))
    return "".join(lines[:start]) + table(language) + "".join(lines[stop:])


if __name__ == "__main__":
    for name, path in PAGES.items():
        path.write_text(with_table(path.read_text(encoding="utf-8"), name), encoding="utf-8")
