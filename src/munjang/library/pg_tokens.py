"""Token codes in PostgreSQL: the tables of `sqlite_tokens`, dropped with their passages by the server's own foreign key."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from munjang.errors import DamagedFile, InputError, UsageError
from munjang.library.pg_connections import run
from munjang.library.store import StoredCodebook, codes_checksum
from munjang.types import Ints
from munjang.vectors.maxsim import TokenCodebook
from munjang.wording import count

if TYPE_CHECKING:
    import psycopg

_TABLES = (
    "CREATE TABLE IF NOT EXISTS token_codebook (one integer PRIMARY KEY CHECK (one = 1), format text NOT NULL, fingerprint text NOT NULL,"
    " complete boolean NOT NULL, centre bytea NOT NULL, scale bytea NOT NULL, checksum bigint NOT NULL)",
    'CREATE TABLE IF NOT EXISTS token_codes ("row" bigint PRIMARY KEY REFERENCES passages ("row") ON DELETE CASCADE,'
    " codes bytea NOT NULL, checksum bigint NOT NULL)",
)


def write_codebook(connection: psycopg.Connection[Any], stored: StoredCodebook) -> None:
    """Replace the codebook, inside the caller's transaction; codes of another one go."""
    for statement in _TABLES:
        run(connection, statement)
    before = run(connection, "SELECT format, centre, scale FROM token_codebook").fetchone()
    book = stored.codebook
    now = (book.format, book.centre_D.tobytes(), book.scale_D.tobytes())
    if before is not None and (before[0], bytes(before[1]), bytes(before[2])) != now:
        run(connection, "DELETE FROM token_codes")
    run(connection, "DELETE FROM token_codebook")
    values = (book.format, stored.fingerprint, stored.complete, *now[1:], stored.checksum)
    run(connection, "INSERT INTO token_codebook VALUES (1, %s, %s, %s, %s, %s, %s)", values)


def drop_codebook(connection: psycopg.Connection[Any]) -> None:
    """Forget all codes and what they mean, inside the caller's transaction."""
    if has_tables(connection):
        run(connection, "DELETE FROM token_codes")
        run(connection, "DELETE FROM token_codebook")


def put_codes(connection: psycopg.Connection[Any], rows: Iterable[tuple[int, bytes]], book: StoredCodebook | None) -> None:
    """Write the codes of passages; rows that do not exist are left alone."""
    for row, codes in rows:
        if book is None or len(codes) % book.codebook.token_bytes:
            raise UsageError(f"passage {row}: found {count(len(codes), 'byte')} of token codes, expected codes of the library's codebook")
        sql = """INSERT INTO token_codes SELECT %s, %s, %s WHERE EXISTS (SELECT 1 FROM passages WHERE "row" = %s)
                 ON CONFLICT ("row") DO UPDATE SET codes = excluded.codes, checksum = excluded.checksum"""
        run(connection, sql, (row, codes, codes_checksum(row, book.codebook, codes), row))


def has_tables(connection: psycopg.Connection[Any]) -> bool:
    """Say whether the library ever had token codes."""
    return run(connection, "SELECT to_regclass('token_codebook')").fetchone()[0] is not None


def read_codebook(connection: psycopg.Connection[Any]) -> StoredCodebook | None:
    """Return what the token codes mean; None where there are none."""
    if not has_tables(connection):
        return None
    row = run(connection, "SELECT format, fingerprint, complete, centre, scale, checksum FROM token_codebook").fetchone()
    if row is None:
        return None
    try:
        book = TokenCodebook(row[0], np.frombuffer(row[3], "<f4"), np.frombuffer(row[4], "<f4"))
    except (ValueError, InputError, UsageError):
        raise DamagedFile("the codebook of the token vectors is damaged\n  run munjang check") from None
    stored = StoredCodebook(book, row[1], row[2])
    if stored.checksum != row[5]:
        raise DamagedFile("the codebook of the token vectors fails its checksum\n  run munjang check")
    return stored


def read_token_codes(connection: psycopg.Connection[Any], rows: Sequence[int] | Ints, name: str) -> dict[int, bytes]:
    """Return the codes of those of these rows that have any."""
    stored = read_codebook(connection)
    if stored is None:
        return {}
    found: dict[int, bytes] = {}
    wanted = [int(row) for row in rows]
    for row, codes, checksum in run(connection, 'SELECT "row", codes, checksum FROM token_codes WHERE "row" = ANY(%s)', (wanted,)):
        if codes_checksum(row, stored.codebook, codes) != checksum:
            raise DamagedFile(
                f"{name}: the token codes of passage {row} fail their checksum\n  run munjang check, then add its document again"
            )
        found[row] = bytes(codes)
    return found


def read_rows_without_codes(connection: psycopg.Connection[Any], limit: int) -> Ints:
    """Return the first rows that have no token codes."""
    known = 'WHERE "row" NOT IN (SELECT "row" FROM token_codes)' if has_tables(connection) else ""
    found = run(connection, f'SELECT "row" FROM passages {known} ORDER BY "row" LIMIT %s', (limit,))  # noqa: S608
    return np.fromiter((row for (row,) in found), dtype=np.int64)


def findings(connection: psycopg.Connection[Any]) -> Iterator[str]:
    """Yield what is wrong, one sentence each; passages without codes are none of it."""
    try:
        stored = read_codebook(connection)
    except DamagedFile:
        yield "the codebook of the token vectors is damaged"
        return
    if stored is None:
        return
    for row, codes, checksum in run(connection, 'SELECT "row", codes, checksum FROM token_codes'):
        if codes_checksum(row, stored.codebook, codes) != checksum:
            yield f"the token codes of passage {row} fail their checksum"
