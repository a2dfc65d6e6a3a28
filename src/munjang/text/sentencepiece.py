"""A SentencePiece model file → its pieces and settings, read with a small protobuf reader of our own.

Bytes come in, a `SentencePieceModel` goes out. Only the fields that change how text is cut are read; unknown fields are stepped over, as
protobuf asks. Building a tokenizer out of it is left to `sentencepiece_tokenizer`.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum
from typing import TypeAlias

from munjang.errors import FolderError

Field: TypeAlias = tuple[int, int | bytes]
"""A field's number and its value: an int for varints, bytes for everything else."""


class Kind(IntEnum):
    """What a piece is for, numbered as in the file."""

    NORMAL = 1
    UNKNOWN = 2
    CONTROL = 3
    USER_DEFINED = 4
    UNUSED = 5
    BYTE = 6


class Algorithm(IntEnum):
    """How the model cuts words, numbered as in the file."""

    UNIGRAM = 1
    BPE = 2
    WORD = 3
    CHAR = 4


@dataclass(frozen=True)
class Piece:
    """One entry of the vocabulary; its id is its place."""

    text: str
    score: float
    kind: Kind


@dataclass(frozen=True)
class SentencePieceModel:
    """What a SentencePiece file says about cutting text."""

    pieces: tuple[Piece, ...]
    algorithm: Algorithm
    charsmap: bytes
    byte_fallback: bool
    add_dummy_prefix: bool
    remove_extra_whitespaces: bool
    whitespace_as_suffix: bool

    @property
    def unknown_id(self) -> int:
        """The id that stands for what the model cannot cut."""
        return next(number for number, piece in enumerate(self.pieces) if piece.kind is Kind.UNKNOWN)


def parse_sentencepiece(data: bytes, *, where: str) -> SentencePieceModel:
    """Read a SentencePiece model; a broken file is a FolderError that names `where`."""
    try:
        return _parse_model(data)
    except (ValueError, struct.error, IndexError, TypeError, AttributeError) as error:
        raise FolderError(f"{where}: not a SentencePiece model ({error})\n  copy the file again from where the model came from") from error


def _parse_model(data: bytes) -> SentencePieceModel:
    pieces: list[Piece] = []
    trainer: dict[int, int | bytes] = {}
    normalizer: dict[int, int | bytes] = {}
    for number, value in _fields(data):
        if number == 1:
            pieces.append(_parse_piece(_as_bytes(value)))
        elif number == 2:
            trainer = dict(_fields(_as_bytes(value)))
        elif number == 3:
            normalizer = dict(_fields(_as_bytes(value)))
    if sum(piece.kind is Kind.UNKNOWN for piece in pieces) != 1:
        raise ValueError(f"{len(pieces)} pieces, of which exactly one must be the unknown piece")
    return SentencePieceModel(
        pieces=tuple(pieces),
        algorithm=Algorithm(_as_int(trainer.get(3, 1))),
        charsmap=_as_bytes(normalizer.get(2, b"")),
        byte_fallback=bool(trainer.get(35, 0)),
        add_dummy_prefix=bool(normalizer.get(3, 1)),
        remove_extra_whitespaces=bool(normalizer.get(4, 1)),
        whitespace_as_suffix=bool(trainer.get(24, 0)),
    )


def _parse_piece(data: bytes) -> Piece:
    fields = dict(_fields(data))
    (score,) = struct.unpack("<f", _as_bytes(fields.get(2, b"\0\0\0\0")))
    return Piece(_as_bytes(fields.get(1, b"")).decode(), score, Kind(_as_int(fields.get(3, 1))))


def _as_bytes(value: int | bytes) -> bytes:
    if isinstance(value, int):
        raise ValueError("a number where bytes belong")
    return value


def _as_int(value: int | bytes) -> int:
    if not isinstance(value, int):
        raise ValueError("bytes where a number belongs")
    return value


def _fields(data: bytes) -> Iterator[Field]:
    """Yield the fields of one protobuf message."""
    at = 0
    while at < len(data):
        key, at = _varint(data, at)
        number, wire = key >> 3, key & 7
        if wire == 0:
            value, at = _varint(data, at)
            yield number, value
            continue
        if wire == 2:
            size, at = _varint(data, at)
        elif wire in (1, 5):
            size = 8 if wire == 1 else 4
        else:
            raise ValueError(f"wire type {wire} at byte {at}")
        if at + size > len(data):
            raise ValueError(f"the file ends inside a field of {size} bytes at byte {at}")
        yield number, data[at : at + size]
        at += size


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 70, 7):
        if at >= len(data):
            raise ValueError("the file ends inside a number")
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
    raise ValueError(f"a number of more than ten bytes at byte {at}")
