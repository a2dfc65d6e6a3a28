"""The tables of a library in PostgreSQL, one schema each, and how they are made.

settings    one row: uuid, generation, the last row and document number ever used, and what all vectors have in common
documents   number, the id's hash, id, text, metadata (as JSON text, the truth; as jsonb, for filters), content hash, checksum
passages    row (never used twice), document, start, stop, words in order, how many there are, vector, checksum
words       row, word, how often: what BM25 counts
writer      who holds the right to write, for people; only the advisory lock counts
"""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any

from munjang.errors import InputError
from munjang.library.pg_cluster import make_tables
from munjang.library.pg_connections import Executes, run
from munjang.library.pg_filter import METADATA_INDEX, has_index, make_metadata_index
from munjang.library.store import Settings
from munjang.library.where_sql import NUMBER_FUNCTION

if TYPE_CHECKING:
    import psycopg

COLUMNS = "model, fingerprint, dimension, analyser, passage_characters, passage_overlap, compute, pooling"
_NAMES = COLUMNS.split(", ")
_MARKS = ", ".join(["%s"] * len(_NAMES))
_LATER_COLUMNS = ("compute", "pooling", "weights")
"""Columns that Munjang 0.1 did not write; they are added when the settings are replaced."""
_OWN_TABLES = (
    "CREATE TABLE settings (one integer PRIMARY KEY CHECK (one = 1), uuid text NOT NULL, generation bigint NOT NULL,"
    " last_row bigint NOT NULL, last_number bigint NOT NULL, model text NOT NULL, fingerprint text NOT NULL, dimension integer NOT NULL,"
    " analyser text NOT NULL, passage_characters integer NOT NULL, passage_overlap integer NOT NULL, compute text, pooling text)",
    "CREATE TABLE writer (pid integer NOT NULL, since text NOT NULL, purpose text NOT NULL)",
)
_TABLES = (
    # An id may be longer than an index entry, so it is found by its hash.
    "CREATE TABLE documents (number bigint PRIMARY KEY, key bytea NOT NULL UNIQUE, id text NOT NULL, text text NOT NULL,"
    " metadata text NOT NULL, found jsonb NOT NULL GENERATED ALWAYS AS (metadata::jsonb) STORED, content_hash text NOT NULL,"
    " checksum bigint NOT NULL)",
    'CREATE TABLE passages ("row" bigint PRIMARY KEY, document bigint NOT NULL REFERENCES documents (number) ON DELETE CASCADE,'
    " start integer NOT NULL, stop integer NOT NULL, words text[] NOT NULL, length integer NOT NULL, vector vector NOT NULL,"
    " checksum bigint NOT NULL)",
    # Beside long words a vector would be moved out of its row, and every comparison would fetch it from there.
    "ALTER TABLE passages ALTER COLUMN vector SET STORAGE MAIN",
    "CREATE INDEX passages_of ON passages (document)",
    'CREATE TABLE words (word text COLLATE "C" NOT NULL, "row" bigint NOT NULL REFERENCES passages ("row") ON DELETE CASCADE,'
    ' count integer NOT NULL, PRIMARY KEY (word, "row"))',
    'CREATE INDEX words_of ON words ("row")',
)
"""Of a library on one server; those of a cluster are in `pg_cluster`."""

_BY_LENGTH = "passages_by_length"


def create(connection: psycopg.Connection[Any], schema: str, settings: Settings, *, distributed: bool = False) -> None:
    """Make the tables, unless they exist; `distributed` spreads them over the nodes of a cluster."""
    with connection.transaction():
        run(connection, "SELECT pg_advisory_xact_lock(hashtextextended(%s, 1))", (schema,))  # two makers at once: one waits
        if exists(connection, schema):
            return
        _need_pgvector(connection)
        run(connection, f"CREATE SCHEMA IF NOT EXISTS {schema}")
        for statement in (NUMBER_FUNCTION, *_OWN_TABLES, *(() if distributed else _TABLES)):
            run(connection, statement)
        if distributed:
            make_tables(connection)
        names = f"one, generation, last_row, last_number, uuid, {COLUMNS}"
        sql = f"INSERT INTO settings ({names}) VALUES (1, 1, 0, 0, %s, {_MARKS})"  # noqa: S608
        run(connection, sql, (uuid.uuid4().hex, *_values(settings)))


def lacks_indexes(connection: Executes, *, distributed: bool) -> bool:
    """Say whether a library has not yet what `add_indexes` makes."""
    return not (has_index(connection, _BY_LENGTH) and (distributed or has_index(connection, METADATA_INDEX)))


def add_indexes(connection: psycopg.Connection[Any], *, distributed: bool) -> None:
    """Give a large library what its questions need beside an index of vectors, inside the caller's transaction."""
    if not has_index(connection, _BY_LENGTH):  # BM25 reads this instead of the passages, whose vectors make them wide
        run(connection, f'CREATE INDEX {_BY_LENGTH} ON passages ("row") INCLUDE (document, length)')
    if not distributed and not has_index(connection, METADATA_INDEX):
        make_metadata_index(connection)


def exists(connection: Executes, schema: str) -> bool:
    """Say whether there is a library."""
    return bool(run(connection, "SELECT to_regclass(%s) IS NOT NULL", (f"{schema}.settings",)).fetchone()[0])


def read_settings(connection: Executes) -> Settings:
    """Return what all vectors have in common."""
    found = run(connection, "SELECT to_jsonb(settings) FROM settings").fetchone()[0]
    return Settings(*(found.get(name) for name in (*_NAMES, "weights")))


def write_settings(connection: psycopg.Connection[Any], settings: Settings) -> None:
    """Replace the settings, inside the caller's transaction."""
    run(connection, f"UPDATE settings SET ({COLUMNS}) = ({_MARKS})", _values(settings))  # noqa: S608
    run(connection, "UPDATE settings SET weights = %s", (settings.weights,))


def add_later_columns(connection: psycopg.Connection[Any]) -> None:
    """Give a library of Munjang 0.1 the columns it lacks, in a transaction of its own: the lock that this needs would keep readers out."""
    sql = "SELECT attname FROM pg_attribute WHERE attrelid = 'settings'::regclass AND NOT attisdropped"
    known = {name for (name,) in run(connection, sql)}
    for name in _LATER_COLUMNS:
        if name not in known:
            run(connection, f"ALTER TABLE settings ADD COLUMN IF NOT EXISTS {name} text")


def _need_pgvector(connection: psycopg.Connection[Any]) -> None:
    import psycopg

    try:
        with connection.transaction():
            run(connection, "CREATE EXTENSION IF NOT EXISTS vector SCHEMA public")
    except psycopg.Error as error:
        raise InputError(
            "the server has no pgvector, or this user may not switch it on\n  ask its administrator for CREATE EXTENSION vector"
        ) from error


def _values(settings: Settings) -> list[str | int | None]:
    return [getattr(settings, name) for name in _NAMES]
