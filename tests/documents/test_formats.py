"""Texts that we wrote, saved by real programs in every format, are read back: characters, order, headings, pages."""

from __future__ import annotations

import re
import unicodedata
from difflib import SequenceMatcher

import pytest
from tests.documents.conftest import FIXTURES, REPORTS
from tests.documents.fixtures.report import BLOCKS, SECOND_PAGE

from munjang.documents.read import SEPARATOR, Section, read_document
from munjang.documents.reader_process import DocumentReader

WITHOUT_HEADINGS = ("epub", "rtf")
"""LibreOffice writes none into EPUB; RTF's are styles that no reader sees."""
NUMBERED = re.compile(r"^(\d+[.)]|[가-하][.)])\s*")
"""What python-hwpx and unhwp put before headings: an outline's numbers."""


def expect_text() -> str:
    """Return the report's characters without white space; a table's rows with their headers."""
    parts: list[str] = []
    for kind, block in BLOCKS:
        if isinstance(block, str):
            parts.append(block)
        elif kind == "table":
            headers = block[0]
            parts += [" · ".join(f"{name}: {cell}" for name, cell in zip(headers, row, strict=True)) for row in block[1:]]
        else:
            parts += block
    return "".join("".join(parts).split())


def in_order(expected: str, found: str) -> float:
    matched = SequenceMatcher(None, expected, found, autojunk=False).get_matching_blocks()
    return sum(block.size for block in matched) / len(expected)


def text_of(sections: list[Section]) -> str:
    return SEPARATOR.join(section.text for section in sections)


@pytest.mark.parametrize("suffix", REPORTS)
def test_every_character_of_the_report_is_read_in_its_order(suffix: str, reader: DocumentReader) -> None:
    found = text_of(read_document(FIXTURES / f"report.{suffix}", reader=reader))
    assert unicodedata.is_normalized("NFC", found)
    expected = expect_text()
    assert in_order(expected, "".join(found.split())) >= 0.99
    assert len("".join(found.split())) <= len(expected) * (1.2 if suffix == "eml" else 1.03)  # an e-mail has its head


@pytest.mark.parametrize("suffix", [each for each in REPORTS if each not in WITHOUT_HEADINGS])
def test_headings_become_the_path_of_their_sections(suffix: str, reader: DocumentReader) -> None:
    sections = read_document(FIXTURES / f"report.{suffix}", reader=reader)
    paths = [tuple(NUMBERED.sub("", each) for each in section.heading) for section in sections if section.heading]
    assert paths == [
        ("겨울 보고서",),
        ("겨울 보고서", "눈과 길"),
        ("겨울 보고서", "눈과 길", "다리의 얼음"),
        ("겨울 보고서", "난방과 전기"),
        ("봄을 준비하며",),
        ("봄을 준비하며", "해야 할 일"),
    ]


def test_sections_of_a_pdf_have_its_pages(reader: DocumentReader) -> None:
    pages = {section.heading[0]: section.place for section in read_document(FIXTURES / "report.pdf", reader=reader)}
    assert pages == {"겨울 보고서": 1, SECOND_PAGE: 2}


def test_sections_of_slides_and_sheets_have_theirs(reader: DocumentReader) -> None:
    slides = read_document(FIXTURES / "slides.pptx", reader=reader)
    assert [(each.place_kind, each.place, each.heading) for each in slides] == [
        ("slide", 1, ("마을 도서관 이용 안내",)),
        ("slide", 2, ("책 빌리기",)),
    ]
    sheets = read_document(FIXTURES / "sheets.xlsx", reader=reader)
    assert [(each.place, each.text.splitlines()[0]) for each in sheets] == [
        ("가격표", "품목: 국화차 · 가격: 4500 · 설명: 가을에 딴 국화로 우린 차"),
        ("Staff", "name: 보라 · task: opens the tea house at seven"),
    ]


@pytest.mark.parametrize("suffix", REPORTS)
def test_spans_count_characters_of_the_whole_text(suffix: str, reader: DocumentReader) -> None:
    sections = read_document(FIXTURES / f"report.{suffix}", reader=reader)
    whole = text_of(sections)
    assert all(whole[section.start : section.stop] == section.text for section in sections)
