"""A matrix with names → a coloured table in the terminal; on a pipe only the numbers remain.

A matrix wider than the terminal is printed in several blocks of columns, never cut.
"""

from __future__ import annotations

from collections.abc import Sequence

from munjang.cli.show import console, one_line
from munjang.report.heatmap import choose_colour, choose_ink, choose_scale, count_columns, shorten
from munjang.types import Floats

CELL = 7  # columns of one number with its space
ROW_NAME = 36  # columns of a row's name at most
COLUMN_NAME = 6


def print_heat(values_NM: Floats, rows: Sequence[str], columns: Sequence[str]) -> None:
    """Print the matrix with a background colour for every number."""
    screen = console()
    names = [shorten(one_line(name), ROW_NAME) for name in rows]
    margin = max((count_columns(name) for name in names), default=0) + 1
    step = max((screen.width - margin) // CELL, 1)
    for start in range(0, len(columns), step):
        _print_block(values_NM, names, columns, range(start, min(start + step, len(columns))), margin)


def _print_block(values_NM: Floats, names: Sequence[str], columns: Sequence[str], shown: range, margin: int) -> None:
    from rich.style import Style
    from rich.text import Text

    scale = choose_scale(values_NM)
    screen = console()
    head = Text(" " * margin)
    for column in shown:
        head.append(_right(shorten(one_line(columns[column]), COLUMN_NAME), CELL - 1) + " ", Style(bold=True))
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


def _right(text: str, width: int) -> str:
    return " " * max(width - count_columns(text), 0) + text
