"""What a store is: the place where documents, passages and vectors live, and the only thing in a library that is true.

A document has an id, a text and metadata. Its text is cut into passages; each passage has a number (`row`), a place in the text, one vector
and its words. Row numbers grow and are never used twice, and what stands behind a number never changes (a changed text gets new rows): that
is why caches may trust a row number for as long as the store's `uuid` is theirs.

A store is handed finished entries: it knows no model, splits no text and ranks nothing but words. Everything that it promises is tested for
every store by tests/contract/test_store.py.

Metadata are kept as one text. Checksums cover what a store holds, so that a flipped bit is noticed before it becomes an answer. CRC-32
finds every single flipped bit and every burst up to 32 bits. A passage's checksum covers its numbers and its vector, so that two swapped
vectors are noticed too. The content hash is another thing: it says whether a text has changed, so it must not collide.

A store may hold a code for every token of a passage beside its vector (`StoredCodebook`, vectors/maxsim.py). They are written and dropped
with the passage. Passages without codes are no damage: an earlier Munjang, which knows nothing of codes, may have added them.
"""

from __future__ import annotations

import hashlib
import json
import math
import struct
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol, TypeAlias, runtime_checkable

import numpy as np

from munjang.errors import InputError, UsageError, quote
from munjang.library.index_config import IndexMethod, IndexPrecision
from munjang.library.where import Condition
from munjang.types import Ints, Vectors
from munjang.vectors.maxsim import TokenCodebook
from munjang.wording import brief_repr

Progress: TypeAlias = Callable[[int], None]
"""Is told how many more records or rows are done; while records are added also 0 again and again, where it may raise to stop."""

Metadata: TypeAlias = dict[str, Any]
"""What JSON can hold; strings in NFC, without NUL."""

MAX_WORDS = 200
"""Words of one lexical query; a longer query asks for its first ones."""

BM25_MOST = 2.2
"""What a word that stands in a passage again and again counts, times its weight: k1 + 1, with FTS5's k1 of 1.2."""


def weigh_words(passages: int, counts: Sequence[int]) -> list[float]:
    """Return how much BM25 lets a word weigh that so many of all passages hold; next to nothing for one that more than half of them hold.

    >>> weigh_words(10, [8, 2])
    [1e-06, 1.2237754316221157]
    """
    ratios = (math.log((passages - count + 0.5) / (count + 0.5)) for count in counts)
    return [ratio if ratio > 0 else 1e-6 for ratio in ratios]


ADVICE = "try again when that is done, or wait longer (patience); searching works meanwhile"
"""What one who wants to write while others do is told."""

BLOCK = 4_096
"""Rows that an iteration hands out at once."""


class ServerLost(InputError):
    """A store's server did not answer, or ended the connection; what was not committed is not there."""

    http_status = 503


class CommitUnknown(ServerLost):
    """The connection was lost while the server committed, so the last change may be there or not."""

    result: Any = None
    """What the call would have returned if it is there."""


@brief_repr
@dataclass(frozen=True)
class Document:
    """One document as it was handed in."""

    id: str
    """Empty only on the way into a library, where it is made of the text."""
    text: str
    metadata: Metadata
    content_hash: str
    """Of the text alone: equal hashes need no second encoding."""


@dataclass(frozen=True)
class Passage:
    """One stretch of a document: characters `start` to `stop` of its text, and the words by which it can be found."""

    start: int
    stop: int
    words: tuple[str, ...]
    """Morphemes or plain words without white space."""


@dataclass(frozen=True, eq=False)
class Entry:
    """A document ready to be stored: P passages, and a vector for each of them."""

    document: Document
    passages: tuple[Passage, ...]
    vectors_PD: Vectors
    token_codes: tuple[bytes, ...] | None = None
    """The codes of each passage's tokens, where the library keeps any."""

    @property
    def lengths_P(self) -> list[int]:
        """How many characters each passage has."""
        return [passage.stop - passage.start for passage in self.passages]

    def check(self, dimension: int) -> None:
        """Refuse an entry that no store can take: its vectors must be finite, one for each passage."""
        expected = (len(self.passages), dimension)
        if not self.passages or self.vectors_PD.shape != expected:
            raise UsageError(f"document {quote(self.document.id)}: found vectors of shape {self.vectors_PD.shape}, expected {expected}")
        if not np.isfinite(self.vectors_PD).all():
            raise UsageError(f"document {quote(self.document.id)}: its vectors hold NaN or infinity, expected finite numbers")


@dataclass(frozen=True)
class NewMetadata:
    """Other metadata for a document that exists; its text, passages and rows stay. A document that does not exist is left alone."""

    id: str
    metadata: Metadata


@dataclass(frozen=True)
class NewTokenCodes:
    """Token codes for a passage that exists; a row that does not exist is left alone."""

    row: int
    codes: bytes


@dataclass(frozen=True)
class NewWeights:
    """The weights of this library's searches from now on, as `SearchWeights.to_text` writes them; None for the built-in ones."""

    weights: str | None


Change: TypeAlias = Entry | NewMetadata | NewTokenCodes | NewWeights


@dataclass(frozen=True, eq=False)
class StoredCodebook:
    """What the token codes of a store mean, which model's they are, and whether every passage got its own."""

    codebook: TokenCodebook
    fingerprint: str
    """The encoder's, when the codes were made; codes of another model than the store's are not used."""
    complete: bool

    @property
    def checksum(self) -> int:
        """Of everything that is stored."""
        return zlib.crc32(f"{self.fingerprint}\0{int(self.complete)}".encode(), self.codebook.checksum)


@dataclass(frozen=True)
class Settings:
    """What every vector in a store has in common. Written once, when the store is made; replaced as a whole when it is encoded anew."""

    model: str
    """The name people know the model by."""
    fingerprint: str
    dimension: int
    analyser: str
    """What split the words: "kiwi" or "bigrams"."""
    passage_characters: int
    passage_overlap: int
    compute: str | None = field(default=None, compare=False)
    """How the model computed, "float32" or "int8"; None where nobody wrote it down. The fingerprint tells it too."""
    pooling: str | None = field(default=None, compare=False)
    """The pooling that was asked for in the place of the model's own; None for its own."""
    weights: str | None = field(default=None, compare=False)
    """The weights of searches that `munjang tune` chose, as text; None for the built-in ones."""


class Place(NamedTuple):
    """Where a row stands: the document's id and the stretch of its text."""

    row: int
    id: str
    start: int
    stop: int


@dataclass(frozen=True, eq=False)
class VectorBlock:
    """Some rows in ascending order, the documents they belong to, and their vectors."""

    rows_N: Ints
    ids: tuple[str, ...]
    vectors_ND: Vectors


class Scored(NamedTuple):
    """A row and how well it answers; more is better."""

    row: int
    score: float


@dataclass(frozen=True)
class StoreNode:
    """A machine, or a file, that holds a part of a store."""

    name: str
    shards: int
    """Pieces of tables; 1 where they are whole."""
    bytes: int


class Store(Protocol):
    """Documents, passages and vectors, with commits that survive a crash.

    Reads are safe from several threads and processes, and each sees the last commit. Methods that write need `writer()` to be held by the
    caller. Vectors whose checksum does not fit are never handed out: reading them raises DamagedFile.
    """

    @property
    def name(self) -> str:
        """What messages call it: the name that it was opened with, else its path or its address without a password."""
        ...

    @property
    def uuid(self) -> str:
        """Different for every store ever made."""
        ...

    def settings(self) -> Settings:
        """Return what all vectors have in common."""
        ...

    def generation(self) -> int:
        """Return a number that grows with every commit."""
        ...

    def writer(self, purpose: str, /, *, patience: float = 0.0) -> AbstractContextManager[None]:
        """Hold the right to write; raise Busy, saying who holds it and since when, if others do for more than `patience` seconds."""
        ...

    def snapshot(self) -> AbstractContextManager[None]:
        """Let all reads of this thread inside the block see one and the same commit."""
        ...

    def put(self, changes: Iterable[Change], /, *, settings: Settings | None = None, codebook: StoredCodebook | None = None) -> None:
        """Write all changes in one transaction that is on disk when this returns; a document with a known id is replaced.

        With `settings` these replace the old ones in the same transaction, and every document that is not among the changes is dropped,
        with the old codebook. With `codebook` it is that of all token codes from now on; codes that were made with another one go.
        An exception from the iterable, or a full disk (NoSpace), leaves the old state as it was.
        """
        ...

    def discard_new(self) -> bool:
        """Remove a library that was made by opening it here, unless something was written since or others may have it open."""
        ...

    def delete(self, ids: Sequence[str], /) -> int:
        """Drop these documents in one transaction and return how many of them existed."""
        ...

    def get(self, ids: Sequence[str], /) -> dict[str, Document]:
        """Return those of the documents that exist, by id."""
        ...

    def entries(self, *, block: int = BLOCK, tokens: bool = False) -> Iterator[list[Entry]]:
        """Yield every document with its passages and vectors, in the order of their first rows; one commit's state.

        With `tokens` also with their token codes; a document of which a passage has none comes without.
        """
        ...

    def codebook(self) -> StoredCodebook | None:
        """Return what the token codes mean; None where there are none."""
        ...

    def token_codes_of(self, rows: Sequence[int] | Ints, /) -> dict[int, bytes]:
        """Return the codes of those of these rows that have any."""
        ...

    def rows_without_codes(self, limit: int, /) -> Ints:
        """Return the first rows that have no token codes, at most so many."""
        ...

    def vectors(self, *, after: int = 0, block: int = BLOCK) -> Iterator[VectorBlock]:
        """Yield the vectors of all rows greater than `after`, in ascending order."""
        ...

    def vectors_of(self, rows: Sequence[int] | Ints, /) -> VectorBlock:
        """Return the vectors of those of these rows that exist, in ascending order."""
        ...

    def rows(self, where: Condition | None = None, /) -> Ints:
        """Return the rows of all documents that meet the condition, in ascending order."""
        ...

    def rows_of(self, ids: Sequence[str], /) -> Ints:
        """Return the rows of these documents, in ascending order."""
        ...

    def places(self, rows: Sequence[int] | Ints, /) -> dict[int, Place]:
        """Return where those of these rows stand that exist."""
        ...

    def lexical(self, words: Sequence[str], k: int, /, *, where: Condition | None = None) -> list[Scored]:
        """Return the k rows that hold any of these words and fit them best, best first, equal ones by row."""
        ...

    def word_frequencies(self, words: Sequence[str], /) -> tuple[int, list[int]]:
        """Return the number of passages, and for each word that `lexical` looks for, once each, how many of them hold it."""
        ...

    def words_between(self, first: str, last: str, /) -> dict[str, int]:
        """Return the words of passages from `first` up to and without `last`, by their codes, and how many passages hold each."""
        ...

    def has_key(self, key: str, /) -> bool:
        """Say whether any document's metadata have this key; it stops at the first one."""
        ...

    def keys(self, limit: int, /) -> list[str]:
        """Return keys of the metadata, at most so many; it reads every document."""
        ...

    def count(self) -> tuple[int, int]:
        """Return the number of documents and of passages."""
        ...

    def nodes(self) -> list[StoreNode]:
        """Return where the store is, and how large."""
        ...

    def verify(self, *, whole: bool = False) -> None:
        """Raise DamagedFile if what is stored is not what was written, as far as this can be found out quickly; with `whole`, surely."""
        ...

    def check(self) -> list[str]:
        """Read everything and return what is wrong, one sentence each; empty when all is well."""
        ...

    def compact(self) -> None:
        """Give space that deleted documents left back to the disk."""
        ...

    def close(self) -> None:
        """Let go of files and connections; a second call does nothing."""
        ...


@runtime_checkable
class NearestRows(Protocol):
    """A store that finds nearest vectors itself, so that the library keeps no matrix of its own."""

    def nearest(self, query_D: Vectors, k: int, /, *, where: Condition | None = None, exact: bool = False) -> list[Scored]:
        """Return the k rows with the highest cosine, best first, equal ones by row."""
        ...

    def prepare(
        self,
        *,
        method: IndexMethod | None,
        precision: IndexPrecision | None,
        recall: float,
        patience: float,
        progress: Progress | None = None,
    ) -> str:
        """Make the index that is asked for, or one for a large library that has none, and say how searches are answered now."""
        ...


def metadata_json(metadata: Metadata) -> str:
    """Return metadata as they are stored: equal metadata give equal texts.

    >>> metadata_json({"year": 2020, "태그": None})
    '{"year":2020,"태그":null}'
    """
    return json.dumps(metadata, ensure_ascii=False, allow_nan=False, sort_keys=True, separators=(",", ":"))


_NUMBERS = struct.Struct("<4q")


def passage_checksum(row: int, document: int, start: int, stop: int, vector: bytes) -> int:
    """Return the checksum of a passage's numbers and its vector as little-endian float32."""
    return zlib.crc32(vector, zlib.crc32(_NUMBERS.pack(row, document, start, stop)))


def codes_checksum(row: int, codebook: TokenCodebook, codes: bytes) -> int:
    """Return the checksum of a passage's token codes, which are worth nothing with another codebook."""
    return zlib.crc32(codes, zlib.crc32(struct.pack("<2q", row, codebook.checksum)))


def document_checksum(id: str, text: str, metadata: str, content_hash: str) -> int:
    """Return the checksum of everything a document has; `metadata` as the JSON that is stored."""
    checksum = 0
    for part in (id, text, metadata, content_hash):
        raw = part.encode()
        checksum = zlib.crc32(raw, zlib.crc32(len(raw).to_bytes(8, "little"), checksum))
    return checksum


def content_hash(text: str) -> str:
    """Return 32 hexadecimal digits that only this text has.

    >>> content_hash("비가 온다")
    '260c32c989249737b1fae8fdfdd55c61'
    """
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()
