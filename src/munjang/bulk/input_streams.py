"""A path or address → its bytes, unpacked, from any place on; and the lines of a part of it.

A gzip file cannot be entered in the middle. Whoever reads several parts of one in their order goes on from where the last part ended, so
that each worker unpacks a file about once, not once for each part.
"""

from __future__ import annotations

import gzip
import io
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import local
from typing import Any, BinaryIO, cast

from munjang.bulk.job import BulkSettings, InputFile
from munjang.bulk.storage import is_url, open_filesystem
from munjang.errors import InputError, MissingExtra, UsageError
from munjang.limits import LIMITS
from munjang.text.read_csv import read_csv_head
from munjang.text.read_lines import check_encoding, decode_lines
from munjang.text.readers import find_format, read_line_rows
from munjang.text.records import (
    Reject,
    Row,
    RowSample,
    TableLayout,
    choose_columns,
    describe_missing_column,
    make_sample,
    take_sample,
    warn_of_guess,
)
from munjang.types import Format

_STRINGS = ("string", "large_string", "dictionary<values=string", "dictionary<values=large_string")
"""How the names of pyarrow's types of texts begin."""


def inspect_input(path: str, settings: BulkSettings) -> InputFile:
    """Return what is to be known about a file before its parts are read."""
    check_encoding(settings.encoding)
    format = settings.input_format or find_format(Path(path))
    if format == "json":
        raise UsageError(f"{shorten_name(path)}: a JSON list cannot be read in parts\n  convert it to JSON Lines, one object a line")
    with translate_read_errors(path):
        size, modified = stamp_file(path)
        if format == "parquet":
            head, sample = _Head(), _sample_parquet(path)
        else:
            head = _read_head(path, format, settings) if format in ("csv", "tsv") else _Head()
            sample = _sample_rows(path, format, settings, head)
    if not sample.texts:  # without a row that can be read there are no columns to choose from
        return InputFile(path, size, modified, format, settings.text_column or "text", settings.id_column, None, 0, 1)
    text_column, id_column = ("text", None) if format == "txt" else _choose_columns(sample, settings, where=shorten_name(path))
    return InputFile(path, size, modified, format, text_column, id_column, head.columns, head.begin, head.line)


def holds_rows(file: InputFile, settings: BulkSettings) -> bool:
    """Say whether a file has a row, be it one that cannot be used."""
    with translate_read_errors(file.path):
        if file.format == "parquet":
            with open_raw(file.path) as handle:
                return int(open_parquet(handle).metadata.num_rows) > 0
        broken = False

        def reject(_line: int, _error: InputError) -> None:
            nonlocal broken
            broken = True

        with open_lines(file.path, file.begin, None) as lines:
            head = _Head(file.columns, file.begin, file.first_line)
            rows = _read_rows(lines, file.format, settings, head, shorten_name(file.path), reject)
            return next(rows, None) is not None or broken


def _choose_columns(sample: RowSample, settings: BulkSettings, *, where: str) -> tuple[str, str | None]:
    choice = choose_columns(sample, text_column=settings.text_column, id_column=settings.id_column, where=where)
    for column in filter(None, (choice.text, choice.id)):
        if column not in sample.texts:
            raise describe_missing_column(column, sample.texts, where=where)
    if choice.guessed:
        warn_of_guess(choice.text)
    return choice.text, choice.id


def find_layout(format: Format, settings: BulkSettings, columns: tuple[str, ...] | None, *, header: bool | None) -> TableLayout:
    """Return how a file's lines are written."""
    quoting = format == "csv" if settings.quoting is None else settings.quoting
    delimiter = "\t" if format == "tsv" else ","
    return TableLayout(format, quoting and format in ("csv", "tsv"), header, delimiter, columns, settings.encoding)


def open_parquet(handle: Any) -> Any:
    """Open a Parquet file for reading."""
    try:
        import pyarrow.parquet
    except ImportError as error:
        raise MissingExtra("reading Parquet", "parquet") from error
    return pyarrow.parquet.ParquetFile(handle)


@dataclass(frozen=True)
class _Head:
    """A table's columns, and the byte and line at which rows begin; other files have no head."""

    columns: tuple[str, ...] | None = None
    begin: int = 0
    line: int = 1


def _sample_parquet(path: str) -> RowSample:
    """Return what a Parquet file's columns hold by their types."""
    with open_raw(path) as handle:
        try:
            schema = open_parquet(handle).schema_arrow
        except ValueError as error:  # pyarrow's errors about content are ValueErrors
            raise InputError(f"{shorten_name(path)}: not a whole Parquet file ({error})") from error
    return RowSample(1, {field.name: int(str(field.type).startswith(_STRINGS)) for field in schema})


def _read_head(path: str, format: Format, settings: BulkSettings) -> _Head:
    """Return a table's head.

    Rows begin behind the header, whether they can be read or not: those that cannot be are rejected by whoever reads them all.
    """
    layout = find_layout(format, settings, None, header=None)
    source = shorten_name(path)
    with open_lines(path, 0, None) as lines:
        decoded = decode_lines(lines, layout, source=source, limits=LIMITS, reject=_refuse)
        head = read_csv_head(decoded, layout, source=source, limits=LIMITS)
        if head is None:
            return _Head()
        columns, line = head
        place = lines.index(line)
        return _Head(columns, lines.starts[place] if place < len(lines.starts) else lines.at, line)


def _refuse(_line: int, error: InputError) -> None:
    raise error


def _sample_rows(path: str, format: Format, settings: BulkSettings, head: _Head) -> RowSample:
    """Return what the first rows that can be read hold."""
    if format in ("csv", "tsv") and head.columns is None:
        return RowSample(0, {})
    with open_lines(path, head.begin, None) as lines:
        return make_sample(take_sample(_read_rows(lines, format, settings, head, shorten_name(path), _pass_over)), head.columns or ())


def _pass_over(_line: int, _error: InputError) -> None:
    """Leave broken rows to whoever reads all rows."""


def _read_rows(lines: LineRange, format: Format, settings: BulkSettings, head: _Head, source: str, reject: Reject) -> Iterator[Row]:
    return read_line_rows(lines, find_layout(format, settings, head.columns, header=False), source=source, reject=reject)


_CHUNK = 2**20
_kept = local()


def shorten_name(path: str) -> str:
    """Return a file's name for messages."""
    return path.replace("\\", "/").rpartition("/")[2]


def open_raw(path: str) -> BinaryIO:
    """Open a file's own bytes; seeking is cheap."""
    if is_url(path):
        system, inner = open_filesystem(path)
        return io.BufferedReader(system.open(inner, "rb"), _CHUNK)  # stores' own files read lines of any length only
    return Path(path).open("rb")


def stamp_file(path: str) -> tuple[int, str]:
    """Return a file's size and what tells one version of it from another."""
    if is_url(path):
        system, inner = open_filesystem(path)
        facts = system.info(inner)
        tag = next((str(facts[key]) for key in ("ETag", "etag", "md5Hash", "mtime", "LastModified") if facts.get(key)), "")
        return int(facts["size"]), tag
    found = Path(path).stat()
    return found.st_size, str(found.st_mtime_ns)


@contextmanager
def translate_read_errors(path: str) -> Iterator[None]:
    """Turn what fails while reading into an error that names the file."""
    name = shorten_name(path)
    try:
        yield
    except EOFError as error:
        raise InputError(f"{name}: the gzip file is cut off before its end\n  copy or download it again") from error
    except (gzip.BadGzipFile, zlib.error) as error:
        raise InputError(f"{name}: not a whole gzip file ({error})\n  copy or download it again") from error
    except OSError as error:
        raise InputError(f"{name}: cannot be read ({error.strerror or error})") from error


@contextmanager
def open_at(path: str, place: int, *, keep: bool = False) -> Iterator[BinaryIO]:
    """Yield the unpacked bytes of a file from a place on; with `keep` a gzip file stays open for this thread's next part of it."""
    if not path.lower().endswith(".gz"):
        with open_raw(path) as plain:
            plain.seek(place)
            yield plain
        return
    try:
        yield _open_packed(path, place)
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


def _open_packed(path: str, place: int) -> BinaryIO:
    held: tuple[str, gzip.GzipFile, BinaryIO] | None = getattr(_kept, "held", None)
    if held is None or held[0] != path or held[1].tell() > place:
        forget_packed()
        raw = open_raw(path)
        held = _kept.held = (path, gzip.GzipFile(fileobj=raw, mode="rb"), raw)
    stream = held[1]
    while (missing := place - stream.tell()) > 0:
        if not stream.read(min(missing, _CHUNK)):
            break
    return cast("BinaryIO", stream)


@contextmanager
def open_lines(path: str, start: int, stop: int | None, *, keep: bool = False) -> Iterator[LineRange]:
    """Yield the lines of a file that start in [start, stop). Parts of a gzip file must begin where a line does."""
    packed = path.lower().endswith(".gz")
    with open_at(path, start if packed else max(start - 1, 0), keep=keep) as stream:
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
