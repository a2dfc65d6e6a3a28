"""Small pieces of Markdown: tables, code, and docstrings as paragraphs."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Sequence
from typing import Any

_ARGUMENTS = re.compile(r"^(Args|Returns|Raises|Yields):$")
_COLUMNS = re.compile(r"^\S+ {2,}\S")
_ITEM = re.compile(r"^    (\w+): (.*)$")


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table; bars and line ends in cells are made harmless."""
    lines = ["| " + " | ".join(heads) + " |", "|" + "---|" * len(heads)]
    lines += ["| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in row) + " |" for row in rows]
    return "\n".join(lines) + "\n"


def code(text: str) -> str:
    """Return text as inline code, or nothing for nothing.

    >>> code("a"), code("")
    ('`a`', '')
    """
    return f"`{text}`" if text else ""


def fenced(text: str, language: str = "text") -> str:
    """Return a block of code."""
    return f"```{language}\n{text.rstrip()}\n```\n"


def documented(thing: Any) -> str:
    """Return a docstring as Markdown: arguments as a list, examples and drawings as code."""
    made: list[str] = []
    for paragraph in re.split(r"\n{2,}", inspect.cleandoc(inspect.getdoc(thing) or "")):
        lines = paragraph.splitlines()
        if not lines:
            continue
        if lines[0].startswith(">>>"):
            made.append(fenced(paragraph, "pycon"))
        elif _ARGUMENTS.match(lines[0]):
            made.append("\n".join(_listed(lines[1:])) + "\n")
        elif all(line.startswith("    ") for line in lines) or all(_COLUMNS.match(line) for line in lines):
            made.append(fenced(inspect.cleandoc(paragraph)))
        else:
            made.append(paragraph + "\n")
    return "\n".join(made)


def _listed(lines: Sequence[str]) -> list[str]:
    made: list[str] = []
    for line in lines:
        item = _ITEM.match(line)
        if item:
            made.append(f"- `{item[1]}`: {item[2]}")
        elif made:
            made[-1] += " " + line.strip()
        else:
            made.append(line.strip())
    return made
