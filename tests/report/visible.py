"""What a reader of a page sees or hears: its texts, labels, titles and placeholders, and the texts that its script shows."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser

SPOKEN = ("aria-label", "title", "placeholder", "alt")
LATIN = re.compile(r"[A-Za-z]{2,}")


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []
        self.language: str | None = None
        self._inside: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        named = dict(attrs)
        if tag == "html":
            self.language = named.get("lang")
        self.texts += [value for name in SPOKEN if (value := named.get(name))]
        if tag not in ("meta", "input"):
            self._inside.append((tag, named))

    def handle_endtag(self, tag: str) -> None:
        while self._inside and self._inside.pop()[0] != tag:
            pass

    def handle_data(self, data: str) -> None:
        tag, named = self._inside[-1] if self._inside else ("", {})
        if tag == "script" and named.get("type") == "application/json":
            self.texts += _strings(json.loads(data))
        elif tag not in ("script", "style") and data.strip():
            self.texts.append(data.strip())


def _strings(value: object) -> list[str]:
    if isinstance(value, str):
        return [value]
    inside = value.values() if isinstance(value, dict) else value if isinstance(value, list) else []
    return [text for each in inside for text in _strings(each)]


def language_of(html: str) -> str | None:
    """Return the page's lang attribute."""
    return _read(html).language


def visible(html: str) -> list[str]:
    """Return every text that a reader sees or hears."""
    return _read(html).texts


def english_words(html: str, names: frozenset[str] = frozenset()) -> list[str]:
    """Return the Latin words that a reader sees, without those that are names."""
    return [word for text in visible(html) for word in LATIN.findall(text) if word not in names]


def _read(html: str) -> _Reader:
    reader = _Reader()
    reader.feed(html)
    return reader
