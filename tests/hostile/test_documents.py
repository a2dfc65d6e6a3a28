"""Hostile documents: mutated files, bombs, references to other files. Each costs itself alone, and nothing outside is read."""

from __future__ import annotations

import io
import random
import re
import sys
import zipfile
import zlib
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from tests.documents.conftest import FIXTURES, need_parsers
from tests.documents.fixtures.write_hwp5 import write_hwp5

from munjang.documents.blocks import FORMATS, DocumentError
from munjang.documents.reader_process import DocumentReader
from munjang.limits import DOCUMENT_LIMITS

LIMITS = replace(DOCUMENT_LIMITS, seconds=10.0, memory_bytes=2**30)
SOURCES = sorted(path for path in FIXTURES.iterdir() if (path.suffix in FORMATS and path.suffix != ".md") or path.name == "report.md")
ZIPPED = (".docx", ".pptx", ".xlsx", ".odt", ".epub", ".hwpx")


def mutate(raw: bytes, suffix: str, chance: random.Random) -> bytes:
    """Return a file with some of its bytes changed, cut, doubled or moved; in half of those that are packed, within what is packed."""
    if chance.random() < 0.5:
        if suffix in ZIPPED:
            return mutate_member(raw, chance)
        if suffix == ".pdf":
            return mutate_stream(raw, chance)
        if suffix == ".hwp":
            return write_hwp5(
                [("h1", "가"), ("p", "나" * 50), ("table", [["다", "라"]] * 3)], change=lambda body: mutate_bytes(body, chance)
            )
    return mutate_bytes(raw, chance)


def mutate_member(raw: bytes, chance: random.Random) -> bytes:
    """Change one file of an archive."""
    output = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(raw)) as source, zipfile.ZipFile(output, "w", zipfile.ZIP_DEFLATED) as target:
        chosen = chance.choice(source.namelist())
        for name in source.namelist():
            content = source.read(name)
            target.writestr(name, mutate_bytes(content, chance) if name == chosen and content else content)
    return output.getvalue()


def mutate_stream(raw: bytes, chance: random.Random) -> bytes:
    """Change one packed stream of a PDF; PDFium finds the others again."""
    streams = list(re.finditer(rb"/FlateDecode>>\s*stream\r?\n", raw))
    start = chance.choice(streams).end()
    unpacker = zlib.decompressobj()
    content = unpacker.decompress(raw[start:])
    rest = unpacker.unused_data
    return raw[:start] + zlib.compress(mutate_bytes(content or b"x", chance)) + rest


NUMBERS = (b"0", b"-1", b"99999", b"999999999999", b"1e99", b"9" * 400)


def mutate_bytes(raw: bytes, chance: random.Random) -> bytes:
    changed = bytearray(raw)
    for _ in range(chance.choice((1, 1, 4, 32))):
        at, kind = chance.randrange(len(changed)), chance.randrange(7)
        length = chance.choice((1, 2, 8, 256))
        if kind == 0:
            changed[at] = chance.randrange(256)
        elif kind == 1:
            changed[at : at + length] = chance.randbytes(length)
        elif kind == 2:
            del changed[at : at + length]
        elif kind == 3:
            changed[at:at] = changed[at : at + length] * chance.choice((1, 50))
        elif kind == 4:
            changed[at : at + 4] = chance.choice((b"\xff\xff\xff\xff", b"\0\0\0\0", b"\xff\xff\xff\x7f", b"9999"))
        elif kind == 5 and (number := re.compile(rb"\d+").search(changed, at)) is not None:
            changed[number.start() : number.end()] = chance.choice(NUMBERS)
        elif kind == 6 and (tag := re.compile(rb"<[^>]{1,200}>").search(changed, at)) is not None:
            changed[at:at] = tag[0] * chance.choice((1, 2, 300))
        if not changed:
            return b"x"
    return bytes(changed)


def read_mutated(files: int, folder: Path, seed: int) -> Counter[str]:
    chance, outcomes = random.Random(seed), Counter[str]()
    raws = {path: path.read_bytes() for path in SOURCES}
    with DocumentReader(LIMITS) as reader:
        for number in range(files):
            source = SOURCES[number % len(SOURCES)]
            path = folder / f"mutated{source.suffix}"
            path.write_bytes(mutate(raws[source], source.suffix, chance))
            try:
                parsed = reader.read(path)
            except DocumentError as error:
                outcomes[str(error).partition("(")[0].strip()[:60]] += 1
            else:
                assert parsed.blocks
                assert all(block.text.strip() for block in parsed.blocks)
                outcomes["read"] += 1
    return outcomes


def test_mutated_files_are_read_or_named(tmp_path: Path) -> None:
    need_parsers()
    assert sum(read_mutated(200, tmp_path, seed=0).values()) == 200


@pytest.mark.slow
def test_twenty_thousand_mutated_files_are_read_or_named(tmp_path: Path) -> None:
    need_parsers()
    outcomes = read_mutated(20_000, tmp_path, seed=1)
    print(outcomes)
    assert sum(outcomes.values()) == 20_000
    assert "" not in outcomes  # every failure says something


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
    with DocumentReader() as reader:
        assert reader.read(tmp_path / "long.pdf").pages == 10_000
