"""An uploaded file → clean records, read by a process of its own that can be ended at any moment.

The process (`text/child_process.py`) reads the file twice: first to its end, so that a broken line is told and the records are counted
before anything is added; then again, to hand over the records in groups as fast as they are taken. Where the system can, its memory and
processor time are bounded, and it yields to the server.

Lines to the process: one order. Lines from it: {"total", "guessed"}, {"records": [[id, text, metadata, where], …]}, …, {"end"}; or
{"problem", "status"} instead.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, BinaryIO

from munjang.errors import MunjangError
from munjang.library.records import documents
from munjang.limits import SERVE_LIMITS
from munjang.text.child_process import ChildProcess, bound_process
from munjang.text.readers import read_texts
from munjang.text.records import Record
from munjang.types import DEFAULT_ENCODING
from munjang.wording import count

COMMAND = (sys.executable, "-P", "-c", "from munjang.serve.upload_reader import main; main()")
GROUP_RECORDS = 64
GROUP_CHARACTERS = 100_000
LINE_BYTES = 256 * 2**20
"""A line holds a group: at most one text beyond GROUP_CHARACTERS and its metadata, escaped."""


class ReadingFailed(MunjangError):
    """The file cannot be read; `http_status` is the error's own."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.http_status = status


@dataclass(frozen=True)
class ReadOrder:
    """The file and what is known about it; all but the last fields are options of `read_texts`."""

    path: str
    text_column: str | None = None
    id_column: str | None = None
    encoding: str = DEFAULT_ENCODING
    delimiter: str | None = None
    header: bool | None = None
    quoting: bool | None = None
    memory_bytes: int = SERVE_LIMITS.upload_memory_bytes
    cpu_seconds: int = SERVE_LIMITS.upload_cpu_seconds
    unpacked_bytes: int = SERVE_LIMITS.max_unpacked_bytes


class UploadReader:
    """The process that reads one file. `kill` may be called from any thread, at any time."""

    def __init__(self, order: ReadOrder) -> None:
        self._process = ChildProcess(COMMAND, asdict(order))
        self._cpu_seconds = order.cpu_seconds
        self.guessed: str | None = None
        """The text column, where it was chosen among several."""

    def __enter__(self) -> UploadReader:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.close()

    def kill(self) -> None:
        """End the process, whatever it is doing."""
        self._process.kill()

    def count(self) -> int:
        """Return how many records the file holds; call it first."""
        answer = self._answer()
        self.guessed = answer["guessed"]
        return int(answer["total"])

    def records(self) -> Iterator[Record]:
        """Yield the records; call it once, after `count`."""
        while "records" in (answer := self._answer()):
            for id, text, metadata, where in answer["records"]:
                yield Record(id, text, metadata, where)

    def _answer(self) -> dict[str, Any]:
        answer = self._process.receive(LINE_BYTES)
        if isinstance(answer, int):
            raise ReadingFailed(
                f"the file could not be read: its reader ended with code {self._process.close()}\n"
                f"  it may take {self._cpu_seconds:,} s of processor time and a bounded amount of memory; split the file",
                422,
            )
        if "problem" in answer:
            raise ReadingFailed(answer["problem"], answer["status"])
        return answer


def main() -> None:
    """Read one order from standard input and answer on standard output."""
    order = ReadOrder(**json.loads(sys.stdin.buffer.readline()))
    bound_process(memory_bytes=order.memory_bytes, cpu_seconds=order.cpu_seconds)
    with suppress(AttributeError, OSError):
        os.nice(5)  # the server goes first
    threading.Thread(target=_end_with_server, daemon=True).start()
    output = sys.stdout.buffer
    try:
        for answer in _answers(order):
            output.write(json.dumps(answer, ensure_ascii=False).encode() + b"\n")
            output.flush()
    except MunjangError as error:
        _tell_problem(output, str(error), error.http_status)
    except MemoryError:
        _tell_problem(
            output, f"reading the file takes more than {count(order.memory_bytes, 'byte')} of memory, the limit\n  split the file", 422
        )
    except BrokenPipeError:
        pass  # nobody wants the rest
    except Exception as error:
        _tell_problem(output, f"internal error ({type(error).__name__})", 500)
    os._exit(0)  # what stands in buffers is for nobody


def _answers(order: ReadOrder) -> Iterator[dict[str, Any]]:
    guessed: list[str] = []
    total = characters = 0
    for document in documents(_records(order, guessed)):
        total += 1
        characters += len(document.text)
        if characters > order.unpacked_bytes:
            raise ReadingFailed(
                f"the file's texts have more than {count(order.unpacked_bytes, 'character')}, the limit\n  split the file", 413
            )
    if not total:
        raise ReadingFailed("the file holds no texts", 422)
    yield {"total": total, "guessed": guessed[0] if guessed else None}
    group: list[list[Any]] = []
    size = 0
    for record in _records(order, []):
        [document] = documents([record])
        group.append([document.id or None, document.text, document.metadata, record.where])
        size += len(document.text)
        if len(group) >= GROUP_RECORDS or size >= GROUP_CHARACTERS:
            yield {"records": group}
            group, size = [], 0
    if group:
        yield {"records": group}
    yield {"end": True}


def _records(order: ReadOrder, guessed: list[str]) -> Iterator[Record]:
    return read_texts(
        Path(order.path),
        text_column=order.text_column,
        id_column=order.id_column,
        encoding=order.encoding,
        delimiter=order.delimiter,
        header=order.header,
        quoting=order.quoting,
        on_guess=guessed.append,
    )


def _tell_problem(output: BinaryIO, message: str, status: int) -> None:
    with suppress(OSError):
        output.write(json.dumps({"problem": message, "status": status}).encode() + b"\n")
        output.flush()


def _end_with_server() -> None:
    sys.stdin.buffer.read()  # until the server's end of the pipe is closed
    os._exit(1)
