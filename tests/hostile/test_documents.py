"""Hostile documents: mutated files, bombs, references to other files. Each costs itself alone, and nothing outside is read."""

from __future__ import annotations

import io
import sys
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest
from tests.documents.conftest import FIXTURES, need_parsers
from tests.hostile.mutate_documents import LIMITS, SOURCES, Campaign, read_mutated

from munjang.documents.blocks import DocumentError
from munjang.documents.reader_process import DocumentReader
from munjang.limits import DOCUMENT_LIMITS


def read_files(files: range, folder: Path) -> Campaign:
    campaign = Campaign()
    assert list(read_mutated(files, folder, campaign)) == list(files)
    print(campaign.facts())
    return campaign


def test_mutated_files_are_read_or_named(tmp_path: Path) -> None:
    need_parsers()
    campaign = read_files(range(200), tmp_path)
    assert campaign.wrong == []
    assert sum(campaign.outcomes.values()) == 200


@pytest.mark.slow
def test_two_thousand_mutated_files_are_read_or_named(tmp_path: Path) -> None:
    need_parsers()
    assert read_files(range(200, 2_200), tmp_path).wrong == []


def replace_member(suffix: str, name: str, content: bytes) -> bytes:
    """Return the fixture of a zipped format with another content of one member."""
    source = next(path for path in SOURCES if path.suffix == suffix)
    output = io.BytesIO()
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(output, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as new:
        for each in old.namelist():
            new.writestr(each, content if each == name else old.read(each))
    return output.getvalue()


BODY = {".docx": "word/document.xml", ".odt": "content.xml", ".hwpx": "Contents/section0.xml"}


@pytest.mark.parametrize("suffix", BODY)
def test_a_bomb_of_zeros_stays_within_the_limits(tmp_path: Path, suffix: str) -> None:
    need_parsers()
    path = tmp_path / f"bomb{suffix}"
    path.write_bytes(replace_member(suffix, BODY[suffix], b"<a>" + b" " * (96 * 2**20)))
    with DocumentReader(replace(LIMITS, memory_bytes=512 * 2**20)) as reader:
        with pytest.raises(DocumentError):
            reader.read(path)
        assert reader.read(FIXTURES / "report.md").blocks


LAUGHS = (
    '<?xml version="1.0"?><!DOCTYPE lolz [<!ENTITY a0 "lol">'
    + "".join(f'<!ENTITY a{n} "{f"&a{n - 1};" * 10}">' for n in range(1, 10))
    + "]>"
)


@pytest.mark.parametrize("suffix", [*BODY, ".html"])
def test_entities_are_not_expanded_without_end(tmp_path: Path, suffix: str) -> None:
    need_parsers()
    path = tmp_path / f"laughs{suffix}"
    content = (LAUGHS + "<html><body><p>&a9;</p></body></html>").encode()
    path.write_bytes(content if suffix == ".html" else replace_member(suffix, BODY[suffix], content))
    with DocumentReader(LIMITS) as reader:
        try:
            parsed = reader.read(path)
        except DocumentError:
            return
        assert sum(len(block.text) for block in parsed.blocks) < 10_000


SECRET = "the-secret-of-another-file"
REFERENCES = {
    ".html": '<html><body><p>text</p><img src="{uri}"><iframe src="{uri}"></iframe><object data="{uri}"></object></body></html>',
    ".md": "text\n\n![picture]({uri})\n\n{{{{ include {path} }}}}\n",
    ".rtf": r"{{\rtf1 text {{\field{{\*\fldinst INCLUDETEXT \"{path}\"}}}}}}",
    ".eml": 'Subject: a\nContent-Type: message/external-body; access-type=local-file; name="{path}"\n\nContent-Type: text/plain\n\ntext\n',
}
ENTITY = '<?xml version="1.0"?><!DOCTYPE a [<!ENTITY secret SYSTEM "{uri}">]>'


@pytest.mark.parametrize("suffix", [*REFERENCES, *BODY])
def test_no_other_file_is_read(tmp_path: Path, suffix: str) -> None:
    need_parsers()
    secret = tmp_path / "secret.txt"
    secret.write_text(SECRET, encoding="utf-8")
    path = tmp_path / f"curious{suffix}"
    if suffix in REFERENCES:
        path.write_text(REFERENCES[suffix].format(uri=secret.as_uri(), path=secret), encoding="utf-8")
    else:
        source = next(each for each in SOURCES if each.suffix == suffix)
        with zipfile.ZipFile(source) as archive:
            body = archive.read(BODY[suffix]).decode()
        _, _, rest = body.partition("?>")
        changed = ENTITY.format(uri=secret.as_uri()) + rest.replace("겨울", "&secret;")
        path.write_bytes(replace_member(suffix, BODY[suffix], changed.encode()))
    with DocumentReader(LIMITS) as reader:
        try:
            parsed = reader.read(path)
        except DocumentError:
            return
        assert not any(SECRET in block.text for block in parsed.blocks)


@pytest.mark.parametrize("suffix", [".docx", ".epub", ".pdf", ".hwp", ".html"])
def test_an_archive_within_itself_is_not_unpacked(tmp_path: Path, suffix: str) -> None:
    need_parsers()
    raw = b"x" * 100
    for _ in range(20):
        output = io.BytesIO()
        with zipfile.ZipFile(output, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("inner.zip", raw)
        raw = output.getvalue()
    path = tmp_path / f"nested{suffix}"
    path.write_bytes(raw)
    with DocumentReader(LIMITS) as reader:
        try:
            assert reader.read(path).blocks
        except DocumentError:
            pass


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="the time is for a fast disk")
def test_ten_thousand_pages_are_read_within_the_limits(tmp_path: Path) -> None:
    pypdfium2 = pytest.importorskip("pypdfium2", reason="pypdfium2 (extra documents) is not installed")
    source = pypdfium2.PdfDocument(FIXTURES / "report.pdf")
    long = pypdfium2.PdfDocument.new()
    for _ in range(5_000):
        long.import_pages(source)
    long.save(tmp_path / "long.pdf")
    before = count_seconds()
    with DocumentReader(replace(DOCUMENT_LIMITS, seconds=900.0)) as reader:  # other work may keep the processor from it
        assert reader.read(tmp_path / "long.pdf").pages == 10_000
    assert count_seconds() - before < DOCUMENT_LIMITS.seconds


def count_seconds() -> float:
    """Return the processor time of processes that have ended."""
    import resource  # which Windows has not

    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
