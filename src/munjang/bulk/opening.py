"""A path or address → its bytes, unpacked, from any place on; and the lines of a part of it.

A gzip file cannot be entered in the middle. Whoever reads several parts of one in their order goes on from where the last part ended, so
that each worker unpacks a file about once, not once for each part.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import local
from typing import BinaryIO, cast

from munjang.bulk.storage import filesystem, is_url
from munjang.errors import InputError

_CHUNK = 2**20
_kept = local()


def short_name(path: str) -> str:
    """Return a file's name for messages."""
    return path.replace("\\", "/").rpartition("/")[2]


def open_raw(path: str) -> BinaryIO:
    """Open a file's own bytes; seeking is cheap."""
    if is_url(path):
        system, inner = filesystem(path)
        return cast(BinaryIO, system.open(inner, "rb"))
    return Path(path).open("rb")


def stamp(path: str) -> tuple[int, str]:
    """Return a file's size and what tells one version of it from another."""
    if is_url(path):
        system, inner = filesystem(path)
        facts = system.info(inner)
        tag = next((str(facts[key]) for key in ("ETag", "etag", "md5Hash", "mtime", "LastModified") if facts.get(key)), "")
        return int(facts["size"]), tag
    found = Path(path).stat()
    return found.st_size, str(found.st_mtime_ns)


@contextmanager
def reading(path: str) -> Iterator[None]:
    """Turn what fails while reading into an error that names the file."""
    name = short_name(path)
    try:
        yield
    except EOFError as error:
        raise InputError(f"{name}: the gzip file is cut off before its end\n  copy or download it again") from error
    except (gzip.BadGzipFile, zlib.error) as error:
        raise InputError(f"{name}: not a whole gzip file ({error})\n  copy or download it again") from error
    except OSError as error:
        raise InputError(f"{name}: cannot be read ({error.strerror or error})") from error


@contextmanager
def opened_at(path: str, place: int, *, keep: bool = False) -> Iterator[BinaryIO]:
    """Yield the unpacked bytes of a file from a place on; with `keep` a gzip file stays open for this thread's next part of it."""
    if not path.lower().endswith(".gz"):
        with open_raw(path) as plain:
            plain.seek(place)
            yield plain
        return
    try:
        yield _packed_at(path, place)
    except BaseException:
        keep = False
        raise
    finally:
        if not keep:
            forget_packed()


def forget_packed() -> None:
    """Close the gzip file that this thread reads in parts, if there is one."""
    held: tuple[str, gzip.GzipFile, BinaryIO] | None = getattr(_kept, "held", None)
    _kept.held = None
    if held is not None:
        held[1].close()
        held[2].close()


def _packed_at(path: str, place: int) -> BinaryIO:
    held: tuple[str, gzip.GzipFile, BinaryIO] | None = getattr(_kept, "held", None)
    if held is None or held[0] != path or held[1].tell() > place:
        forget_packed()
        raw = open_raw(path)
        held = _kept.held = (path, gzip.GzipFile(fileobj=raw, mode="rb"), raw)
    stream = held[1]
    while (missing := place - stream.tell()) > 0:
        if not stream.read(min(missing, _CHUNK)):
            break
    return cast(BinaryIO, stream)


@contextmanager
def opened_lines(path: str, start: int, stop: int | None, *, keep: bool = False) -> Iterator[LineRange]:
    """Yield the lines of a file that start in [start, stop). Parts of a gzip file must begin where a line does."""
    packed = path.lower().endswith(".gz")
    with opened_at(path, start if packed else max(start - 1, 0), keep=keep) as stream:
        at = start
        if start and not packed:  # the rest of a line that began before belongs to the part before; it may be nothing but the line feed
            at -= 1
            while data := stream.readline(_CHUNK):
                at += len(data)
                if data.endswith(b"\n"):
                    break
        yield LineRange(stream, at, stop)


class LineRange:
    """The lines that start in the bytes [start, stop) of a stream, and where each of them starts.

    The readers of `text` treat the first line they see as a file's first (byte order mark). So inside a file an empty line comes first,
    which every reader steps over; `index` turns a reader's line number into the place of the line in this range.
    """

    def __init__(self, stream: BinaryIO, start: int, stop: int | None) -> None:
        """Take a stream that stands at `start`, where a line starts."""
        self._stream, self._stop = stream, stop
        self._at = start
        self._extra = 1 if start else 0
        self._first = start > 0
        self._inside = False
        self.starts: list[int] = []

    def readline(self, size: int = -1, /) -> bytes:
        """Return one line, or its first `size` bytes; nothing when the next line starts at or behind `stop`."""
        if self._first:
            self._first = False
            return b"\n"
        if not self._inside and self._stop is not None and self._at >= self._stop:
            return b""
        data = self._stream.readline(size)
        if not self._inside and data:
            self.starts.append(self._at)
        self._at += len(data)
        self._inside = bool(data) and not data.endswith(b"\n")
        return data

    def read(self, size: int = -1, /) -> bytes:
        """Return a line too: the readers of line formats do not call this."""
        return self.readline(size)

    @property
    def at(self) -> int:
        """The byte behind the last line that was read."""
        return self._at

    def index(self, number: int) -> int:
        """Return which of `starts` a reader's line number means."""
        return number - 1 - self._extra
