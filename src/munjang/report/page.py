"""A self-contained HTML page: one file, no font and nothing else loaded from elsewhere, no script but the one it is handed.

In: a title and parts that are HTML already; text from outside goes through `text`, `table` or `escape` first, data for a script through
`data`. Out: the page. Light and dark follow the reader's system.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterable, Sequence
from html import escape as _escape
from typing import Any

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


def escape(written: str) -> str:
    """Return text as HTML; what is no text (control characters, lone surrogates) becomes U+FFFD.

    >>> escape('<a "b">')
    '&lt;a &quot;b&quot;&gt;'
    """
    plain = written if written.isprintable() else "".join(ch if ch.isprintable() or ch.isspace() else "\ufffd" for ch in written)
    return _escape(plain.replace("\x0c", " ").replace("\x0b", " "), quote=True)


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
