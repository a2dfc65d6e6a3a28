"""A page of the documentation, run in a folder: its files written, its lines called, what they print compared with what it shows."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from website.blocks import Shown, shown, shown_files

NUMBER = re.compile(r"[-−]?\d[\d,.]*")
BLANKS = re.compile(r"[ ─]+")


def write_files(page: str, folder: Path) -> None:
    """Write every file that a page shows."""
    for name, text in shown_files(page).items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")


def run_page(page: str, munjang: Callable[..., Any], *, long_lines: bool = False) -> list[tuple[Shown, str]]:
    """Run every munjang line and Python block of a page in order; return what each group of lines printed.

    Exit codes must be what the page says.
    """
    printed = []
    for part in shown(page):
        exec(compile(part.code, "a Python block of the page", "exec"), {"__name__": "__page__"})
        printed.append((part, "".join(_call(line, munjang) for line in part.lines if long_lines or not line.takes_long)))
    return printed


def _call(line: Any, munjang: Callable[..., Any]) -> str:
    program, *arguments = line.words
    if program != "munjang":
        return ""
    outcome = munjang(*arguments)
    assert outcome.code == line.exit_code, f"{line.text}: {outcome.err}"
    assert outcome.out or "-o" in arguments or line.exit_code, line.text
    return str(outcome.out)


def without_numbers(text: str) -> list[str]:
    """Return the rows of an output with every number and every run of blanks made alike: another processor rounds otherwise."""
    rows = (BLANKS.sub(" ", NUMBER.sub("#", row)).strip() for row in text.splitlines())
    return [row for row in rows if row]
