"""A file → its blocks, parsed by a process of its own that can be ended at any moment.

Whatever a file makes a parser do (hang, crash, eat memory, never stop writing), it happens there: this side reads lines of JSON from a
pipe, with a limit on their length and on the time. The process serves many files, one after the other; a file that ends it costs that
file alone, and the next one gets a new process. Where the system can, its memory is bounded, it writes no file, and it dies with its
parent.

Lines to the process: a file's path and suffix. Lines from it: {"blocks": [[kind, text, level, place], …], "pages", "empty_pages"}, or
{"problem"}.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from munjang.documents.blocks import FileBlock, ParsedFile
from munjang.documents.formats import FORMATS, find_document_format
from munjang.errors import InputError, MissingExtra, UsageError
from munjang.limits import DOCUMENT_LIMITS, DocumentLimits
from munjang.wording import count

COMMAND = (sys.executable, "-P", "-c", "from munjang.documents.reader_process import main; main()")
FILES_PER_PROCESS = 500
"""After so many files a new process begins, so that what a parser leaves in memory does not add up."""

_PACKAGES = {"office": "xberg", "pdf": "pypdfium2", "hwp": "unhwp"}


class DocumentError(InputError):
    """One file cannot be read as a document; the message says why, without its name."""


class ScannedDocument(DocumentError):
    """A PDF that holds pictures of pages and no text."""


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
        self._process: subprocess.Popen[bytes] | None = None
        self._files = 0

    def __enter__(self) -> DocumentReader:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the process."""
        process, self._process = self._process, None
        if process is None:
            return
        process.kill()
        assert process.stdin is not None
        assert process.stdout is not None
        with suppress(OSError):
            process.stdin.close()
        process.stdout.close()
        process.wait()

    def read(self, path: Path) -> ParsedFile:
        """Return the blocks of a file; a file that cannot be read is a DocumentError, and the next one can be."""
        format = find_document_format(path)
        if format is None:
            raise UsageError(f"{path.name}: no document, expected a name that ends in {', '.join(FORMATS)}")
        if find_spec(_PACKAGES[format.parser]) is None:
            raise MissingExtra(f"reading {format.name} files", "documents")
        answer = self._ask({"path": str(path.absolute()), "suffix": path.suffix.lower()})
        blocks = tuple(FileBlock(*each) for each in answer["blocks"])
        if not blocks and answer["pages"] and answer["pages"] == answer["empty_pages"]:
            raise ScannedDocument(
                f"is a scan: {count(answer['pages'], 'page')} without text\n  recognise its text first, such as with ocrmypdf"
            )
        if not blocks:
            raise DocumentError("holds no text")
        return ParsedFile(blocks, format.place_kind, answer["pages"], answer["empty_pages"])

    def _ask(self, question: dict[str, Any]) -> dict[str, Any]:
        process = self._ready_process()
        assert process.stdin is not None
        assert process.stdout is not None
        is_late = threading.Event()

        def end_late() -> None:
            is_late.set()
            process.kill()

        timer = threading.Timer(self._limits.seconds, end_late)
        timer.start()
        try:
            with suppress(OSError):  # it died: reading says so
                process.stdin.write(json.dumps(question).encode() + b"\n")
                process.stdin.flush()
            line = process.stdout.readline(self._limits.answer_bytes)
        finally:
            timer.cancel()
        if not line.endswith(b"\n"):
            self.close()
            raise DocumentError(self._say_end(is_late.is_set(), len(line)))
        answer: dict[str, Any] = json.loads(line)
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

    def _ready_process(self) -> subprocess.Popen[bytes]:
        self._files += 1
        if self._files > FILES_PER_PROCESS or (self._process is not None and self._process.poll() is not None):
            self.close()
        if self._process is None:
            self._files = 1
            path = os.pathsep.join(each for each in sys.path if each)
            self._process = subprocess.Popen(  # noqa: S603 - our own code
                self._command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,  # a traceback may hold a file's text
                env={**os.environ, "PYTHONPATH": path, "RUST_BACKTRACE": "0"},
            )
            order = ReaderOrder(self._limits.memory_bytes, self._limits.file_bytes, self._limits.text_characters)
            assert self._process.stdin is not None
            with suppress(OSError):
                self._process.stdin.write(json.dumps(asdict(order)).encode() + b"\n")
        return self._process


def main() -> None:
    """Read an order and then files' names from standard input, and answer each on standard output."""
    output = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a parser prints is not an answer
    order = ReaderOrder(**json.loads(sys.stdin.buffer.readline()))
    _bound_process(order)
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
    return {"blocks": blocks, "pages": parsed.pages, "empty_pages": parsed.empty_pages}


def _parse(path: Path, suffix: str, order: ReaderOrder) -> ParsedFile:
    size = path.stat().st_size
    if size > order.file_bytes:
        raise DocumentError(f"has {count(size, 'byte')}, the limit is {order.file_bytes:,}")
    raw = path.read_bytes()
    if not raw:
        raise DocumentError("is empty")
    format = FORMATS[suffix]
    if format.parser == "pdf":
        from munjang.documents.parse_pdf import parse_pdf

        parsed = parse_pdf(raw)
    elif format.parser == "hwp":
        from munjang.documents.parse_hwp import parse_hwp

        parsed = parse_hwp(raw)
    else:
        from munjang.documents.parse_office import parse_office

        parsed = parse_office(raw, format)
    characters = sum(len(block.text) for block in parsed.blocks)
    if characters > order.text_characters:
        raise DocumentError(f"its text has {count(characters, 'character')}, the limit is {order.text_characters:,}")
    return parsed


def _say_problem(error: BaseException) -> str:
    """Return an error of a parser in one line, without paths."""
    said = " ".join(str(error).split())
    if "password" in said.lower() or "encrypted" in said.lower():
        return "is encrypted\n  save it without a password"
    said = "".join(ch for ch in said if ch.isprintable())[:200]
    return f"cannot be read ({type(error).__name__}{': ' + said if said else ''})"


def _bound_process(order: ReaderOrder) -> None:
    """Bound this process, and let it die with its parent, each where the system knows how."""
    with suppress(ImportError, ValueError, OSError, AttributeError):
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))  # it writes no file
        resource.setrlimit(resource.RLIMIT_DATA, (order.memory_bytes, order.memory_bytes))
    with suppress(AttributeError, OSError, TypeError):  # Linux; it ends even a process that runs no Python
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
    with suppress(AttributeError, ValueError):
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # its parent decides
