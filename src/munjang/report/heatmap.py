"""A matrix of numbers with names on both sides → a picture: SVG, and the colours that a terminal uses for the same.

The colours run from pale to deep, are told apart by lightness alone (so also in print and by the colour-blind), and every cell's ink is
chosen for contrast. Every cell has a title, so pointing at it says its row, column and number.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

from munjang.errors import UsageError
from munjang.report.page import FONTS, escape
from munjang.types import Floats
from munjang.wording import count

MAX_CELLS = 40_000
"""A picture with more cells than this is larger than a browser likes and finer than an eye sees."""

CELL_WIDTH, CELL_HEIGHT, FONT_SIZE = 44, 26, 13  # pixels
LABEL_LIMIT = 40  # columns of a label, wide characters counting two

_STOPS = ((247, 251, 246), (199, 228, 208), (120, 188, 176), (44, 132, 143), (18, 78, 110), (12, 34, 72))

Colour = tuple[int, int, int]


@dataclass(frozen=True)
class Scale:
    """The numbers that the palest and the deepest colour stand for."""

    low: float
    high: float

    def share(self, value: float) -> float:
        """Return where a number lies between low and high, 0 to 1."""
        width = self.high - self.low
        return 0.0 if width <= 0 else min(max((value - self.low) / width, 0.0), 1.0)


def choose_scale(values_NM: Floats) -> Scale:
    """Return a scale from zero, or the smallest number if that is below, to the largest.

    >>> import numpy as np
    >>> choose_scale(np.array([[0.2, 0.5]]))
    Scale(low=0.0, high=0.5)
    """
    return Scale(min(float(values_NM.min(initial=0)), 0.0), float(values_NM.max(initial=0)))


def choose_colour(share: float) -> Colour:
    """Return the colour of a number between 0 (pale) and 1 (deep)."""
    place = min(max(share, 0.0), 1.0) * (len(_STOPS) - 1)
    below = min(int(place), len(_STOPS) - 2)
    part = place - below
    red, green, blue = (round(low + (high - low) * part) for low, high in zip(_STOPS[below], _STOPS[below + 1], strict=True))
    return red, green, blue


def choose_ink(background: Colour) -> Colour:
    """Return black or white, whichever reads better."""
    red, green, blue = background
    return (255, 255, 255) if 0.299 * red + 0.587 * green + 0.114 * blue < 140 else (17, 17, 17)


def heatmap_svg(values_NM: Floats, rows: Sequence[str], columns: Sequence[str], *, title: str, scale: Scale | None = None) -> str:
    """Return a picture of the matrix; row names stand at the left, column names slanted above."""
    _check(values_NM, rows, columns)
    scale = scale or choose_scale(values_NM)
    left = 16 + _measure_labels(rows)
    top = 24 + round(_measure_labels(columns) * 0.75)
    width, height = left + CELL_WIDTH * len(columns) + round(_measure_labels(columns) * 0.7) + 16, top + CELL_HEIGHT * len(rows) + 16
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" role="img" '
        f'font-family="{FONTS}" font-size="{FONT_SIZE}" fill="currentColor">',
        f"<title>{escape(title)}</title>",
    ]
    for number, name in enumerate(columns):
        x, y = left + CELL_WIDTH * number + CELL_WIDTH // 2, top - 8
        parts.append(f'<text transform="translate({x} {y}) rotate(-45)">{escape(shorten(name))}</text>')
    for number, name in enumerate(rows):
        y = top + CELL_HEIGHT * number + CELL_HEIGHT // 2 + 5
        parts.append(f'<text x="{left - 8}" y="{y}" text-anchor="end">{escape(shorten(name))}</text>')
    for row, name in enumerate(rows):
        for column, other in enumerate(columns):
            value = float(values_NM[row, column])
            says = f"{shorten(name)} · {shorten(other)}: {value:.3f}"
            parts.append(_draw_cell(value, says, x=left + CELL_WIDTH * column, y=top + CELL_HEIGHT * row, scale=scale))
    return "\n".join([*parts, "</svg>"]) + "\n"


def shorten(text: str, limit: int = LABEL_LIMIT) -> str:
    """Cut a name to `limit` columns.

    >>> shorten("겨울 날씨", 6)
    '겨울…'
    """
    text = " ".join(text.split())
    if count_columns(text) <= limit:
        return text
    end = next(end for end in range(len(text)) if count_columns(text[: end + 1]) > limit - 1)
    return text[:end].rstrip() + "…"


def count_columns(text: str) -> int:
    """Return how many columns a text takes; Hangul and other wide characters take two."""
    return sum(2 if unicodedata.east_asian_width(ch) in "WF" else 0 if unicodedata.combining(ch) else 1 for ch in text)


def _draw_cell(value: float, says: str, *, x: int, y: int, scale: Scale) -> str:
    background = choose_colour(scale.share(value))
    size = f'width="{CELL_WIDTH - 1}" height="{CELL_HEIGHT - 1}"'
    middle = f'x="{x + CELL_WIDTH // 2}" y="{y + CELL_HEIGHT // 2 + 4}" text-anchor="middle"'
    return (
        f'<g><title>{escape(says)}</title><rect x="{x}" y="{y}" {size} fill="{_format_hex(background)}"/>'
        f'<text {middle} font-size="11" fill="{_format_hex(choose_ink(background))}">{value:.2f}</text></g>'
    )


def _format_hex(colour_: Colour) -> str:
    return "#" + "".join(f"{part:02x}" for part in colour_)


def _measure_labels(names: Sequence[str]) -> int:
    return round(max((count_columns(shorten(name)) for name in names), default=0) * FONT_SIZE * 0.56)


def _check(values_NM: Floats, rows: Sequence[str], columns: Sequence[str]) -> None:
    if values_NM.shape != (len(rows), len(columns)):
        raise UsageError(f"heat map: {values_NM.shape} numbers for {count(len(rows), 'row')} and {count(len(columns), 'column')}")
    if values_NM.size > MAX_CELLS:
        raise UsageError(
            f"heat map: {len(rows):,} x {len(columns):,} cells are too many for a picture, the limit is {MAX_CELLS:,}\n"
            "  write the numbers instead (.npy or .csv), or give fewer lines"
        )
