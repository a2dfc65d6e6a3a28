"""The reader of SentencePiece files on files made by hand: what is read, what is stepped over, what is refused."""

from __future__ import annotations

import struct

import pytest

from munjang.errors import FolderError
from munjang.text.sentencepiece import Algorithm, Kind, Piece, Spelling, Vocabulary, build, parse_sentencepiece


def varint(value: int) -> bytes:
    return bytes([value]) if value < 0x80 else bytes([value & 0x7F | 0x80]) + varint(value >> 7)


def number(field: int, value: int) -> bytes:
    return varint(field << 3) + varint(value)


def message(field: int, data: bytes) -> bytes:
    return varint(field << 3 | 2) + varint(len(data)) + data


def piece(text: str, score: float = 0.0, kind: int = 1) -> bytes:
    return message(1, message(1, text.encode()) + varint(2 << 3 | 5) + struct.pack("<f", score) + number(3, kind))


UNKNOWN = piece("<unk>", kind=2)


def test_pieces_and_settings_are_read_and_unknown_fields_stepped_over():
    unread = number(99, 2**60) + varint(98 << 3 | 1) + bytes(8) + message(97, b"x" * 300)
    data = unread + piece("▁비", -1.5) + UNKNOWN + message(2, number(3, 2) + number(35, 1) + number(24, 1)) + message(3, message(2, b"map"))
    model = parse_sentencepiece(data, where="m.model")
    assert model.pieces == (Piece("▁비", -1.5, Kind.NORMAL), Piece("<unk>", 0.0, Kind.UNKNOWN))
    assert (model.unknown_id, model.algorithm, model.charsmap) == (1, Algorithm.BPE, b"map")
    assert (model.byte_fallback, model.whitespace_as_suffix) == (True, True)
    assert (model.add_dummy_prefix, model.remove_extra_whitespaces) == (True, True)


def test_what_a_file_does_not_say_is_sentencepieces_default():
    model = parse_sentencepiece(message(1, b"") + UNKNOWN, where="m.model")
    assert model.pieces[0] == Piece("", 0.0, Kind.NORMAL)
    assert (model.algorithm, model.charsmap, model.byte_fallback, model.whitespace_as_suffix) == (Algorithm.UNIGRAM, b"", False, False)


BROKEN = {
    "a number where bytes belong": number(1, 5),
    "bytes where a number belongs": message(1, message(3, b"x")) + UNKNOWN,
    "the file ends inside a number": UNKNOWN + b"\x80",
    "a number of more than ten bytes": UNKNOWN + b"\xff" * 11,
    "the file ends inside a field of 9 bytes": UNKNOWN + varint(1 << 3 | 2) + varint(9) + b"short",
    "wire type 3": UNKNOWN + varint(1 << 3 | 3),
    "exactly one must be the unknown piece": UNKNOWN + UNKNOWN,
    "0 pieces": b"",
    "is not a valid Kind": piece("a", kind=77) + UNKNOWN,
    "is not a valid Algorithm": UNKNOWN + message(2, number(3, 9)),
    "can't decode": message(1, message(1, b"\xff\xfe")) + UNKNOWN,
}


@pytest.mark.parametrize("words", BROKEN)
def test_a_broken_file_is_refused_and_says_why(words):
    with pytest.raises(FolderError, match=f"m.model: not a SentencePiece model .*{words}"):
        parse_sentencepiece(BROKEN[words], where="m.model")


@pytest.mark.parametrize(
    ("settings", "words"), [(number(3, 3), "algorithm WORD"), (number(3, 4), "algorithm CHAR"), (number(24, 1), "white space as suffix")]
)
def test_a_way_of_cutting_that_is_not_supported_is_refused(settings, words):
    model = parse_sentencepiece(UNKNOWN + message(2, settings), where="m.model")
    with pytest.raises(FolderError, match=f"m.model: (the )?{words} is not supported"):
        build(model, Vocabulary(model.pieces, 0), spelling=Spelling(), where="m.model")
