"""A self-contained HTML page: one file, no font and nothing else loaded from elsewhere, no script but the one it is handed.

In: a title and parts that are HTML already; text from outside goes through `text`, `table` or `escape` first, data for a script through
`data`. Out: the page. Light and dark follow the reader's system. Charts (lines over steps, histograms that share an axis) are SVG that
takes its colours from the page and its size from its box; numbers that are not finite are left out.
"""

from __future__ import annotations

import base64
import hashlib
import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from munjang.report.training_words import TrainingWord
from munjang.report.words import say
from munjang.tables import escape as escape
from munjang.wording import Language

_SYSTEM_FONTS = "system-ui, -apple-system, 'Segoe UI'"
_KOREAN_FONTS = "'Apple SD Gothic Neo', 'Malgun Gothic', 'Noto Sans KR', 'Noto Sans CJK KR', NanumGothic"
FONTS = f"{_SYSTEM_FONTS}, {_KOREAN_FONTS}, sans-serif"
"""Korean fonts of every system stand before the last resort."""

_STYLE = f"""
:root {{ color-scheme: light dark; --paper: #ffffff; --ink: #1b1f24; --quiet: #5b6470; --line: #d9dee5; }}
@media (prefers-color-scheme: dark) {{ :root {{ --paper: #14171b; --ink: #e6e9ed; --quiet: #9aa4b0; --line: #333a43; }} }}
body {{ max-width: 64rem; margin: 2rem auto; padding: 0 1rem 3rem; background: var(--paper); color: var(--ink);
  font: 16px/1.5 {FONTS}; word-break: keep-all; overflow-wrap: anywhere; }}
h1 {{ font-size: 1.6rem; margin-bottom: .25rem; }}
h2 {{ font-size: 1.15rem; margin: 2.25rem 0 .75rem; padding-bottom: .25rem; border-bottom: 1px solid var(--line); }}
svg {{ width: 100%; height: auto; }}
.wide {{ overflow-x: auto; }}
.wide svg {{ width: auto; }}
table {{ border-collapse: collapse; margin: 1rem 0; font-variant-numeric: tabular-nums; }}
th, td {{ padding: .25rem .75rem; border-bottom: 1px solid var(--line); text-align: left; vertical-align: top; }}
th {{ color: var(--quiet); }}
td.number, th.number {{ text-align: right; }}
.quiet, footer {{ color: var(--quiet); }}
.warning {{ border-left: 4px solid #d97706; padding: .5rem 1rem; background: #d9770622; }}
footer {{ margin-top: 3rem; font-size: .85rem; }}
"""

_POLICY = "default-src 'none'; style-src 'unsafe-inline'"
"""The page itself forbids the browser to fetch or run anything."""


def page(title: str, parts: Sequence[str], *, lead: str = "", footer: str = "", language: Language = "en", script: str = "") -> str:
    """Return the whole page; title, lead and footer are text, parts are HTML, `script` is our own and the only one that may run."""
    policy = _POLICY + (f"; script-src 'sha256-{_hash(script)}'" if script else "")
    head = f'<meta charset="utf-8"><meta http-equiv="Content-Security-Policy" content="{policy}"><title>{escape(title)}</title>'
    viewport = '<meta name="viewport" content="width=device-width, initial-scale=1">'
    top = [f"<h1>{escape(title)}</h1>", *([text(lead, style="quiet")] if lead else [])]
    end = [*([text(footer, tag="footer")] if footer else []), *([f"<script>{script}</script>"] if script else [])]
    body = "\n".join([*top, *parts, *end])
    opening = f'<!doctype html>\n<html lang="{language}">'
    return f"{opening}<head>{head}{viewport}<style>{_STYLE}</style></head>\n<body>\n{body}\n</body></html>\n"


def section(heading: str, html: str) -> str:
    """Return a part with a heading; what is under it is HTML already."""
    return f"<section>\n{text(heading, tag='h2')}\n{html}\n</section>"


def wide(html: str) -> str:
    """Return a part that scrolls sideways where it is wider than the page."""
    return f'<div class="wide">{html}</div>'


def text(written: str, *, tag: str = "p", style: str = "") -> str:
    """Return text as one escaped element."""
    kind = f' class="{escape(style)}"' if style else ""
    return f"<{tag}{kind}>{escape(written)}</{tag}>"


def table(head: Sequence[str], rows: Iterable[Sequence[object]], *, numbers: Sequence[str] = ()) -> str:
    """Return a table; numbers stand to the right, and so do texts in the columns named in `numbers`."""
    right = [name in numbers for name in head]
    top = "".join(f"<th{_format_number(aside)}>{escape(name)}</th>" for name, aside in zip(head, right, strict=True))
    body = "".join("<tr>" + "".join(_write_cell(value, aside) for value, aside in zip(row, right, strict=True)) + "</tr>" for row in rows)
    return f"<table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table>"


def data(name: str, value: Any) -> str:
    """Return JSON for the page's script, as an element of that id; nothing in it can end the element.

    >>> data("map", ["</script>"])
    '<script type="application/json" id="map">["\\\\u003c/script>"]</script>'
    """
    written = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")).replace("<", "\\u003c")
    written = written.encode(errors="replace").decode()  # a lone surrogate fits in no file
    return f'<script type="application/json" id="{escape(name)}">{written}</script>'


def _hash(script: str) -> str:
    return base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()


def _format_number(aside: bool) -> str:
    return ' class="number"' if aside else ""


def _write_cell(value: object, aside: bool) -> str:
    if isinstance(value, float):
        return f'<td class="number">{value:.4f}</td>'
    if isinstance(value, int):
        return f'<td class="number">{value:,}</td>'
    return f"<td{_format_number(aside)}>{escape(str(value))}</td>"


WIDTH, HEIGHT = 640, 240
LEFT, RIGHT, TOP, BOTTOM = 72, 12, 12, 38
_HALO = "paint-order:stroke;stroke:var(--paper);stroke-width:4px;stroke-linejoin:round"  # names stay readable on curves
COLOURS = ("#2563eb", "#d97706", "#059669", "#db2777")


@dataclass(frozen=True)
class Line:
    """One curve."""

    name: str
    x: Sequence[float]
    y: Sequence[float]


@dataclass(frozen=True)
class Bars:
    """The values of one histogram."""

    name: str
    values: Sequence[float]


def line_chart(lines: Sequence[Line], *, title: str, x_title: str, y_title: str, points: int = 600, language: Language = "en") -> str:
    """Return curves over a common pair of axes; a curve of more than `points` points is averaged in steps."""
    thinned = [_thin(line, points) for line in lines]
    xs = [x for line in thinned for x in line.x]
    ys = [y for line in thinned for y in line.y]
    if not xs:
        return _draw_frame(
            title, f'<text x="50%" y="50%" text-anchor="middle">{escape(say(TrainingWord.NOTHING_MEASURED, language))}</text>'
        )
    x_range, y_range = _find_range(xs), _find_range(ys)
    body = [_draw_axes(x_range, y_range, x_title, y_title)]
    for index, line in enumerate(thinned):
        places = " ".join(f"{_place_x(x, x_range):.1f},{_place_y(y, y_range):.1f}" for x, y in zip(line.x, line.y, strict=True))
        colour = COLOURS[index % len(COLOURS)]
        body.append(f'<polyline points="{places}" fill="none" stroke="{colour}" stroke-width="1.6"/>')
        if len(line.x) == 1:
            x, y = places.split(",")
            body.append(f'<circle cx="{x}" cy="{y}" r="3" fill="{colour}"/>')
    body.append(_draw_legend([line.name for line in lines]))
    return _draw_frame(title, "".join(body))


def histogram(
    groups: Sequence[Bars], *, title: str, x_title: str, bounds: tuple[float, float], bins: int = 40, language: Language = "en"
) -> str:
    """Return histograms over the same bins; heights are shares of each group, so that groups of unlike size compare."""
    low, high = bounds
    shares = [_compute_shares(group.values, low, high, bins) for group in groups]
    top = max((share for group in shares for share in group), default=0.0) or 1.0
    body = [_draw_axes((low, high), (0.0, top), x_title, say(TrainingWord.SHARE, language))]
    for index, group in enumerate(shares):
        colour = COLOURS[index % len(COLOURS)]
        for place, share in enumerate(group):
            if share > 0:
                left = _place_x(low + (high - low) * place / bins, (low, high))
                right = _place_x(low + (high - low) * (place + 1) / bins, (low, high))
                y = _place_y(share, (0.0, top))
                body.append(
                    f'<rect x="{left:.1f}" y="{y:.1f}" width="{right - left:.1f}" height="{HEIGHT - BOTTOM - y:.1f}" '
                    f'fill="{colour}" fill-opacity="0.45"/>'
                )
    body.append(_draw_legend([group.name for group in groups]))
    return _draw_frame(title, "".join(body))


def _thin(line: Line, points: int) -> Line:
    kept = [(x, y) for x, y in zip(line.x, line.y, strict=True) if math.isfinite(x) and math.isfinite(y)]
    size = max(1, math.ceil(len(kept) / points))
    groups = [kept[start : start + size] for start in range(0, len(kept), size)]
    return Line(line.name, [group[-1][0] for group in groups], [sum(y for _, y in group) / len(group) for group in groups])


def _compute_shares(values: Sequence[float], low: float, high: float, bins: int) -> list[float]:
    counts = [0] * bins
    finite = [value for value in values if math.isfinite(value)]
    for value in finite:
        counts[min(bins - 1, max(0, int((value - low) / (high - low) * bins)))] += 1
    return [count / len(finite) for count in counts] if finite else []


def _find_range(values: Sequence[float]) -> tuple[float, float]:
    low, high = min(values), max(values)
    return (low, high) if high > low else (low - 0.5, high + 0.5)


def _place_x(value: float, bounds: tuple[float, float]) -> float:
    return LEFT + (value - bounds[0]) / (bounds[1] - bounds[0]) * (WIDTH - LEFT - RIGHT)


def _place_y(value: float, bounds: tuple[float, float]) -> float:
    return HEIGHT - BOTTOM - (value - bounds[0]) / (bounds[1] - bounds[0]) * (HEIGHT - TOP - BOTTOM)


def _draw_axes(x_range: tuple[float, float], y_range: tuple[float, float], x_title: str, y_title: str) -> str:
    parts = []
    for share in (0, 0.25, 0.5, 0.75, 1):
        y = y_range[0] + share * (y_range[1] - y_range[0])
        at = _place_y(y, y_range)
        parts.append(f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{at:.1f}" y2="{at:.1f}" stroke="currentColor" stroke-opacity="0.15"/>')
        parts.append(f'<text x="{LEFT - 6}" y="{at + 4:.1f}" text-anchor="end">{y:.3g}</text>')
        x = x_range[0] + share * (x_range[1] - x_range[0])
        parts.append(f'<text x="{_place_x(x, x_range):.1f}" y="{HEIGHT - BOTTOM + 16}" text-anchor="middle">{x:.4g}</text>')
    across, down = (LEFT + WIDTH - RIGHT) / 2, (TOP + HEIGHT - BOTTOM) / 2
    parts.append(f'<text x="{across:.0f}" y="{HEIGHT - 4}" text-anchor="middle">{escape(x_title)}</text>')
    # turned about its own place, so that it stays in the picture
    parts.append(f'<text x="14" y="{down:.0f}" transform="rotate(-90 14 {down:.0f})" text-anchor="middle">{escape(y_title)}</text>')
    return "".join(parts)


def _draw_legend(names: Sequence[str]) -> str:
    parts = []
    for index, name in enumerate(names):
        y = TOP + 8 + 15 * index
        colour = COLOURS[index % len(COLOURS)]
        parts.append(f'<rect x="{WIDTH - 170}" y="{y - 8}" width="10" height="10" fill="{colour}"/>')
        parts.append(f'<text x="{WIDTH - 155}" y="{y + 1}" style="{_HALO}">{escape(name)}</text>')
    return "".join(parts)


def _draw_frame(title: str, body: str) -> str:
    return (
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(title)}" '
        'font-family="sans-serif" font-size="11" fill="currentColor">'
        f"<title>{escape(title)}</title>{body}</svg>"
    )
