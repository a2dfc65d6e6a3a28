"""A file, a gzip file or standard input → decoded physical lines, with bounded memory.

Lines go out without their line ending, each with its number. Only a line feed ends a line (a carriage return before it goes too). The
largest line is bounded while reading, so a file that is one endless line costs no more than the limit. What a line means is left to the
reader of each format.
"""

from __future__ import annotations

import gzip
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from munjang.errors import InputError, UsageError
from munjang.limits import Limits
from munjang.text.records import ByteStream, Reject, Row, TableLayout, describe_place

_CHUNK = 2**20


@contextmanager
def open_input(path: Path | None, *, stdin: ByteStream | None, source: str) -> Iterator[ByteStream]:
    """Open a file's bytes, unpacked if it is a gzip file; None is standard input. What fails while reading names the file."""
    try:
        if path is None:
            yield stdin or sys.stdin.buffer
        elif path.suffix.lower() == ".gz":
            with gzip.open(path, "rb") as packed:
                yield packed
        else:
            with path.open("rb") as plain:
                yield plain
    except EOFError as error:
        raise InputError(f"{source}: the gzip file is cut off before its end\n  copy or download it again") from error
    except (gzip.BadGzipFile, zlib.error) as error:
        raise InputError(f"{source}: not a whole gzip file ({error})\n  copy or download it again") from error
    except OSError as error:
        raise InputError(f"{source}: cannot be read ({error.strerror or error})") from error


def check_encoding(encoding: str) -> None:
    """Refuse an encoding that Python does not know or in which a line feed is not one byte."""
    try:
        one_byte = "\n".encode(encoding.removesuffix("-sig")) == b"\n"
    except (LookupError, UnicodeError) as error:
        raise UsageError(f"encoding {encoding!r}: unknown, expected one such as utf-8 or cp949") from error
    if not one_byte:
        raise UsageError(f"encoding {encoding!r} has no one-byte line ends\n  convert the file to UTF-8 first")


def decode_lines(stream: ByteStream, layout: TableLayout, *, source: str, limits: Limits, reject: Reject) -> Iterator[tuple[int, str]]:
    """Yield (line number, text) for each line that can be read."""
    encoding = layout.encoding.lower().removesuffix("-sig")
    number = 0
    while data := stream.readline(limits.max_line_bytes + 1):
        number += 1
        if number == 1:
            data = data.removeprefix(b"\xef\xbb\xbf") if encoding in ("utf-8", "utf8") else data
            refuse_utf16(data, source)
        if len(data) > limits.max_line_bytes and not data.endswith(b"\n"):
            reject(
                number, InputError(f"{describe_place(source, number)}: longer than {limits.max_line_bytes:,} bytes, the limit for one line")
            )
            _skip_line(stream)
            continue
        try:
            yield number, data.removesuffix(b"\n").removesuffix(b"\r").decode(encoding)
        except UnicodeDecodeError as error:
            found = f"byte {error.start + 1} of the line (0x{data[error.start]:02x}) is not {encoding}"
            reject(
                number,
                InputError(f"{describe_place(source, number)}: {found}\n  name the file's encoding, such as cp949, or convert it to UTF-8"),
            )


def refuse_utf16(data: bytes, source: str) -> None:
    """Refuse a file whose beginning is that of UTF-16."""
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise InputError(f"{source}: starts like UTF-16, expected UTF-8\n  convert the file to UTF-8 first")


def _skip_line(stream: ByteStream) -> None:
    while (data := stream.readline(_CHUNK)) and not data.endswith(b"\n"):
        pass


def read_text_rows(lines: Iterator[tuple[int, str]], *, source: str) -> Iterator[Row]:
    """Yield one row for each line that is not blank, with the only column "text"."""
    return (Row(source, number, {"text": line}) for number, line in lines if line.strip())
