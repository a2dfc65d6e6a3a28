"""Parallel documentation → sections: a heading in both languages with the paragraphs under it, and pages that no training may see.

Python's, LibreOffice's and GNOME's documentation in English and Korean, paragraph by paragraph, in the order of each page. A short line
without a full stop is a heading; the paragraphs up to the next one are its section. One page in six is held out, by a hash of its name.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from munjang.text.readers import read_rows

SETS = ("python-docs-ko", "libreoffice-help-ko-en", "gnome-help-ko-en")
HELD_OUT = 6
"""One page in this many."""

LONGEST_HEADING, SHORTEST_SECTION, LONGEST_SECTION = 60, 60, 600
"""Characters of the English text."""

SENTENCE = re.compile(r"[.:;!?,。]$")


@dataclass(frozen=True)
class Paragraph:
    """A paragraph in both languages."""

    page: str
    en: str
    ko: str


@dataclass(frozen=True)
class Section:
    """A heading and its paragraphs in both languages."""

    page: str
    heading: Paragraph
    en: str
    ko: str


def paragraphs(data: Path, *, held_out: bool) -> Iterator[Paragraph]:
    """Yield the paragraphs of pages that are held out, or of the others."""
    for name in SETS:
        for row in read_rows(data / name / "pairs.tsv.gz"):
            page = f"{name}/{row.values['file']}"
            if is_held_out(page) == held_out:
                yield Paragraph(page, str(row.values["en"]).strip(), str(row.values["ko"]).strip())


def is_held_out(page: str) -> bool:
    """Tell whether a page is kept out of every training."""
    return int.from_bytes(hashlib.sha256(page.encode()).digest()[:4]) % HELD_OUT == 0


def sections(data: Path, *, held_out: bool) -> Iterator[Section]:
    """Yield sections whose heading stands once in all pages of this side: "Example" says nothing about its section."""
    rows = list(paragraphs(data, held_out=held_out))
    often = Counter(text for row in rows for text in {row.en.casefold(), row.ko})
    for page, of_page in groupby(rows, key=lambda row: row.page):
        heading, body = None, list[Paragraph]()
        for row in [*of_page, None]:
            if row is not None and not is_heading(row):
                body.append(row)
                continue
            if heading is not None and often[heading.en.casefold()] == often[heading.ko] == 1:
                yield from make_section(page, heading, body)
            heading, body = row, []


def is_heading(row: Paragraph) -> bool:
    """Tell whether a paragraph is the heading of those that follow."""
    return len(row.en.split()) > 1 and 8 <= len(row.en) <= LONGEST_HEADING and len(row.ko) >= 4 and not SENTENCE.search(row.en)


def make_section(page: str, heading: Paragraph, body: list[Paragraph]) -> Iterator[Section]:
    """Yield the section of a heading unless it is too short; it ends with the paragraph that reaches the greatest length."""
    en, ko = "", ""
    for row in body:
        if len(en) + len(row.en) > LONGEST_SECTION and en:
            break
        en, ko = f"{en} {row.en}".strip(), f"{ko} {row.ko}".strip()
    if len(en) >= SHORTEST_SECTION:
        yield Section(page, heading, en[: 2 * LONGEST_SECTION], ko[: 2 * LONGEST_SECTION])
