"""Results as tables: one row for each thing found, as dicts, as a data frame, and as HTML in a notebook.

A result that is a `Table` says its rows once (`to_rows`); `to_pandas`, `to_polars` and what a notebook shows follow from them. Neither
pandas nor polars is needed, nor imported before it is asked for. In a notebook the first rows are shown; a number between 0 and 1 that says
how good something is, or a size, has a bar behind it. The HTML takes the notebook's own colours, holds no script, and texts are data in it,
never markup.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from html import escape as _escape
from numbers import Integral, Real
from typing import Any, ClassVar

from munjang.errors import UsageError
from munjang.wording import count

SHOWN_ROWS = 20
"""Rows that a notebook shows."""
_ONE_LINE = 24  # characters of a text that is never broken
SHOWN_TEXT = 160
"""Characters of a text that a notebook shows; the rest is in its tooltip."""

Row = dict[str, Any]

_CELL = "padding:.2em .8em;border-bottom:1px solid rgba(128,128,128,.35);text-align:{side};vertical-align:top"
_WHOLE = ";white-space:nowrap"
_BAR = "background:linear-gradient(to right,rgba(37,99,235,.28) {share:.1f}%,transparent {share:.1f}%)"


class Table(ABC):
    """What results with rows have in common."""

    bars: ClassVar[tuple[str, ...]] = ("score", "probability")
    """The columns whose numbers have bars."""
    hidden: ClassVar[tuple[str, ...]] = ()
    """The columns that a notebook does not show."""
    columns: ClassVar[tuple[str, ...]] = ()
    """The columns that rows always have, in their order; a result without rows has these."""

    @abstractmethod
    def to_rows(self) -> list[Row]:
        """Return one dict for each row, all with the same keys in the same order."""

    def to_pandas(self, index: Any = None) -> Any:
        """Return a pandas DataFrame; `index` are its row labels, such as those of the frame that the texts came from."""
        try:
            from pandas import DataFrame
        except ModuleNotFoundError as error:
            raise _missing("pandas") from error
        rows = self.to_rows()
        return DataFrame(rows, index=index, columns=None if rows else list(self.columns))

    def to_polars(self) -> Any:
        """Return a polars DataFrame."""
        try:
            from polars import DataFrame
        except ModuleNotFoundError as error:
            raise _missing("polars") from error
        rows = self.to_rows()
        return DataFrame(rows, schema=None if rows else list(self.columns), infer_schema_length=None, strict=False)

    def _repr_html_(self) -> str:
        rows = self.to_rows()
        shown = [{name: value for name, value in row.items() if name not in self.hidden} for row in rows] if self.hidden else rows
        return write_html(shown, bars=self.bars, title=f"{type(self).__name__}: {count(len(rows), 'row')}")


def write_html(rows: Sequence[Row], *, bars: Sequence[str] = (), title: str = "") -> str:
    """Return the first rows as an HTML table; a column without any value in them is left out.

    >>> write_html([{"label": "<b>", "score": 0.5}], bars=["score"]).count("&lt;b&gt;")
    1
    """
    shown = rows[:SHOWN_ROWS]
    names = [name for name in (shown[0] if shown else ()) if any(row[name] is not None for row in shown)]
    largest = {name: max((float(row[name]) for row in rows if _is_finite(row[name])), default=0.0) for name in names if name in bars}
    top = "".join(f'<th style="{_CELL.format(side=_side(shown, name))}{_WHOLE}">{escape(name)}</th>' for name in names)
    body = "".join(
        "<tr>" + "".join(_write_cell(row[name], _side(shown, name), largest.get(name)) for name in names) + "</tr>" for row in shown
    )
    more = f'<p style="opacity:.7">… {count(len(rows) - len(shown), "more row")}</p>' if len(rows) > len(shown) else ""
    head = f'<p style="opacity:.7;margin:.2em 0">{escape(title)}</p>' if title else ""
    style = "border-collapse:collapse;font-variant-numeric:tabular-nums;word-break:keep-all;overflow-wrap:anywhere"
    return f'<div>{head}<table style="{style}"><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table>{more}</div>'


def escape(written: str) -> str:
    """Return text as HTML; what is no text (control characters, lone surrogates) becomes U+FFFD.

    >>> escape('<a "b">')
    '&lt;a &quot;b&quot;&gt;'
    """
    plain = written if written.isprintable() else "".join(ch if ch.isprintable() or ch.isspace() else "\ufffd" for ch in written)
    return _escape(plain.replace("\x0c", " ").replace("\x0b", " "), quote=True)


def _write_cell(value: Any, side: str, largest: float | None) -> str:
    style = _CELL.format(side=side)
    if _is_number(value):
        if largest is not None and _is_finite(value):
            style += ";" + _BAR.format(share=100 * min(1.0, max(0.0, float(value)) / max(largest, 1e-9)))
        written = f"{int(value):,}" if isinstance(value, Integral) else f"{float(value):.4f}"
        return f'<td style="{style}{_WHOLE}">{written}</td>'
    text = "" if value is None else ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
    style += _WHOLE if len(text) <= _ONE_LINE else ""
    tip = f' title="{escape(text)}"' if len(text) > SHOWN_TEXT else ""
    return f'<td style="{style}"{tip}>{escape(text if len(text) <= SHOWN_TEXT else text[: SHOWN_TEXT - 1] + "…")}</td>'


def _side(rows: Sequence[Row], name: str) -> str:
    values = [row[name] for row in rows if row[name] is not None]
    return "right" if values and all(map(_is_number, values)) else "left"


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


def _is_finite(value: Any) -> bool:
    return _is_number(value) and math.isfinite(value)


def _missing(name: str) -> UsageError:
    return UsageError(f"a {name} data frame needs {name}, which is not installed\n  pip install {name}; to_rows() needs nothing")
