"""What both stores do alike: each read is a function of the back end's own module over a connection that is lent for it.

A back end brings its connections, its module of reads and its settings, and leaves writing, checking and compacting to its own class.
"""

# ruff: noqa: D102 - a protocol of functions, each described where it is written
from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Generic, Protocol, TypeVar

from munjang.errors import UsageError
from munjang.library.store import BLOCK, Document, Entry, Place, Scored, Settings, StoredCodebook, VectorBlock
from munjang.library.where import Condition
from munjang.types import Ints
from munjang.wording import name_facts, quote_place

Connection = TypeVar("Connection")
Lent = TypeVar("Lent", covariant=True)
Given = TypeVar("Given", contravariant=True)


class Connections(Protocol[Lent]):
    """Connections of a back end, lent for a block."""

    def reader(self) -> AbstractContextManager[Lent]:
        """Lend a connection for one read."""
        ...

    def snapshot(self) -> AbstractContextManager[Lent]:
        """Lend a connection whose reads all see one commit."""
        ...

    def walk(self) -> AbstractContextManager[Lent]:
        """Lend a connection of its own for a long read."""
        ...

    def close(self) -> None:
        """Close them all."""
        ...


class Reads(Protocol[Given]):
    """A back end's module of reads; `store.Store` says what each of them promises."""

    def read_documents(self, connection: Given, ids: Sequence[str], name: str) -> dict[str, Document]: ...
    def read_entries(self, connection: Given, *, dimension: int, block: int, name: str, tokens: bool) -> Iterator[list[Entry]]: ...
    def read_codebook(self, connection: Given) -> StoredCodebook | None: ...
    def read_token_codes(self, connection: Given, rows: Sequence[int] | Ints, name: str) -> dict[int, bytes]: ...
    def read_rows_without_codes(self, connection: Given, limit: int) -> Ints: ...
    def read_vectors(self, connection: Given, *, after: int, dimension: int, block: int, name: str) -> Iterator[VectorBlock]: ...
    def read_vectors_of(self, connection: Given, rows: Sequence[int] | Ints, *, dimension: int, name: str) -> VectorBlock: ...
    def read_rows(self, connection: Given, where: Condition | None) -> Ints: ...
    def read_rows_of(self, connection: Given, ids: Sequence[str]) -> Ints: ...
    def read_places(self, connection: Given, rows: Sequence[int] | Ints) -> dict[int, Place]: ...
    def read_lexical(self, connection: Given, words: Sequence[str], k: int, where: Condition | None) -> list[Scored]: ...
    def read_word_frequencies(self, connection: Given, words: Sequence[str]) -> tuple[int, list[int]]: ...
    def read_words_between(self, connection: Given, first: str, last: str) -> dict[str, int]: ...
    def read_settings(self, connection: Given) -> Settings: ...
    def read_generation(self, connection: Given) -> int: ...
    def read_count(self, connection: Given) -> tuple[int, int]: ...
    def read_has_key(self, connection: Given, key: str) -> bool: ...
    def read_keys(self, connection: Given, limit: int) -> list[str]: ...


class SqlStore(Generic[Connection]):
    """The reading half of a store, and the writer's connection of each thread."""

    def __init__(self, name: str, uuid: str, connections: Connections[Connection], reads: Reads[Connection]) -> None:
        self._name, self._uuid = name, uuid
        self._connections, self._reads = connections, reads
        self._writing = threading.local()

    def __repr__(self) -> str:
        return name_facts(type(self).__name__, [quote_place(self.name)])

    @property
    def name(self) -> str:
        """The path as it was given, or the address without a password."""
        return self._name

    @property
    def uuid(self) -> str:
        """Different for every store ever made."""
        return self._uuid

    def settings(self) -> Settings:
        """Return what all vectors have in common."""
        with self._connections.reader() as connection:
            return self._reads.read_settings(connection)

    def generation(self) -> int:
        """Return a number that grows with every commit."""
        with self._connections.reader() as connection:
            return self._reads.read_generation(connection)

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """Let all reads of this thread inside the block see one commit."""
        with self._connections.snapshot():
            yield

    def get(self, ids: Sequence[str], /) -> dict[str, Document]:
        """Return those of the documents that exist, by id."""
        with self._connections.reader() as connection:
            return self._reads.read_documents(connection, ids, self.name)

    def entries(self, *, block: int = BLOCK, tokens: bool = False) -> Iterator[list[Entry]]:
        """Yield every document with its passages and vectors, and with `tokens` their token codes."""
        with self._connections.walk() as connection:
            dimension = self._reads.read_settings(connection).dimension
            yield from self._reads.read_entries(connection, dimension=dimension, block=block, name=self.name, tokens=tokens)

    def codebook(self) -> StoredCodebook | None:
        """Return what the token codes mean; None where there are none."""
        with self._connections.reader() as connection:
            return self._reads.read_codebook(connection)

    def token_codes_of(self, rows: Sequence[int] | Ints, /) -> dict[int, bytes]:
        """Return the codes of those of these rows that have any."""
        with self._connections.snapshot() as connection:
            return self._reads.read_token_codes(connection, rows, self.name)

    def rows_without_codes(self, limit: int, /) -> Ints:
        """Return the first rows that have no token codes."""
        with self._connections.reader() as connection:
            return self._reads.read_rows_without_codes(connection, limit)

    def vectors(self, *, after: int = 0, block: int = BLOCK) -> Iterator[VectorBlock]:
        """Yield the vectors of all rows greater than `after`."""
        with self._connections.walk() as connection:
            dimension = self._reads.read_settings(connection).dimension
            yield from self._reads.read_vectors(connection, after=after, dimension=dimension, block=block, name=self.name)

    def vectors_of(self, rows: Sequence[int] | Ints, /) -> VectorBlock:
        """Return the vectors of those of these rows that exist."""
        with self._connections.snapshot() as connection:
            dimension = self._reads.read_settings(connection).dimension
            return self._reads.read_vectors_of(connection, rows, dimension=dimension, name=self.name)

    def rows(self, where: Condition | None = None, /) -> Ints:
        """Return the rows of all documents that meet the condition."""
        with self._connections.reader() as connection:
            return self._reads.read_rows(connection, where)

    def rows_of(self, ids: Sequence[str], /) -> Ints:
        """Return the rows of these documents."""
        with self._connections.reader() as connection:
            return self._reads.read_rows_of(connection, ids)

    def places(self, rows: Sequence[int] | Ints, /) -> dict[int, Place]:
        """Return where those of these rows stand that exist."""
        with self._connections.reader() as connection:
            return self._reads.read_places(connection, rows)

    def lexical(self, words: Sequence[str], k: int, /, *, where: Condition | None = None) -> list[Scored]:
        """Return the k rows that fit these words best."""
        with self._connections.reader() as connection:
            return self._reads.read_lexical(connection, words, k, where)

    def word_frequencies(self, words: Sequence[str], /) -> tuple[int, list[int]]:
        """Return the number of passages, and how many of them hold each word."""
        with self._connections.reader() as connection:
            return self._reads.read_word_frequencies(connection, words)

    def words_between(self, first: str, last: str, /) -> dict[str, int]:
        """Return the words in a range, and how many passages hold each."""
        with self._connections.reader() as connection:
            return self._reads.read_words_between(connection, first, last)

    def verify(self, *, whole: bool = False) -> None:
        """Leave it to the server, which has checksums of its own."""

    def has_key(self, key: str, /) -> bool:
        """Say whether any document's metadata have this key."""
        with self._connections.reader() as connection:
            return self._reads.read_has_key(connection, key)

    def keys(self, limit: int, /) -> list[str]:
        """Return keys of the metadata, at most so many."""
        with self._connections.reader() as connection:
            return self._reads.read_keys(connection, limit)

    def count(self) -> tuple[int, int]:
        """Return the number of documents and of passages."""
        with self._connections.reader() as connection:
            return self._reads.read_count(connection)

    def close(self) -> None:
        """Close the connections."""
        self._connections.close()

    def discard_new(self) -> bool:
        """Leave the library where it is: whether others have it open cannot be told."""
        return False

    @contextmanager
    def _writing_with(self, connection: Connection) -> Iterator[None]:
        """Let this thread write with the connection inside the block."""
        self._writing.connection = connection
        try:
            yield
        finally:
            self._writing.connection = None

    def _held(self) -> Connection:
        """Return this thread's connection for writing."""
        connection: Connection | None = getattr(self._writing, "connection", None)
        if connection is None:
            raise UsageError(f"{self.name}: writing needs the writer's lock\n  write inside `with store.writer(…):`")
        return connection
