"""Connections to PostgreSQL: who may use which, what a snapshot is, and what the server's errors mean to people.

Idle connections wait in a list. A thread inside `snapshot` reads through one connection in one REPEATABLE READ transaction; a walk has a
connection of its own, so that it is not disturbed by whatever its caller does meanwhile.
"""

from __future__ import annotations

import re
import selectors
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit, urlunsplit

from munjang.errors import InputError, MissingExtra, MunjangError, NoSpace, UsageError, shown

if TYPE_CHECKING:
    import psycopg

_NAME = re.compile(r"[a-z][a-z0-9_]{0,39}")
_SNAPSHOT = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"


@dataclass(frozen=True)
class Address:
    """Where a library is: a database, and a schema in it, `postgresql://host/database#name`."""

    url: str = field(repr=False)
    """With the password; never shown."""
    schema: str
    shown: str
    """Without the password."""

    @classmethod
    def parsed(cls, address: str) -> Address:
        """Read an address; without a name behind # the library is the schema "munjang".

        >>> Address.parsed("postgresql://me:secret@host/db#news").shown
        'postgresql://me@host/db#news'
        """
        parts = urlsplit(address)
        name = parts.fragment or "munjang"
        if parts.scheme not in ("postgresql", "postgres"):
            raise UsageError(f"{shown(address)}: expected postgresql://host/database, and #name for one of several libraries there")
        if not _NAME.fullmatch(name):
            raise UsageError(f"library name {shown(name)}: expected small letters, digits and _, a letter first, at most 40")
        user, at, host = parts.netloc.rpartition("@")
        visible = urlunsplit((parts.scheme, user.split(":")[0] + at + host, parts.path, "", parts.fragment))
        return cls(urlunsplit((parts.scheme, parts.netloc, parts.path, parts.query, "")), name, visible)


class Connections:
    """Connections to one library."""

    def __init__(self, address: Address) -> None:
        self.address = address
        self._idle: list[psycopg.Connection[Any]] = []
        self._lock = threading.Lock()
        self._local = threading.local()

    def connect(self) -> psycopg.Connection[Any]:
        """Open a connection of one's own, in autocommit."""
        try:
            import psycopg
        except ImportError as error:
            raise MissingExtra("a library in PostgreSQL", "pgvector") from error
        with translated(self.address.shown):
            connection = psycopg.connect(self.address.url, autocommit=True, connect_timeout=10)
            run(connection, f"SET search_path = {self.address.schema}, public")
        return connection

    @contextmanager
    def reader(self) -> Iterator[psycopg.Connection[Any]]:
        """Lend a connection for one read; inside a snapshot, the snapshot's."""
        held = getattr(self._local, "snapshot", None)
        if held is not None:
            with translated(self.address.shown):
                yield held
            return
        with self._lent() as connection, translated(self.address.shown):
            yield connection

    @contextmanager
    def snapshot(self) -> Iterator[psycopg.Connection[Any]]:
        """Let this thread's reads see one commit; a snapshot inside a snapshot is the outer one."""
        held = getattr(self._local, "snapshot", None)
        if held is not None:
            yield held
            return
        with self.walk() as connection:
            self._local.snapshot = connection
            try:
                yield connection
            finally:
                self._local.snapshot = None

    @contextmanager
    def walk(self) -> Iterator[psycopg.Connection[Any]]:
        """Lend a connection whose reads all see one commit: this thread's snapshot's if it is inside one, as of its first read."""
        with self._lent() as connection, translated(self.address.shown):
            run(connection, _SNAPSHOT)
            self._join_snapshot(connection)
            try:
                yield connection
            finally:
                if not connection.closed:
                    run(connection, "ROLLBACK")

    def close(self) -> None:
        """Close the connections that nobody uses."""
        with self._lock:
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def _join_snapshot(self, connection: psycopg.Connection[Any]) -> None:
        held = getattr(self._local, "snapshot", None)
        if held is None:
            run(connection, "SELECT 1 FROM settings")  # PostgreSQL takes the snapshot with the first read
        else:
            name = run(held, "SELECT pg_export_snapshot()").fetchone()[0]
            run(connection, f"SET TRANSACTION SNAPSHOT '{name}'")

    def _waiting(self) -> psycopg.Connection[Any] | None:
        """Take an idle connection that the server still keeps; those that it closed meanwhile, as in a restart, are given up."""
        while True:
            with self._lock:
                if not self._idle:
                    return None
                connection = self._idle.pop()
            if _is_quiet(connection):
                return connection
            connection.close()

    @contextmanager
    def _lent(self) -> Iterator[psycopg.Connection[Any]]:
        connection = self._waiting() or self.connect()
        try:
            yield connection
        finally:
            if not connection.closed and not connection.broken:
                with self._lock:
                    self._idle.append(connection)


def _is_quiet(connection: psycopg.Connection[Any]) -> bool:
    """Return whether an idle connection is still there; a server that went says so, or closes, and either can be read."""
    if connection.closed or connection.broken:
        return False
    with selectors.DefaultSelector() as selector:
        selector.register(connection.fileno(), selectors.EVENT_READ)
        return not selector.select(timeout=0)


def run(connection: psycopg.Connection[Any], sql: str, values: Any = None) -> Any:
    """Execute a statement; values are always bound."""
    return connection.execute(sql.encode(), values)


@contextmanager
def translated(name: str) -> Iterator[None]:
    """Turn the server's errors into ours."""
    import psycopg

    try:
        yield
    except MunjangError:
        raise
    except psycopg.errors.DiskFull as error:
        raise NoSpace(f"{name}: the server's disk is full; the old state is intact") from error
    except (psycopg.errors.UndefinedTable, psycopg.errors.InvalidSchemaName) as error:
        raise InputError(f"{name}: there is no such library\n  make it with munjang add, or check the address") from error
    except psycopg.OperationalError as error:
        raise InputError(f"{name}: the server does not answer ({shown(str(error), 200)})\n  check the address and that it runs") from error
