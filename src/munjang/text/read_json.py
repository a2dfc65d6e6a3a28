"""JSON Lines and JSON lists → rows, with bounded memory.

Each line, or each element of the list, is an object (its keys are the columns) or a string (the only column is "text"). A list is read
element by element, so a large file is never held whole; a list whose syntax is broken cannot be read past the break, so that error is
raised even when bad lines are skipped.
"""

from __future__ import annotations

import codecs
import json
from collections.abc import Iterator
from typing import Any

from munjang.errors import InputError
from munjang.limits import Limits
from munjang.text.records import ByteStream, Reject, Row, TableLayout, describe_place

_CHUNK = 2**18
_DECODER = json.JSONDecoder()


def read_jsonl_rows(lines: Iterator[tuple[int, str]], *, source: str, limits: Limits, reject: Reject) -> Iterator[Row]:
    """Yield a row for each line that is not blank."""
    for number, line in lines:
        if not line.strip():
            continue
        where = describe_place(source, number)
        try:
            row = Row(source, number, _read_values(_load(line, where), where, limits))
        except InputError as error:
            reject(number, error)
            continue
        yield row


def _load(line: str, where: str) -> Any:
    try:
        return json.loads(line)
    except RecursionError as error:
        raise InputError(f"{where}: JSON nested too deeply") from error
    except json.JSONDecodeError as error:
        raise InputError(f"{where}: not JSON: {error.msg} at column {error.colno}") from error
    except ValueError as error:
        raise InputError(f"{where}: not JSON: {error}") from error


def _read_values(value: Any, where: str, limits: Limits) -> dict[str, Any]:
    if isinstance(value, dict):
        if len(value) > limits.max_columns:
            raise InputError(f"{where}: {len(value):,} keys, the limit is {limits.max_columns:,}")
        return value
    if isinstance(value, str):
        return {"text": value}
    raise InputError(f"{where}: a JSON {type(value).__name__}, expected an object or a string")


def read_json_rows(stream: ByteStream, layout: TableLayout, *, source: str, limits: Limits, reject: Reject) -> Iterator[Row]:
    """Yield a row for each element of one JSON list; a row's line is the line on which the element starts."""
    text = _Text(stream, layout.encoding, source, limits)
    if text.peek() != "[":
        raise InputError(
            f"{source}: starts with {text.peek()!r}, expected a JSON list of objects\n  for one object per line, use the format jsonl"
        )
    text.take(1)
    if text.peek() == "]":
        return
    while True:
        text.peek()
        line = text.line
        where = describe_place(source, line)
        value = text.element(where)
        try:
            row = Row(source, line, _read_values(value, where, limits))
        except InputError as error:
            reject(line, error)
        else:
            yield row
        mark = text.peek()
        if mark not in (",", "]"):
            raise InputError(
                f"{describe_place(source, text.line)}: found {mark!r} after an element, expected a comma or the end of the list"
            )
        text.take(1)
        if mark == "]":
            return


class _Text:
    """The decoded text of a stream, held only as far as the element being read."""

    def __init__(self, stream: ByteStream, encoding: str, source: str, limits: Limits) -> None:
        self._stream = stream
        self._decoder = codecs.getincrementaldecoder(encoding)()
        self._source = source
        self._limits = limits
        self._held = ""
        self._at = 0
        self._ended = False
        self.line = 1

    def peek(self) -> str:
        """Step over white space and return the next character, or "" at the end."""
        while True:
            while self._at < len(self._held) and self._held[self._at] in " \t\r\n":
                self.take(1)
            if self._at < len(self._held):
                return self._held[self._at]
            if not self._read(_CHUNK):
                return ""

    def take(self, count: int) -> None:
        """Step over characters."""
        self.line += self._held.count("\n", self._at, self._at + count)
        self._at += count

    def element(self, where: str) -> Any:
        """Return the next JSON value, reading on until it is whole; each try doubles what is held, so the work stays linear."""
        while True:
            try:
                value, end = _DECODER.raw_decode(self._held, self._at)
            except RecursionError as error:
                raise InputError(f"{where}: JSON nested too deeply") from error
            except ValueError as error:
                self._read_on(where, error)
                continue
            size = end - self._at
            if end == len(self._held) and size <= self._limits.max_line_bytes and self._read(max(_CHUNK, size)):
                continue  # a number may go on in the next chunk
            self.take(end - self._at)
            return value

    def _read_on(self, where: str, error: ValueError) -> None:
        held = len(self._held) - self._at
        if held > self._limits.max_line_bytes:
            raise InputError(f"{where}: not JSON, or an element longer than {self._limits.max_line_bytes:,} bytes ({error})") from error
        if not self._read(max(_CHUNK, held)):
            message = error.msg if isinstance(error, json.JSONDecodeError) else str(error)
            raise InputError(f"{where}: not JSON: {message} in the element that starts here") from error

    def _read(self, size: int) -> bool:
        """Hold more text; False at the end."""
        if self._ended:
            return False
        data = self._stream.read(size)
        self._ended = not data
        try:
            more = self._decoder.decode(data, final=self._ended)
        except UnicodeDecodeError as error:
            line = self.line + self._held.count("\n", self._at)
            raise InputError(f"{describe_place(self._source, line)} or after: not {self._decoder_name(error)}") from error
        self._held = self._held[self._at :] + more
        self._at = 0
        return bool(more) or not self._ended

    @staticmethod
    def _decoder_name(error: UnicodeDecodeError) -> str:
        return f"{error.encoding} ({error.reason})\n  name the file's encoding, or convert it to UTF-8"
