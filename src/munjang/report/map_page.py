"""Places on a plane, texts and their groups → one HTML page: a map to pan, zoom, search and point at.

The page draws with its own script (map.js) and nothing else; texts are data to it, never markup. The largest groups have colours of their
own, the rest share grey. A text is cut to what a hover can show.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

import numpy as np

from munjang.errors import UsageError
from munjang.report.heatmap import shorten
from munjang.report.page import data, escape, page
from munjang.report.words import Word, say
from munjang.types import Vectors
from munjang.wording import Language, count

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
