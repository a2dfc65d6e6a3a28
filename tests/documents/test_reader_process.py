"""The process that parses: a file that hangs, crashes, eats memory or never stops writing costs that file alone."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest
from tests.documents.conftest import FIXTURES, need_parsers

from munjang.documents import reader_process
from munjang.documents.blocks import DocumentError, ScannedDocument
from munjang.documents.reader_process import DocumentReader
from munjang.errors import MissingExtra, UsageError
from munjang.limits import DOCUMENT_LIMITS

SHORT = replace(DOCUMENT_LIMITS, seconds=20.0, memory_bytes=512 * 2**20, answer_bytes=2**20)
ODD_PARSER = """
import sys, munjang.documents.reader_process as process
real = process._parse
def odd(path, suffix, order):
    if path.stem == 'odd':
        {body}
    return real(path, suffix, order)
process._parse = odd
process.main()
"""


def make_odd(tmp_path: Path, body: str) -> tuple[DocumentReader, Path]:
    need_parsers()
    (tmp_path / "odd.md").write_text("# odd", encoding="utf-8")
    command = (sys.executable, "-P", "-c", ODD_PARSER.format(body=body))
    limits = replace(SHORT, seconds=3.0) if body.startswith("while") else SHORT
    return DocumentReader(limits, command=command), tmp_path / "odd.md"


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("while True: pass", "more than 3 s"),
        ("import os; os.abort()", "crashed"),
        ("held = [bytearray(2**24) for _ in range(2**10)]", "memory"),
        ("return process.ParsedFile((process.FileBlock('paragraph', 'x' * 2**21),))", "more than 1,048,576 bytes"),
        ("sys.exit(3)", "cannot be read (SystemExit"),
        ("print('{}' * 10_000); raise ValueError('odd')", "cannot be read (ValueError: odd)"),
    ],
    ids=["hangs", "crashes", "eats memory", "writes too much", "exits", "prints"],
)
def test_an_odd_file_is_named_and_the_next_is_read(tmp_path: Path, body: str, said: str) -> None:
    reader, odd = make_odd(tmp_path, body)
    with reader:
        with pytest.raises(DocumentError, match=said.replace("(", r"\(").replace(")", r"\)")):
            reader.read(odd)
        assert reader.read(FIXTURES / "report.html").blocks[0].text == "겨울 보고서"


def test_a_file_over_the_limit_of_its_size_is_not_parsed(tmp_path: Path) -> None:
    need_parsers()
    with DocumentReader(replace(DOCUMENT_LIMITS, file_bytes=1_000)) as reader, pytest.raises(DocumentError, match="the limit is 1,000"):
        reader.read(FIXTURES / "report.pdf")


def test_a_pdf_of_pictures_is_called_a_scan(tmp_path: Path) -> None:
    pypdfium2 = pytest.importorskip("pypdfium2", reason="pypdfium2 (extra documents) is not installed")
    document = pypdfium2.PdfDocument.new()
    document.new_page(200, 200)
    document.save(tmp_path / "scan.pdf")
    with DocumentReader() as reader, pytest.raises(ScannedDocument, match="scan: 1 page without text"):
        reader.read(tmp_path / "scan.pdf")


def test_without_the_extra_one_line_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader_process, "find_spec", lambda _: None)
    with DocumentReader() as reader, pytest.raises(MissingExtra, match="munjang\\[documents\\]"):
        reader.read(FIXTURES / "report.pdf")


def test_a_file_that_is_no_document_is_refused() -> None:
    with DocumentReader() as reader, pytest.raises(UsageError, match=r"\.pdf"):
        reader.read(Path("notes.xyz"))
