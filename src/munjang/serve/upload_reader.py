"""An uploaded file → clean records, read by a process of its own that can be ended at any moment.

Whatever a stranger's file makes a parser do (hang, crash, eat memory), it happens there: the server only reads lines of JSON from a pipe.
The process reads the file twice: first to its end, so that a broken line is told and the records are counted before anything is added;
then again, to hand over the records in groups as fast as they are taken. Where the system can, its memory and processor time are bounded,
it yields to the server, and it dies with it.

Lines to the process: one order. Lines from it: {"total", "guessed"}, {"records": [[id, text, metadata, where], …]}, …, {"end"}; or
{"problem", "status"} instead.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import subprocess
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
        path = os.pathsep.join(each for each in sys.path if each)
        self._process = subprocess.Popen(  # noqa: S603 - our own code
            COMMAND,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,  # a traceback may hold a client's text
            env={**os.environ, "PYTHONPATH": path},
        )
        self._cpu_seconds = order.cpu_seconds
        self.guessed: str | None = None
        """The text column, where it was chosen among several."""
        assert self._process.stdin is not None
        with suppress(OSError):  # it died: reading says so
            self._process.stdin.write(json.dumps(asdict(order)).encode() + b"\n")
            self._process.stdin.flush()  # it stays open: when it ends, the process ends

    def __enter__(self) -> UploadReader:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with suppress(OSError):
            self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait()

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
        assert self._process.stdout is not None
        line = self._process.stdout.readline(LINE_BYTES)
        if not line.endswith(b"\n"):
            code = self._process.wait()
            raise ReadingFailed(
                f"the file could not be read: its reader ended with code {code}\n"
                f"  it may take {self._cpu_seconds:,} s of processor time and a bounded amount of memory; split the file",
                422,
            )
        answer: dict[str, Any] = json.loads(line)
        if "problem" in answer:
            raise ReadingFailed(answer["problem"], answer["status"])
        return answer


def main() -> None:
    """Read one order from standard input and answer on standard output."""
    order = ReadOrder(**json.loads(sys.stdin.buffer.readline()))
    _bound_process(order)
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


def _bound_process(order: ReadOrder) -> None:
    """Bound this process, let the server go first, and die with it, each where the system knows how."""
    with suppress(ImportError, ValueError, OSError, AttributeError):
        import resource

        resource.setrlimit(resource.RLIMIT_CPU, (order.cpu_seconds, order.cpu_seconds))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_DATA, (order.memory_bytes, order.memory_bytes))
    with suppress(AttributeError, OSError):
        os.nice(5)
    with suppress(AttributeError, OSError, TypeError):  # Linux; it ends even a process that runs no Python
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
    threading.Thread(target=_end_with_server, daemon=True).start()


def _end_with_server() -> None:
    sys.stdin.buffer.read()  # until the server's end of the pipe is closed
    os._exit(1)
