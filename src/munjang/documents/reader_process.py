"""A file → its blocks, parsed by a process of its own that can be ended at any moment.

The process (`text/child_process.py`) serves many files, one after the other, each within a limit of time; a file that ends it costs that
file alone, and the next one gets a new process. Where the system can, it writes no file.

Lines to the process: a file's path and suffix. Lines from it: {"blocks": [[kind, text, level, place], …], "place_kind", "pages",
"empty_pages"}, or {"problem"}.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from contextlib import suppress
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from munjang.documents.blocks import FORMATS, DocumentError, DocumentFormat, FileBlock, ParsedFile, ScannedDocument, find_document_format
from munjang.errors import MissingExtra, UsageError
from munjang.limits import DOCUMENT_LIMITS, DocumentLimits
from munjang.text.child_process import ChildProcess, bound_process
from munjang.wording import count

COMMAND = (sys.executable, "-P", "-c", "from munjang.documents.reader_process import main; main()")
FILES_PER_PROCESS = 500
"""After so many files a new process begins, so that what a parser leaves in memory does not add up."""


@dataclass(frozen=True)
class ReaderOrder:
    """What the process is told before its first file."""

    memory_bytes: int
    file_bytes: int
    text_characters: int


class DocumentReader:
    """Reads documents, one at a time; use it as a context manager, so that its process ends."""

    def __init__(self, limits: DocumentLimits = DOCUMENT_LIMITS, *, command: tuple[str, ...] = COMMAND) -> None:
        self._limits = limits
        self._command = command
        self._process: ChildProcess | None = None
        self._files = 0

    def __enter__(self) -> DocumentReader:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the process."""
        process, self._process = self._process, None
        if process is not None:
            process.close()

    def read(self, path: Path) -> ParsedFile:
        """Return the blocks of a file; a file that cannot be read is a DocumentError, and the next one can be."""
        format = find_document_format(path)
        if format is None:
            raise UsageError(f"{path.name}: no document, expected a name that ends in {', '.join(FORMATS)}")
        if format.package is not None and find_spec(format.package) is None:
            raise MissingExtra(f"reading {format.name} files", "documents")
        answer = self._ask({"path": str(path.absolute()), "suffix": path.suffix.lower()})
        blocks = tuple(FileBlock(*each) for each in answer["blocks"])
        if not blocks and answer["pages"] and answer["pages"] == answer["empty_pages"]:
            raise ScannedDocument(
                f"is a scan: {count(answer['pages'], 'page')} without text\n  recognise its text first, such as with ocrmypdf"
            )
        if not blocks:
            raise DocumentError("holds no text")
        return ParsedFile(blocks, answer["place_kind"], answer["pages"], answer["empty_pages"])

    def _ask(self, question: dict[str, Any]) -> dict[str, Any]:
        process = self._ready_process()
        is_late = threading.Event()

        def end_late() -> None:
            is_late.set()
            process.kill()

        timer = threading.Timer(self._limits.seconds, end_late)
        timer.start()
        try:
            process.send(question)
            answer = process.receive(self._limits.answer_bytes)
        finally:
            timer.cancel()
        if isinstance(answer, int):
            self.close()
            raise DocumentError(self._say_end(is_late.is_set(), answer))
        if "problem" in answer:
            raise DocumentError(answer["problem"])
        return answer

    def _say_end(self, is_late: bool, read: int) -> str:
        limits = self._limits
        if is_late:
            return f"reading it takes more than {limits.seconds:,.0f} s, the limit"
        if read >= limits.answer_bytes:
            return f"its text has more than {count(limits.answer_bytes, 'byte')}, the limit"
        return f"its parser crashed, or needs more than {count(limits.memory_bytes, 'byte')} of memory, the limit"

    def _ready_process(self) -> ChildProcess:
        self._files += 1
        if self._files > FILES_PER_PROCESS or (self._process is not None and not self._process.is_running):
            self.close()
        if self._process is None:
            self._files = 1
            order = ReaderOrder(self._limits.memory_bytes, self._limits.file_bytes, self._limits.text_characters)
            self._process = ChildProcess(self._command, asdict(order))
        return self._process


def main() -> None:
    """Read an order and then files' names from standard input, and answer each on standard output."""
    output = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a parser prints is not an answer
    order = ReaderOrder(**json.loads(sys.stdin.buffer.readline()))
    bound_process(memory_bytes=order.memory_bytes, may_write_files=False)
    with suppress(AttributeError, ValueError):
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # its parent decides
    with suppress(BrokenPipeError):
        for line in sys.stdin.buffer:
            answer = _answer(json.loads(line), order)
            output.write(json.dumps(answer, ensure_ascii=False).encode("utf-8", "replace") + b"\n")
            output.flush()
    os._exit(0)


def _answer(question: dict[str, Any], order: ReaderOrder) -> dict[str, Any]:
    try:
        parsed = _parse(Path(question["path"]), question["suffix"], order)
    except MemoryError:
        return {"problem": f"needs more than {count(order.memory_bytes, 'byte')} of memory, the limit"}
    except DocumentError as error:
        return {"problem": str(error)}
    except BaseException as error:  # a parser's panic is no Exception
        return {"problem": _say_problem(error)}
    blocks = [[block.kind, block.text, block.level, block.place] for block in parsed.blocks]
    return {"blocks": blocks, "place_kind": parsed.place_kind, "pages": parsed.pages, "empty_pages": parsed.empty_pages}


def _parse(path: Path, suffix: str, order: ReaderOrder) -> ParsedFile:
    size = path.stat().st_size
    if size > order.file_bytes:
        raise DocumentError(f"has {count(size, 'byte')}, the limit is {order.file_bytes:,}")
    raw = path.read_bytes()
    if not raw:
        raise DocumentError("is empty")
    parsed = parse_bytes(raw, FORMATS[suffix])
    characters = sum(len(block.text) for block in parsed.blocks)
    if characters > order.text_characters:
        raise DocumentError(f"its text has {count(characters, 'character')}, the limit is {order.text_characters:,}")
    return parsed


def parse_bytes(raw: bytes, format: DocumentFormat) -> ParsedFile:
    """Return the blocks of a file's content, here and now; what a parser raises is not caught."""
    match format.parser:
        case "pdf":
            from munjang.documents.parse_pdf import parse_pdf

            return parse_pdf(raw)
        case "hwp" | "xberg":
            from munjang.documents.parse_office import parse_hwp, parse_with_xberg

            return parse_hwp(raw) if format.parser == "hwp" else parse_with_xberg(raw, format)
        case "html" | "epub" | "email":
            from munjang.documents.parse_html import parse_email, parse_epub, parse_html

            if format.parser == "email":
                return parse_email(raw, _parse_attachment)
            return parse_html(raw) if format.parser == "html" else parse_epub(raw)
        case _:
            from munjang.documents import parse_xml

            parse = {"odt": parse_xml.parse_odt, "docx": parse_xml.parse_docx, "pptx": parse_xml.parse_pptx, "hwpx": parse_xml.parse_hwpx}
            return parse[format.parser](raw)


def _parse_attachment(name: str, raw: bytes) -> ParsedFile | None:
    """Return the blocks of a file that came with a message; None if it is no document, a message itself, or cannot be read."""
    format = find_document_format(Path(name))
    if format is None or format.parser == "email" or (format.package is not None and find_spec(format.package) is None):
        return None
    with suppress(Exception):
        return parse_bytes(raw, format)
    return None


def _say_problem(error: BaseException) -> str:
    """Return an error of a parser in one line, without paths."""
    said = " ".join(str(error).split())
    if "password" in said.lower() or "encrypted" in said.lower():
        return "is encrypted\n  save it without a password"
    said = "".join(ch for ch in said if ch.isprintable())[:200]
    return f"cannot be read ({type(error).__name__}{': ' + said if said else ''})"
