"""Relative links and anchors of Markdown files: which of them lead nowhere.

Knows what our pages use: links and pictures in brackets, headings with `#`. Links to other servers are not followed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

_FENCE = re.compile(r"^(```+).*?^\1\s*$", re.MULTILINE | re.DOTALL)
_CODE = re.compile(r"(`+)(?:(?!\1).)+\1")
_LINK = re.compile(r"\]\(\s*<?([^)\s>]+)>?(?:\s+\"[^\"]*\")?\)")
_HEADING = re.compile(r"^#{1,6} +(.+?) *#*$", re.MULTILINE)
_ELSEWHERE = re.compile(r"^[a-z][a-z0-9+.-]*:", re.IGNORECASE)


def broken_links(pages: Iterable[Path]) -> list[str]:
    """Return a line for every link of these files that leads nowhere."""
    return [f"{page}: {problem}" for page in pages for problem in _problems(page)]


def anchors(markdown: str) -> set[str]:
    """Return the names that a page's headings can be linked by.

    >>> sorted(anchors("# Training, twice\\n## `munjang mine`\\n## `munjang mine`\\n"))
    ['munjang-mine', 'munjang-mine_1', 'training-twice']
    """
    found: set[str] = set()
    for heading in _HEADING.findall(_FENCE.sub("", markdown)):
        name = slug = _slug(heading)
        number = 0
        while name in found:
            number += 1
            name = f"{slug}_{number}"
        found.add(name)
    return found


def links(markdown: str) -> list[str]:
    """Return the targets of all links and pictures outside of code.

    >>> links("[a](b.md#c) and `[d](e.md)` and ![f](g.svg)")
    ['b.md#c', 'g.svg']
    """
    return _LINK.findall(_CODE.sub("", _FENCE.sub("", markdown)))


def _problems(page: Path) -> list[str]:
    text = page.read_text(encoding="utf-8")
    problems = []
    for target in links(text):
        if _ELSEWHERE.match(target):
            continue
        name, _, anchor = target.partition("#")
        file = page.parent / name if name else page
        if not file.exists():
            problems.append(f"{target}: there is no such file")
        elif anchor and file.suffix == ".md" and anchor not in anchors(file.read_text(encoding="utf-8")):
            problems.append(f"{target}: there is no such heading")
    return problems


def _slug(heading: str) -> str:
    plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "").lower()
    return re.sub(r"[^\w\- ]", "", plain).strip().replace(" ", "-")
