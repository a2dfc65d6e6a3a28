"""A SentencePiece model file → its pieces and settings, read with a small protobuf reader of our own.

Bytes come in, a `SentencePieceModel` goes out. Only the fields that change how text is cut are read; unknown fields are stepped over, as
protobuf asks. Building a tokenizer out of it is left to `sentencepiece_tokenizer`.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import TypeAlias

from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers

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
    for number, value in _read_fields(data):
        if number == 1:
            pieces.append(_parse_piece(_as_bytes(value)))
        elif number == 2:
            trainer = dict(_read_fields(_as_bytes(value)))
        elif number == 3:
            normalizer = dict(_read_fields(_as_bytes(value)))
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
    fields = dict(_read_fields(data))
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


def _read_fields(data: bytes) -> Iterator[Field]:
    """Yield the fields of one protobuf message."""
    at = 0
    while at < len(data):
        key, at = _read_varint(data, at)
        number, wire = key >> 3, key & 7
        if wire == 0:
            value, at = _read_varint(data, at)
            yield number, value
            continue
        if wire == 2:
            size, at = _read_varint(data, at)
        elif wire in (1, 5):
            size = 8 if wire == 1 else 4
        else:
            raise ValueError(f"wire type {wire} at byte {at}")
        if at + size > len(data):
            raise ValueError(f"the file ends inside a field of {size} bytes at byte {at}")
        yield number, data[at : at + size]
        at += size


def _read_varint(data: bytes, at: int) -> tuple[int, int]:
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


SPACE = "▁"
_UNMATCHABLE = (Kind.UNKNOWN, Kind.CONTROL, Kind.UNUSED)


@dataclass(frozen=True)
class Vocabulary:
    """Pieces in the order of the ids the neural model knows, and the id of the unknown piece."""

    pieces: tuple[Piece, ...]
    unknown_id: int

    @property
    def hidden(self) -> frozenset[str]:
        """Pieces that no text may become."""
        return frozenset(piece.text for piece in self.pieces if piece.kind in _UNMATCHABLE)


@dataclass(frozen=True)
class Spelling:
    """What the ALBERT family does to a text before SentencePiece sees it."""

    lower_case: bool = False
    strip_accents: bool = False
    plain_quotes: bool = False


def order_as_in_file(model: SentencePieceModel) -> Vocabulary:
    """Ids as the file numbers them: ALBERT and most others."""
    return Vocabulary(model.pieces, model.unknown_id)


def order_as_fairseq(model: SentencePieceModel) -> Vocabulary:
    """Ids as XLM-RoBERTa numbers them: four special tokens, the file's pieces from the fourth on, then the mask."""
    head = tuple(Piece(text, 0.0, Kind.UNKNOWN if text == "<unk>" else Kind.CONTROL) for text in ("<s>", "<pad>", "</s>", "<unk>"))
    return Vocabulary((*head, *model.pieces[3:], Piece("<mask>", 0.0, Kind.CONTROL)), unknown_id=3)


def order_as_listed(model: SentencePieceModel, listed: Sequence[str], *, where: str) -> Vocabulary:
    """Ids as a vocab.txt numbers them: KoBERT. Every ordinary piece must be in the list, and the list must have [UNK] or <unk>."""
    known = {piece.text: piece for piece in model.pieces if piece.kind not in _UNMATCHABLE}
    missing = sorted(known.keys() - set(listed))
    unknown = next((name for name in ("[UNK]", "<unk>") if name in listed), None)
    if missing or unknown is None:
        found = f"{len(missing)} pieces of the SentencePiece model are not in it, {missing[0]!r} for one" if missing else "no [UNK] in it"
        raise FolderError(f"{where}: {found}\n  the vocabulary and the .model file must come from one model")
    pieces = tuple(known.get(text, Piece(text, 0.0, Kind.UNKNOWN if text == unknown else Kind.CONTROL)) for text in listed)
    return Vocabulary(pieces, listed.index(unknown))


def build(model: SentencePieceModel, vocabulary: Vocabulary, *, spelling: Spelling, where: str) -> Tokenizer:
    """Return a tokenizer without special tokens around the text."""
    if model.algorithm not in (Algorithm.UNIGRAM, Algorithm.BPE) or model.whitespace_as_suffix:
        what = "white space as suffix" if model.whitespace_as_suffix else f"the algorithm {model.algorithm.name}"
        raise FolderError(f"{where}: {what} is not supported, expected a Unigram or BPE model with white space as prefix")
    tokenizer = Tokenizer(
        _make_unigram(model, vocabulary, spelling) if model.algorithm is Algorithm.UNIGRAM else _make_bpe(model, vocabulary)
    )
    tokenizer.normalizer = normalizers.Sequence(_make_normalizers(model, spelling))
    scheme = "always" if model.add_dummy_prefix else "never"
    pre_tokenizer = _make_pre_tokenizer(model, scheme)
    if pre_tokenizer is not None:
        tokenizer.pre_tokenizer = pre_tokenizer
    tokenizer.decoder = decoders.Metaspace(replacement=SPACE, prepend_scheme=scheme)
    return tokenizer


def _make_normalizers(model: SentencePieceModel, spelling: Spelling) -> list[normalizers.Normalizer]:
    steps: list[normalizers.Normalizer] = []
    if spelling.plain_quotes:
        steps += [normalizers.Replace("``", '"'), normalizers.Replace("''", '"')]
    if spelling.strip_accents:
        # NFC afterwards, or Hangul stays in pieces that no vocabulary knows
        steps += [normalizers.NFKD(), normalizers.StripAccents(), normalizers.NFC()]
    if spelling.lower_case:
        steps.append(normalizers.Lowercase())
    if model.charsmap:
        steps.append(normalizers.Precompiled(model.charsmap))
    if model.remove_extra_whitespaces:
        return [*steps, normalizers.Replace(Regex(r"\A +| +\z"), ""), normalizers.Replace(Regex(" {2,}"), " ")]
    if model.add_dummy_prefix:
        steps.append(normalizers.Prepend(SPACE))
    return [*steps, normalizers.Replace(" ", SPACE)]


def _make_pre_tokenizer(model: SentencePieceModel, scheme: str) -> pre_tokenizers.PreTokenizer | None:
    """Cut before each space; a model that keeps runs of spaces may have pieces with spaces inside, so its text stays whole."""
    if not model.remove_extra_whitespaces:
        return None
    metaspace = pre_tokenizers.Metaspace(replacement=SPACE, prepend_scheme=scheme)
    alone = [re.escape(piece.text) for piece in model.pieces if piece.kind is Kind.USER_DEFINED and len(piece.text) == 1]
    if model.algorithm is Algorithm.BPE and alone:
        return pre_tokenizers.Sequence([metaspace, pre_tokenizers.Split(Regex("|".join(alone)), "isolated")])
    return metaspace


def _make_unigram(model: SentencePieceModel, vocabulary: Vocabulary, spelling: Spelling) -> models.Unigram:
    best = max((piece.score for piece in model.pieces if piece.kind is Kind.NORMAL), default=0.0)

    def score(piece: Piece) -> float:
        if piece.kind is Kind.USER_DEFINED:
            # SentencePiece's own rule: a user-defined piece beats every other way to cut its bytes
            return len(piece.text.encode()) * best - 0.1
        if spelling.plain_quotes and len(piece.text) > 1 and piece.text[-1] == "," and piece.text[-2].isdigit():
            return piece.score - 100  # the ALBERT family never keeps a comma on a number
        return piece.score

    pieces = [(piece.text, score(piece)) for piece in vocabulary.pieces]
    return models.Unigram(pieces, unk_id=vocabulary.unknown_id, byte_fallback=model.byte_fallback)


def _make_bpe(model: SentencePieceModel, vocabulary: Vocabulary) -> models.BPE:
    ids = {piece.text: number for number, piece in enumerate(vocabulary.pieces)}
    merges: list[tuple[str, str]] = []
    by_score = sorted((piece for piece in model.pieces if piece.kind is Kind.NORMAL), key=lambda piece: -piece.score)
    mergeable = {piece.text for piece in by_score}
    for piece in by_score:
        halves = ((piece.text[:cut], piece.text[cut:]) for cut in range(1, len(piece.text)))
        merges += sorted((pair for pair in halves if mergeable.issuperset(pair)), key=lambda pair: (ids[pair[0]], ids[pair[1]]))
    unknown = vocabulary.pieces[vocabulary.unknown_id].text
    return models.BPE(ids, merges, unk_token=unknown, fuse_unk=True, byte_fallback=model.byte_fallback)
