"""How results are shown: JSON or a table on standard output, notes on standard error.

A matrix is a coloured table, on a pipe only its numbers; one wider than the terminal is printed in several blocks of columns, never cut.
Texts of users are shown on one line and without control characters, so that a text cannot move the cursor or recolour a terminal.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from munjang.wording import count

if TYPE_CHECKING:
    from rich.console import Console

    from munjang.types import Floats

PIPE_WIDTH = 160
"""Columns of a table that nobody looks at directly; wide enough not to cut sentences."""


def emit(value: Any) -> None:
    """Print one JSON value on one line of standard output."""
    print(json.dumps(value, ensure_ascii=False, allow_nan=False))


def note(message: str) -> None:
    """Say something on standard error."""
    print(f"munjang: {message}", file=sys.stderr)


def one_line(text: str) -> str:
    r"""Return the text on one line: white space becomes spaces, anything unprintable its escape.

    >>> one_line("a\tb\x1b[31m")
    'a b\\x1b[31m'
    """
    joined = " ".join(text.split())
    return joined if joined.isprintable() else "".join(ch if ch.isprintable() else ascii(ch)[1:-1] for ch in joined)


def console() -> Console:
    """Return a console on standard output, with colours only on a terminal."""
    from rich.console import Console

    watched = sys.stdout.isatty() or "COLUMNS" in os.environ
    return Console(width=None if watched else PIPE_WIDTH, highlight=False, emoji=False, markup=False)


def print_table(
    columns: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    right: Sequence[str] = (),
    title: str | None = None,
    empty: str = "there is nothing to show",
) -> None:
    """Print a table, or without rows the sentence `empty`; the columns named in `right` hold numbers."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, title=None if title is None else Text(title), title_justify="left")
    for name in columns:
        table.add_column(Text(name), justify="right" if name in right else "left", overflow="fold")
    for row in rows:
        table.add_row(*(Text(one_line(cell)) for cell in row))
    if table.row_count:
        console().print(table)
    else:
        print(one_line(empty if title is None else f"{title}: {empty}"))


def print_facts(facts: Iterable[tuple[str, str]]) -> None:
    """Print names and values in two columns."""
    pairs = list(facts)
    width = max((len(name) for name, _ in pairs), default=0)
    for name, value in pairs:
        print(f"{name:<{width}}  {one_line(value)}")


def size_text(size: int) -> str:
    """Say a number of bytes.

    >>> size_text(90_900_000)
    '90.9 MB'
    """
    for unit, factor in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if size >= factor:
            return f"{size / factor:.1f} {unit}"
    return count(size, "byte")


CELL = 7  # columns of one number with its space
ROW_NAME = 36  # columns of a row's name at most
COLUMN_NAME = 6


def print_heat(values_NM: Floats, rows: Sequence[str], columns: Sequence[str]) -> None:
    """Print the matrix with a background colour for every number."""
    from munjang.report.heatmap import count_columns, shorten

    screen = console()
    names = [shorten(one_line(name), ROW_NAME) for name in rows]
    margin = max((count_columns(name) for name in names), default=0) + 1
    step = max((screen.width - margin) // CELL, 1)
    for start in range(0, len(columns), step):
        _print_block(values_NM, names, columns, range(start, min(start + step, len(columns))), margin)


def _print_block(values_NM: Floats, names: Sequence[str], columns: Sequence[str], shown: range, margin: int) -> None:
    from rich.style import Style
    from rich.text import Text

    from munjang.report.heatmap import choose_colour, choose_ink, choose_scale, count_columns, shorten

    scale = choose_scale(values_NM)
    screen = console()
    head = Text(" " * margin)
    for column in shown:
        name = shorten(one_line(columns[column]), COLUMN_NAME)
        head.append(" " * max(CELL - 1 - count_columns(name), 0) + name + " ", Style(bold=True))
    screen.print(head, no_wrap=True, crop=False, soft_wrap=True)
    for row, name in enumerate(names):
        line = Text(name + " " * (margin - count_columns(name)))
        for column in shown:
            value = float(values_NM[row, column])
            background = choose_colour(scale.share(value))
            style = Style(color=_rgb(choose_ink(background)), bgcolor=_rgb(background))
            line.append(f"{value:{CELL - 1}.2f} ", style)
        screen.print(line, no_wrap=True, crop=False, soft_wrap=True)
    screen.print()


def _rgb(parts: tuple[int, int, int]) -> str:
    return "rgb({},{},{})".format(*parts)
