"""Places of texts on a plane → a map: a page with pan, zoom and search, and a picture for notebooks.

In: places between 0 and 1 (`lay_out`), texts, and the group of each, which are data to a page, never markup. The page draws with its own
script (map.js) and nothing else: the largest groups have colours of their own, the rest share grey, and a text is cut to what a hover can
show. The picture (`TextMap` in a notebook) is an SVG without a script.

Shapes: N texts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from numbers import Integral
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from munjang.atomic import atomic_write
from munjang.errors import UsageError, quote
from munjang.report.heatmap import shorten
from munjang.report.page import data, escape, page
from munjang.report.words import Word, say
from munjang.tables import Row, Table
from munjang.types import Vectors
from munjang.wording import Language, brief_repr, count

MAX_COLOURS = 20
"""Groups with a colour of their own; more cannot be told apart."""
MAX_TEXT = 200
"""Characters of a text that the page holds."""

_SIDE = 65_535
_LABEL = 24  # columns of a name on the map itself
_HUES = (215, 28, 140, 340, 268, 190, 52, 5, 100, 300, 240, 165, 38, 320, 80, 205, 352, 120, 285, 15)
_STRENGTHS = (72, 72, 55, 72, 55, 80, 80, 45, 60, 45, 35, 35, 40, 30, 30, 45, 35, 30, 30, 60)

_BODY = """<div class="tools"><input id="seek" type="search" placeholder="{SEARCH}" aria-label="{SEARCH}">
<span id="found" class="quiet" role="status"></span></div>
<div class="map"><canvas id="map" tabindex="0" role="img" aria-label="{MAP_OF_TEXTS}"></canvas><div id="tip" class="tip" hidden></div>
<div class="zoom"><button id="nearer" type="button" aria-label="{ZOOM_IN}" title="{ZOOM_IN}">+</button>
<button id="farther" type="button" aria-label="{ZOOM_OUT}" title="{ZOOM_OUT}">−</button>
<button id="whole" type="button" aria-label="{SHOW_ALL}" title="{SHOW_ALL}">⤢</button></div></div>
<ul id="legend" class="legend"></ul>"""
_BODY_WORDS = (Word.SEARCH, Word.MAP_OF_TEXTS, Word.ZOOM_IN, Word.ZOOM_OUT, Word.SHOW_ALL)


@brief_repr
@dataclass(frozen=True)
class MapPoint:
    """One text on the map: what people know it by, what it says, and its group (None: it belongs to none)."""

    name: str
    text: str
    group: str | None


def map_page(places_N2: Vectors, points: Sequence[MapPoint], *, title: str, lead: str, language: Language = "en") -> str:
    """Return the whole page; places lie between 0 and 1."""
    if places_N2.shape != (len(points), 2):
        raise UsageError(f"map: {places_N2.shape} places for {count(len(points), 'point')}, expected two numbers for each")
    style = f"<style>{files('munjang.report').joinpath('map.css').read_text(encoding='utf-8')}</style>"
    script = files("munjang.report").joinpath("map.js").read_text(encoding="utf-8")
    body = _BODY.format_map({word.name: escape(say(word, language)) for word in _BODY_WORDS})
    parts = [style, body, data("map-data", _list_data(places_N2, points, language))]
    return page(title, parts, lead=lead, language=language, script=script)


def _list_data(places_N2: Vectors, points: Sequence[MapPoint], language: Language) -> dict[str, Any]:
    whole_N2 = np.rint(places_N2 * _SIDE).astype(np.int64)
    names, numbers = _list_groups([point.group for point in points], language)
    groups = []
    for number, (name, coloured) in enumerate(names):
        members = [at for at, group in enumerate(numbers) if group == number]
        colour = (_HUES[number % len(_HUES)], _STRENGTHS[number % len(_STRENGTHS)]) if coloured else (0, 0)
        label = shorten(name, _LABEL) if coloured else ""
        groups.append({"name": name, "label": label, "colour": colour, "middle": _find_middle(whole_N2, members)})
    return {
        "x": whole_N2[:, 0].tolist(),
        "y": whole_N2[:, 1].tolist(),
        "group": numbers,
        "groups": groups,
        "names": [shorten(point.name) for point in points],
        "texts": [_cut_text(point.text) for point in points],
    }


def _list_groups(given: Sequence[str | None], language: Language) -> tuple[list[tuple[str, bool]], list[int]]:
    """Return the groups, largest first and grey ones last, and the number of each point's group."""
    sizes = Counter(group for group in given if group is not None)
    ordered = sorted(sizes, key=lambda group: (-sizes[group], group))
    names = [(group, True) for group in ordered[:MAX_COLOURS]]
    place: dict[str | None, int] = {group: number for number, (group, _) in enumerate(names)}
    for rest, word in ((ordered[MAX_COLOURS:], Word.OTHERS), ([None] if None in given else [], Word.NONE)):
        if rest:
            place.update(dict.fromkeys(rest, len(names)))
            names.append((say(word, language), False))
    return names, [place[group] for group in given]


def _find_middle(whole_N2: Any, members: Sequence[int]) -> int:
    """Return the point that lies nearest to the middle of a group, which has one at least."""
    inside = whole_N2[list(members)]
    away = np.abs(inside - np.median(inside, axis=0)).sum(axis=1)
    return int(members[int(away.argmin())])


def _cut_text(text: str) -> str:
    joined = " ".join(text.split())
    return joined if len(joined) <= MAX_TEXT else joined[: MAX_TEXT - 1].rstrip() + "…"


SHOWN_POINTS = 2_000
"""Points of the picture in a notebook; the page shows all."""

_WIDTH, _HEIGHT, _MARGIN = 720, 440, 12
_FRAME_STYLE = "max-width:100%;height:auto;border:1px solid rgba(128,128,128,.35);border-radius:8px"


@brief_repr
@dataclass(frozen=True, eq=False)
class TextMap(Table):
    """Texts as points on a plane, near ones near each other: a picture in a notebook, a page with `save`."""

    places: Vectors = field(repr=False)
    points: tuple[MapPoint, ...]
    title: str = ""
    language: Language = "en"

    def to_rows(self) -> list[Row]:
        """Return the place, the group and the text of each point."""
        return [
            {"name": point.name, "x": x, "y": y, "group": point.group, "text": point.text}
            for (x, y), point in zip(self.places.tolist(), self.points, strict=True)
        ]

    def save(self, path: str | Path, *, lead: str = "") -> None:
        """Write the page: pan, zoom, search, hover over a point to read its text."""
        title = self.title or say(Word.MAP, self.language)
        lead = lead or say(Word.TEXTS, self.language, count=len(self.points))
        atomic_write(Path(path), map_page(self.places, self.points, title=title, lead=lead, language=self.language))

    def _repr_html_(self) -> str:
        step = max(1, -(-len(self.points) // SHOWN_POINTS))
        groups, numbers = _list_groups([point.group for point in self.points], self.language)
        colours = [_choose_colour(number, coloured) for number, (_, coloured) in enumerate(groups)]
        dots = "".join(_draw_dot(self.places[at].tolist(), colours[numbers[at]], self.points[at]) for at in range(0, len(numbers), step))
        sizes = Counter(numbers)
        legend = " ".join(_name_group(name, colours[number], sizes[number]) for number, (name, _) in enumerate(groups))
        title = escape(self.title or say(Word.MAP_OF_TEXTS, self.language))
        less = escape(say(Word.MAP_THINNED, self.language, step=step, count=len(numbers))) if step > 1 else ""
        return (
            f'<div><svg viewBox="0 0 {_WIDTH} {_HEIGHT}" width="{_WIDTH}" style="{_FRAME_STYLE}" role="img" aria-label="{title}">'
            f"<title>{title}</title>{dots}</svg>"
            f'<p style="line-height:1.8;word-break:keep-all;margin:.3em 0">{legend} <span style="opacity:.7">{less}</span></p></div>'
        )


def draw_map(
    places: ArrayLike,
    texts: Sequence[str],
    *,
    groups: Iterable[object] | None = None,
    names: Iterable[object] | None = None,
    title: str = "",
    language: Language = "en",
) -> TextMap:
    """Return the map of texts at these places (`lay_out`); in a notebook it is a picture, `save` writes a page.

    `groups` colour the points: names, or numbers as `cluster` and topics have them, where −1 and None mean none. `names` are what people
    know the texts by, such as ids; without them, rows are numbered.

    >>> draw_map([[0, 0], [1, 1]], ["rain", "a goal"], groups=[0, -1]).to_rows()[1]
    {'name': '2', 'x': 1.0, 'y': 1.0, 'group': None, 'text': 'a goal'}
    """
    if isinstance(texts, str | bytes):
        raise UsageError(f"texts is the text {quote(str(texts))}, expected a list of texts")
    read = list(texts)
    for row, text in enumerate(read):
        if not isinstance(text, str):
            raise UsageError(f"texts: row {row} is {quote(str(text))} ({type(text).__name__}), expected a text")
    places_N2 = np.asarray(places, dtype=np.float32).reshape(-1, 2) if len(read) == 0 else np.asarray(places, dtype=np.float32)
    named = range(1, len(read) + 1) if names is None else list(names)
    grouped = [None] * len(read) if groups is None else [_name_of(group) for group in groups]
    if places_N2.shape != (len(read), 2) or len(named) != len(read) or len(grouped) != len(read):
        raise UsageError(
            f"map: places of shape {places_N2.shape}, {count(len(grouped), 'group')} and {count(len(named), 'name')}"
            f" for {count(len(read), 'text')}, expected two numbers, one group and one name for each"
        )
    if not np.isfinite(places_N2).all() or (places_N2.size and (places_N2.min() < 0 or places_N2.max() > 1)):
        raise UsageError("map: places lie outside 0 to 1\n  lay_out(vectors) makes such places")
    points = tuple(MapPoint(str(name), text, group) for name, text, group in zip(named, read, grouped, strict=True))
    return TextMap(places_N2, points, title, language)


def _name_of(group: object) -> str | None:
    is_missing = group is None or group == "" or group != group  # NaN, as data frames have it
    if is_missing or (isinstance(group, Integral) and int(group) < 0):
        return None
    return str(group)


def _choose_colour(number: int, coloured: bool) -> str:
    return f"hsl({_HUES[number % len(_HUES)]} {_STRENGTHS[number % len(_STRENGTHS)]}% 50%)" if coloured else "hsl(0 0% 55%)"


def _draw_dot(place: tuple[float, float], colour: str, point: MapPoint) -> str:
    across, down = _MARGIN + place[0] * (_WIDTH - 2 * _MARGIN), _MARGIN + (1 - place[1]) * (_HEIGHT - 2 * _MARGIN)
    words = escape(f"{shorten(point.name)} · {_cut_text(point.text)}")
    return f'<circle cx="{across:.1f}" cy="{down:.1f}" r="4" fill="{colour}" fill-opacity=".75"><title>{words}</title></circle>'


def _name_group(name: str, colour: str, size: int) -> str:
    dot = f'<span style="display:inline-block;width:.75em;height:.75em;border-radius:50%;background:{colour}"></span>'
    quiet = f'<span style="opacity:.7">{size:,}</span>'
    return f'<span style="white-space:nowrap;margin-right:1em">{dot} {escape(shorten(name))} {quiet}</span>'
