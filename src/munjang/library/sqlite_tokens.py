"""Token codes in a library file: the tables, how they are written and read, and what can be wrong with them.

token_codebook   one row: format, the model's fingerprint, whether every passage has codes, centre and scale (<f4), checksum
token_codes      row, the codes of a passage's tokens, one behind the other, checksum over row, codebook and codes

The tables are made when a library gets its first codes, so the format of a file stays 1. An earlier Munjang reads and writes the rest as
ever. A trigger drops the codes of a passage with it, whoever deletes it; the fingerprint tells codes of a model that the library no
longer has.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Sequence

import numpy as np

from munjang.errors import DamagedFile, InputError, UsageError
from munjang.library.sqlite_schema import name_of
from munjang.library.store import StoredCodebook, codes_checksum
from munjang.types import Ints
from munjang.vectors.maxsim import TokenCodebook
from munjang.wording import count

TABLES = (
    "CREATE TABLE token_codebook (one INTEGER PRIMARY KEY CHECK (one = 1), format TEXT NOT NULL, fingerprint TEXT NOT NULL,"
    " complete INTEGER NOT NULL, centre BLOB NOT NULL, scale BLOB NOT NULL, checksum INTEGER NOT NULL)",
    "CREATE TABLE token_codes (row INTEGER PRIMARY KEY, codes BLOB NOT NULL, checksum INTEGER NOT NULL)",
    "CREATE TRIGGER token_codes_of_passages AFTER DELETE ON passages BEGIN DELETE FROM token_codes WHERE row = OLD.row; END",
)


def write_codebook(connection: sqlite3.Connection, stored: StoredCodebook) -> None:
    """Replace the codebook, inside the caller's transaction; codes of another one go."""
    if not has_tables(connection):
        for statement in TABLES:
            connection.execute(statement)
    before = connection.execute("SELECT format, centre, scale FROM token_codebook").fetchone()
    book = stored.codebook
    now = (book.format, book.centre_D.tobytes(), book.scale_D.tobytes())
    if before is not None and tuple(before) != now:
        connection.execute("DELETE FROM token_codes")
    connection.execute("DELETE FROM token_codebook")
    values = (book.format, stored.fingerprint, int(stored.complete), *now[1:], stored.checksum)
    connection.execute("INSERT INTO token_codebook VALUES (1, ?, ?, ?, ?, ?, ?)", values)


def drop_codebook(connection: sqlite3.Connection) -> None:
    """Forget all codes and what they mean, inside the caller's transaction."""
    if has_tables(connection):
        connection.execute("DELETE FROM token_codes")
        connection.execute("DELETE FROM token_codebook")


def put_codes(connection: sqlite3.Connection, row: int, codes: bytes, book: StoredCodebook | None) -> None:
    """Write the codes of a passage that exists."""
    if book is None or len(codes) % book.codebook.token_bytes:
        raise UsageError(f"passage {row}: found {count(len(codes), 'byte')} of token codes, expected codes of the library's codebook")
    if connection.execute("SELECT 1 FROM passages WHERE row = ?", (row,)).fetchone() is not None:
        checksum = codes_checksum(row, book.codebook, codes)
        connection.execute("INSERT OR REPLACE INTO token_codes VALUES (?, ?, ?)", (row, codes, checksum))


def has_tables(connection: sqlite3.Connection) -> bool:
    """Say whether the library ever had token codes."""
    return connection.execute("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'token_codebook'").fetchone() is not None


def read_codebook(connection: sqlite3.Connection) -> StoredCodebook | None:
    """Return what the token codes mean; None where there are none."""
    if not has_tables(connection):
        return None
    row = connection.execute("SELECT format, fingerprint, complete, centre, scale, checksum FROM token_codebook").fetchone()
    if row is None:
        return None
    try:
        format, fingerprint, complete, centre, scale, checksum = row
        if tuple(map(type, row)) != (str, str, int, bytes, bytes, int):
            raise ValueError
        book = TokenCodebook(format, np.frombuffer(centre, "<f4"), np.frombuffer(scale, "<f4"))
        stored = StoredCodebook(book, fingerprint, bool(complete))
    except (ValueError, InputError, UsageError):
        raise DamagedFile(f"{name_of(connection)}: the codebook of its token vectors is damaged\n  run munjang check") from None
    if stored.checksum != checksum:
        raise DamagedFile(f"{name_of(connection)}: the codebook of its token vectors fails its checksum\n  run munjang check")
    return stored


def read_token_codes(connection: sqlite3.Connection, rows: Sequence[int] | Ints, name: str) -> dict[int, bytes]:
    """Return the codes of those of these rows that have any."""
    stored = read_codebook(connection)
    if stored is None:
        return {}
    sql = "SELECT row, codes, checksum FROM token_codes WHERE row IN (SELECT value FROM json_each(?))"
    found: dict[int, bytes] = {}
    for row, codes, checksum in connection.execute(sql, (json.dumps([int(row) for row in rows]),)):
        if not _is_whole(row, codes, checksum, stored.codebook):
            raise DamagedFile(
                f"{name}: the token codes of passage {row} fail their checksum\n  run munjang check, then add its document again"
            )
        found[row] = codes
    return found


def read_rows_without_codes(connection: sqlite3.Connection, limit: int) -> Ints:
    """Return the first rows that have no token codes."""
    known = "WHERE row NOT IN (SELECT row FROM token_codes)" if has_tables(connection) else ""
    found = connection.execute(f"SELECT row FROM passages {known} ORDER BY row LIMIT ?", (limit,))  # noqa: S608
    return np.fromiter((row for (row,) in found), dtype=np.int64)


def findings(connection: sqlite3.Connection) -> Iterator[str]:
    """Yield what is wrong, one sentence each; passages without codes are none of it."""
    if not has_tables(connection):
        return
    defined = {sql for (sql,) in connection.execute("SELECT sql FROM sqlite_master")}
    for statement in TABLES:
        if statement not in defined:
            yield f"the definition of {' '.join(statement.split()[1:3]).lower()} is missing or another one"
    try:
        stored = read_codebook(connection)
    except DamagedFile:
        yield "the codebook of the token vectors is damaged"
        return
    for row, codes, checksum in connection.execute("SELECT row, codes, checksum FROM token_codes"):
        if stored is None or not _is_whole(row, codes, checksum, stored.codebook):
            yield f"the token codes of passage {row} fail their checksum"
    orphans = connection.execute("SELECT count(*) FROM token_codes WHERE row NOT IN (SELECT row FROM passages)").fetchone()[0]
    if orphans:
        yield f"{orphans:,} token codes without a passage"


def _is_whole(row: object, codes: object, checksum: object, book: TokenCodebook) -> bool:
    if not (isinstance(row, int) and isinstance(codes, bytes)):
        return False
    return len(codes) % book.token_bytes == 0 and codes_checksum(row, book, codes) == checksum
