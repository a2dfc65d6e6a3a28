"""A page of the documentation → what can be run in it: the files it shows, the lines it tells to type, what those print.

How a page is written, so that it can be run:

- a file is its name in backquotes and a colon, an empty line, and a fenced block;
- every line of an `sh` block is one call of `munjang` (or, in a README, of `./run` and `pip`, which are run elsewhere);
- `# exit 1` at a line's end says which exit code it has, `# 3 minutes` (`# 3분`) that it takes long and is left out of quick tests;
- an `output` block directly after an `sh` block is what the lines of that block print. `python -m website.outputs` writes it anew.
"""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from itertools import zip_longest

_FENCED = re.compile(r"^(?:`(?P<name>[^`\s]+)`:\n\n)?```(?P<language>\w+)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
_EXIT = re.compile(r"# exit (\d+)")
_LONG = re.compile(r"# [^#]*(minute|분)")


@dataclass(frozen=True)
class Block:
    """A fenced block; `start` and `stop` are the places of its text in the page, `name` the file that it shows."""

    language: str
    text: str
    start: int
    stop: int
    name: str | None


@dataclass(frozen=True)
class Line:
    """One line of an sh block."""

    text: str
    words: tuple[str, ...]
    exit_code: int
    takes_long: bool


@dataclass(frozen=True)
class Shown:
    """Lines that are typed together, or Python code, and the output block that follows them, if there is one."""

    lines: tuple[Line, ...]
    code: str
    output: Block | None


def blocks(page: str) -> list[Block]:
    """Return every fenced block of a page that names its language.

    >>> blocks("`a.txt`:\\n\\n```text\\nrain\\n```\\n")
    [Block(language='text', text='rain\\n', start=18, stop=23, name='a.txt')]
    """
    return [Block(found["language"], found["text"], *found.span("text"), found["name"]) for found in _FENCED.finditer(page)]


def shown_files(page: str) -> dict[str, str]:
    """Return the files that a page shows, by name."""
    return {block.name: block.text for block in blocks(page) if block.name}


def lines(block: Block) -> tuple[Line, ...]:
    """Return the lines of an sh block, empty ones and comments left out."""
    return tuple(_line(text) for text in block.text.splitlines() if text.strip() and not text.startswith("#"))


def shown(page: str) -> list[Shown]:
    """Return what a page tells to run, in order, each with the output that it shows."""
    found = blocks(page)
    return [
        Shown(
            lines(block) if block.language == "sh" else (),
            block.text if block.language == "python" else "",
            after if after and after.language == "output" and page[block.stop : after.start].count("\n") <= 3 else None,
        )
        for block, after in zip_longest(found, found[1:])
        if block.language in ("sh", "python") and not block.name
    ]


def _line(text: str) -> Line:
    code = _EXIT.search(text)
    return Line(text, tuple(shlex.split(text, comments=True)), int(code[1]) if code else 0, _LONG.search(text) is not None)
