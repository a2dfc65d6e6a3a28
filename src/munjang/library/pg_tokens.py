"""Token codes in PostgreSQL: the tables of `sqlite_tokens`, dropped with their passages by the server's own foreign key."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from munjang.errors import DamagedFile, InputError, UsageError
from munjang.library.pg_cluster import ClusterReader, same_document
from munjang.library.pg_connections import Executes, run
from munjang.library.store import StoredCodebook, codes_checksum
from munjang.types import Ints
from munjang.vectors.maxsim import TokenCodebook
from munjang.wording import count

if TYPE_CHECKING:
    import psycopg

CODEBOOK_TABLE = (
    "CREATE TABLE IF NOT EXISTS token_codebook (one integer PRIMARY KEY CHECK (one = 1), format text NOT NULL, fingerprint text NOT NULL,"
    " complete boolean NOT NULL, centre bytea NOT NULL, scale bytea NOT NULL, checksum bigint NOT NULL)"
)
_TABLES = (
    CODEBOOK_TABLE,
    'CREATE TABLE IF NOT EXISTS token_codes ("row" bigint PRIMARY KEY REFERENCES passages ("row") ON DELETE CASCADE,'
    " codes bytea NOT NULL, checksum bigint NOT NULL)",
)


def write_codebook(connection: psycopg.Connection[Any], stored: StoredCodebook) -> None:
    """Replace the codebook, inside the caller's transaction; codes of another one go."""
    for statement in _TABLES:
        run(connection, statement)
    if replace_codebook(connection, stored):
        run(connection, "DELETE FROM token_codes")


def replace_codebook(connection: psycopg.Connection[Any], stored: StoredCodebook) -> bool:
    """Replace the codebook alone, and say whether codes of another one may be there."""
    before = run(connection, "SELECT format, centre, scale FROM token_codebook").fetchone()
    book = stored.codebook
    now = (book.format, book.centre_D.tobytes(), book.scale_D.tobytes())
    run(connection, "DELETE FROM token_codebook")
    values = (book.format, stored.fingerprint, stored.complete, *now[1:], stored.checksum)
    run(connection, "INSERT INTO token_codebook VALUES (1, %s, %s, %s, %s, %s, %s)", values)
    return before is not None and (before[0], bytes(before[1]), bytes(before[2])) != now


def drop_codebook(connection: psycopg.Connection[Any]) -> None:
    """Forget all codes and what they mean, inside the caller's transaction."""
    if has_tables(connection):
        run(connection, "DELETE FROM token_codes")
        run(connection, "DELETE FROM token_codebook")


def put_codes(connection: psycopg.Connection[Any], codes: Mapping[int, bytes], book: StoredCodebook | None) -> None:
    """Write the codes of passages that exist."""
    sql = b"""INSERT INTO token_codes ("row", codes, checksum) VALUES (%s, %s, %s)
              ON CONFLICT ("row") DO UPDATE SET codes = excluded.codes, checksum = excluded.checksum"""
    with connection.cursor() as cursor:
        cursor.executemany(sql, [(row, code, checksum) for row, code, checksum in check_codes(codes, book)])


def check_codes(codes: Mapping[int, bytes], book: StoredCodebook | None) -> Iterator[tuple[int, bytes, int]]:
    """Yield rows, codes and their checksums; refuse codes that are not those of the codebook."""
    for row, code in codes.items():
        if book is None or len(code) % book.codebook.token_bytes:
            raise UsageError(f"passage {row}: found {count(len(code), 'byte')} of token codes, expected codes of the library's codebook")
        yield row, code, codes_checksum(row, book.codebook, code)


def has_tables(connection: Executes) -> bool:
    """Say whether the library ever had token codes."""
    return run(connection, "SELECT to_regclass('token_codebook')").fetchone()[0] is not None


def read_codebook(connection: Executes) -> StoredCodebook | None:
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


def read_token_codes(connection: Executes, rows: Sequence[int] | Ints, name: str) -> dict[int, bytes]:
    """Return the codes of those of these rows that have any."""
    stored = read_codebook(connection)
    if stored is None:
        return {}
    found: dict[int, bytes] = {}
    wanted = [int(row) for row in rows]
    sql = f'SELECT "row", codes, checksum FROM token_codes WHERE "row" = ANY(%s){_of_book(connection, stored)}'  # noqa: S608
    for row, codes, checksum in run(connection, sql, (wanted,)):
        if codes_checksum(row, stored.codebook, codes) != checksum:
            raise DamagedFile(
                f"{name}: the token codes of passage {row} fail their checksum\n  run munjang check, then add its document again"
            )
        found[row] = bytes(codes)
    return found


def read_rows_without_codes(connection: Executes, limit: int) -> Ints:
    """Return the first rows that have no token codes."""
    known = ""
    if has_tables(connection):
        same = same_document("token_codes", connection) + _of_book(connection, read_codebook(connection))
        known = f'WHERE NOT EXISTS (SELECT 1 FROM token_codes WHERE token_codes."row" = passages."row"{same})'  # noqa: S608
    found = run(connection, f'SELECT "row" FROM passages {known} ORDER BY "row" LIMIT %s', (limit,))  # noqa: S608
    return np.fromiter((row for (row,) in found), dtype=np.int64)


def findings(connection: Executes) -> Iterator[str]:
    """Yield what is wrong, one sentence each; passages without codes are none of it."""
    try:
        stored = read_codebook(connection)
    except DamagedFile:
        yield "the codebook of the token vectors is damaged"
        return
    if stored is None:
        return
    sql = f'SELECT "row", codes, checksum FROM token_codes WHERE true{_of_book(connection, stored)}'  # noqa: S608
    for row, codes, checksum in run(connection, sql):
        if codes_checksum(row, stored.codebook, codes) != checksum:
            yield f"the token codes of passage {row} fail their checksum"


def _of_book(connection: Executes, stored: StoredCodebook | None) -> str:
    """Return the condition that leaves codes of other codebooks out, which a cluster keeps for a while."""
    return f" AND book = {-1 if stored is None else stored.codebook.checksum}" if isinstance(connection, ClusterReader) else ""
