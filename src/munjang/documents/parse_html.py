"""HTML, EPUB and e-mail → blocks, with Python's own parsers of HTML, archives and messages.

What is not meant to be read (scripts, styles, navigation, hidden elements) is left out. HTML is decoded as it says, else as UTF-8, else as
CP949, which old Korean pages are written in without saying so, whichever leaves the fewest broken characters; a text that is none of these
is refused. A message has its head, its text
(HTML where there is any) and the texts and documents that are attached to it.
"""

from __future__ import annotations

import codecs
import posixpath
import re
from collections.abc import Callable, Iterator
from email import message_from_bytes, policy
from email.message import MIMEPart
from html.parser import HTMLParser
from typing import TypeAlias
from urllib.parse import unquote
from xml.etree import ElementTree
from zipfile import ZipFile

from munjang.documents.blocks import DocumentError, FileBlock, ParsedFile, make_block
from munjang.documents.markup import BlockWriter
from munjang.documents.parse_xml import open_archive

MOST_BROKEN = 0.01
"""Share of characters that may be broken, such as where a page was cut off; a text with more is in another encoding."""

Attributes: TypeAlias = dict[str, str | None]
ParseOther: TypeAlias = Callable[[str, bytes], ParsedFile | None]
"""A file's name and content → its blocks, None if it is no document."""

_HEADINGS = {f"h{level}": level for level in range(1, 7)}
_SKIPPED = frozenset(("script", "style", "template", "noscript", "nav", "title", "svg", "iframe", "object", "select", "textarea", "button"))
_BLOCKS = frozenset(
    """
    address article aside blockquote body caption center dd details dir div dl dt fieldset figcaption figure footer form header hgroup
    legend main menu ol p section summary ul
    """.split()  # noqa: SIM905
)
_VOID = frozenset(("area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"))
_ENDED_BY: dict[str, tuple[str, ...]] = {"p": (), "li": ("ul", "ol", "menu"), "dt": ("dl",), "dd": ("dl",)}
"""Elements that end without being closed when another of their kind begins, up to these around them."""

_CHARSET = re.compile(
    rb"""<meta[^>]{0,200}?charset\s*=\s*["']?\s*([a-zA-Z0-9_:.-]{2,40})|<\?xml[^>]{0,100}?encoding\s*=\s*["']([^"']{2,40})"""
)
_BROKEN = "\ufffd"
_MARKS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))
_HEAD = ("Subject", "From", "To", "Cc", "Date")
_EMPTY_LINES = re.compile(r"\n[ \t]*\n")


def parse_html(raw: bytes) -> ParsedFile:
    """Return the blocks of a page."""
    writer = BlockWriter(flows=True)
    read_html(decode_text(raw), writer)
    return ParsedFile(writer.finish())


def parse_epub(raw: bytes) -> ParsedFile:
    """Return the blocks of a book, chapter by chapter in the order of reading."""
    writer = BlockWriter(flows=True)
    with open_archive(raw) as archive:
        names = set(archive.namelist())
        for name in _list_chapters(archive):
            if name in names:
                read_html(decode_text(archive.read(name)), writer)
    return ParsedFile(writer.finish())


def parse_email(raw: bytes, parse_other: ParseOther) -> ParsedFile:
    """Return the blocks of a message, and those of documents attached to it under their names."""
    message = message_from_bytes(raw, policy=policy.default)
    writer = BlockWriter(flows=True)
    head = [f"{name}: {' '.join(str(message[name]).split())}" for name in _HEAD if message[name]]
    writer.add_blocks(_keep([make_block("paragraph", "\n".join(head), keep_lines=True)]))
    body = message.get_body(("html", "plain"))
    if body is not None:
        text = _decode_part(body)
        if body.get_content_subtype() == "html":
            read_html(text, writer)
        else:
            writer.add_blocks(_list_paragraphs(text))
    for part in message.iter_attachments():
        name = part.get_filename() or ""
        content = part.get_payload(decode=True)
        parsed = parse_other(name, content) if isinstance(content, bytes) else None
        blocks = _list_paragraphs(_decode_part(part)) if part.get_content_type() == "text/plain" else parsed.blocks if parsed else ()
        if blocks:
            writer.add_blocks(_keep([make_block("heading", name, level=1)]))
            writer.add_blocks(FileBlock(each.kind, each.text, each.level + (each.kind == "heading")) for each in blocks)
    return ParsedFile(writer.finish())


def _list_paragraphs(text: str) -> list[FileBlock]:
    return _keep([make_block("paragraph", part) for part in _EMPTY_LINES.split(text)])


def _keep(blocks: list[FileBlock | None]) -> list[FileBlock]:
    return [block for block in blocks if block is not None]


def _decode_part(part: MIMEPart[str, str]) -> str:
    content = part.get_payload(decode=True)
    return decode_text(content, named=part.get_content_charset() or "") if isinstance(content, bytes) else ""


def decode_text(raw: bytes, *, named: str = "") -> str:
    """Return the text of a page: by its mark, by what it says, or others say of it (`named`), as UTF-8, as CP949.

    >>> decode_text("가".encode("cp949")), decode_text("\ufeff가".encode("utf-16-le"))
    ('가', '가')
    """
    for mark, encoding in _MARKS:
        if raw.startswith(mark):
            return raw[len(mark) :].decode(encoding, "replace")
    said = _CHARSET.search(raw[:4_096])
    named = (said[1] or said[2]).decode("ascii", "replace") if said and not named else named
    texts = [raw.decode(encoding, "replace") for encoding in dict.fromkeys((_name_codec(named), "utf-8", "cp949"))]
    best = min(texts, key=lambda text: text.count(_BROKEN))
    if best.count(_BROKEN) > MOST_BROKEN * len(best):
        raise DocumentError("its text is neither UTF-8 nor CP949, and it does not say what it is\n  save it as UTF-8")
    return best


def _name_codec(name: str) -> str:
    """Return Python's name of a charset, UTF-8 for what it does not know; what calls itself EUC-KR is CP949 in fact."""
    try:
        known = codecs.lookup(name)
    except LookupError:
        return "utf-8"
    is_text = getattr(known, "_is_text_encoding", True) and not known.name.startswith("utf-16")  # read as ASCII so far, it is not UTF-16
    return ("cp949" if known.name == "euc_kr" else known.name) if is_text else "utf-8"


def read_html(text: str, writer: BlockWriter) -> None:
    """Hand the text of a page to a writer."""
    reader = _HtmlReader(writer)
    reader.feed(text)
    reader.close()
    reader.end_all()


class _HtmlReader(HTMLParser):
    """Tells a writer which blocks open and close; elements that nobody closed end with what stands around them."""

    def __init__(self, writer: BlockWriter) -> None:
        super().__init__(convert_charrefs=True)
        self._writer = writer
        self._open: list[str] = []
        self._skipped: list[str] = []
        """The element that is left out, and those of its name within it."""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Open an element."""
        if self._skipped:
            if tag == self._skipped[0]:
                self._skipped.append(tag)
            return
        attributes = dict(attrs)
        if tag not in _VOID and (tag in _SKIPPED or _is_hidden(attributes)):
            self._skipped.append(tag)
        elif tag in ("br", "hr", "wbr"):
            self._writer.add({"br": "\n", "hr": "\n"}.get(tag, ""))
        elif tag == "table":
            self._push(tag)
            self._writer.open_table()
        elif tag == "tr":
            self._end_within("table", "tr", "td", "th")
            self._writer.open_row()
        elif tag in ("td", "th"):
            self._end_within("table", "td", "th")
            self._push(tag)
            self._writer.open_cell(columns=_span(attributes, "colspan"), rows=_span(attributes, "rowspan"), is_header=tag == "th")
        elif tag in _HEADINGS or tag in _BLOCKS or tag in ("li", "pre"):
            self._open_block(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Open an element and close it, as XHTML may; HTML opens it only."""
        self.handle_starttag(tag, attrs)
        if tag not in _VOID:
            self.handle_endtag(tag)

    def handle_endtag(self, tag: str) -> None:
        """Close an element and those within it."""
        if self._skipped:
            if tag == self._skipped[0]:
                self._skipped.pop()
        elif tag == "tr":
            self._end_within("table", "td", "th")
            self._writer.close_row()
        elif tag in self._open:
            while self._pop() != tag:
                pass

    def handle_data(self, data: str) -> None:
        """Take text."""
        if not self._skipped:
            self._writer.add(data)

    def end_all(self) -> None:
        """Close what is open."""
        while self._open:
            self._pop()

    def _open_block(self, tag: str) -> None:
        if self._open and self._open[-1] == "p":
            self._pop()
        if tag in _ENDED_BY and tag != "p":
            self._end_within(*_ENDED_BY[tag], tag, *(("dt", "dd") if tag in ("dt", "dd") else ()), around=_ENDED_BY[tag])
        self._push(tag)
        if tag in _HEADINGS:
            self._writer.open_block("heading", level=_HEADINGS[tag])
        elif tag == "li":
            self._writer.open_block("item")
        else:
            self._writer.open_block("paragraph", keeps_lines=tag == "pre")

    def _end_within(self, *names: str, around: tuple[str, ...] = ("table",)) -> None:
        """End open elements of these names, the innermost first, up to the nearest element around them."""
        depth = max((at for at, tag in enumerate(self._open) if tag in around), default=-1)
        wanted = [at for at, tag in enumerate(self._open) if at > depth and tag in names]
        while wanted and len(self._open) > wanted[0]:
            self._pop()

    def _push(self, tag: str) -> None:
        self._open.append(tag)

    def _pop(self) -> str:
        tag = self._open.pop()
        if tag == "table":
            self._writer.close_table()
        elif tag not in ("td", "th"):
            self._writer.close_block()
        return tag


def _is_hidden(attributes: Attributes) -> bool:
    style = (attributes.get("style") or "").replace(" ", "").lower()
    return "hidden" in attributes or "display:none" in style


def _span(attributes: Attributes, name: str) -> int:
    value = attributes.get(name) or ""
    return int(value) if value.isascii() and value.isdigit() and len(value) < 6 else 1


def _list_chapters(archive: ZipFile) -> Iterator[str]:
    """Yield the names of a book's pages in the order of reading."""
    container = ElementTree.fromstring(archive.read("META-INF/container.xml"))  # noqa: S314 - expat bounds entities and fetches nothing
    book = next((each.get("full-path") or "" for each in container.iter() if each.tag.endswith("rootfile")), "")
    package = ElementTree.fromstring(archive.read(book))  # noqa: S314
    pages = {each.get("id"): each.get("href") or "" for each in package.iter() if each.tag.endswith("}item")}
    for each in package.iter():
        if each.tag.endswith("}itemref") and (page := pages.get(each.get("idref"))):
            yield posixpath.normpath(posixpath.join(posixpath.dirname(book), unquote(page)))
