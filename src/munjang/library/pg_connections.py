"""Connections to PostgreSQL: who may use which, what a snapshot is, and what the server's errors mean to people.

Idle connections wait in a list. A thread inside `snapshot` reads through one connection in one REPEATABLE READ transaction; a walk has a
connection of its own, so that it is not disturbed by whatever its caller does meanwhile. In a cluster, every read is such a snapshot
(`pg_cluster`).
"""

from __future__ import annotations

import re
import selectors
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias
from urllib.parse import parse_qsl, unquote, urlsplit, urlunsplit

from munjang.errors import Busy, DamagedFile, InputError, MissingExtra, MunjangError, NoSpace, UsageError, quote
from munjang.library.store import ServerLost

if TYPE_CHECKING:
    import psycopg

DEFAULT_SCHEMA = "munjang"
_NAME = re.compile(r"[a-z][a-z0-9_]{0,39}")
_REST = re.compile(r"([^@:/?#]*(:[^@:/?#]*)?@)?([^@:/?#\[\]]*|\[[0-9a-fA-F:.]+\])(:\d*)?([,][^@/?#]*)?(/[^@?#]*)?(\?[^#]*)?(#[^@]*)?")
"""user:password@host:port,more hosts/database?options#name; whatever does not fit may be a password cut in two."""
_BUSY_STATES = {"40001", "40P01", "53300", "55P03", "57014"}
"""Another transaction in the way, no connection left, a limit of time."""
SNAPSHOT = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"


class Executes(Protocol):
    """A connection, or what stands in for one."""

    def execute(self, query: bytes, values: Any = None, /) -> Any:
        """Execute a statement, whose values are bound."""
        ...


ClusterReading: TypeAlias = "Callable[[psycopg.Connection[Any], str, Executes | None], AbstractContextManager[Executes]]"
"""Begins a read in a cluster: on a connection, in a schema, inside an outer read or none."""


@dataclass(frozen=True)
class Address:
    """Where a library is: a database, and a schema in it, `postgresql://host/database#name`."""

    url: str = field(repr=False)
    """With the password; never shown."""
    schema: str
    shown: str
    """What messages call the library: its name, else the address without the password."""
    discreet: bool = False
    """It has a name: strangers may read the messages, so they do not repeat what the server says."""

    @classmethod
    def parse(cls, address: str, *, name: str | None = None) -> Address:
        """Read an address; without a name behind # the library is the schema "munjang".

        >>> Address.parse("postgresql://me:secret@host/db#news").shown
        'postgresql://me@host/db#news'
        """
        scheme, _, rest = address.partition("://")
        if scheme not in ("postgresql", "postgres"):
            raise UsageError(f"{quote(scheme)}: expected postgresql://host/database, and #name for one of several libraries there")
        if not _REST.fullmatch(rest):  # the message shows nothing of it, since it may hold a password
            raise UsageError(
                "the address of the server cannot be read, expected postgresql://user:password@host:port/database#name\n"
                "  in a password, write @ as %40, / as %2F, # as %23, ? as %3F and : as %3A"
            )
        parts = urlsplit(address)
        schema = parts.fragment or DEFAULT_SCHEMA
        if not _NAME.fullmatch(schema):
            raise UsageError(f"library name {quote(schema)}: expected small letters, digits and _, a letter first, at most 40")
        user, at, host = parts.netloc.rpartition("@")
        visible = urlunsplit((parts.scheme, user.split(":")[0] + at + host, parts.path, "", parts.fragment))
        return cls(urlunsplit((parts.scheme, parts.netloc, parts.path, parts.query, "")), schema, name or visible, name is not None)

    def hide(self, text: str) -> str:
        """Return what libpq says without the address or a password in it, one of which it may quote."""
        parts = urlsplit(self.url)
        written = parts.netloc.rpartition("@")[0].partition(":")[2]
        secrets = [self.url, written, unquote(written), *(value for key, value in parse_qsl(parts.query) if "pass" in key)]
        for secret in sorted(filter(None, secrets), key=len, reverse=True):
            text = text.replace(secret, "…")
        return text


class PostgresConnections:
    """Connections to one library."""

    def __init__(self, address: Address) -> None:
        self.address = address
        self.cluster: ClusterReading | None = None
        """None for a library on one server."""
        self._idle: list[psycopg.Connection[Any]] = []
        self._is_closed = False
        self._lock = threading.Lock()
        self._local = threading.local()

    def connect(self) -> psycopg.Connection[Any]:
        """Open a connection of one's own, in autocommit."""
        try:
            import psycopg
        except ImportError as error:
            raise MissingExtra("a library in PostgreSQL", "pgvector") from error
        with translate_errors(self.address):
            # A statement is planned anew for its values: the plan for one word or filter is a bad one for another.
            connection = psycopg.connect(self.address.url, autocommit=True, connect_timeout=10, prepare_threshold=None)
            try:
                run(connection, f"SET search_path = {self.address.schema}, public")
            except BaseException:
                connection.close()
                raise
        return connection

    @contextmanager
    def reader(self) -> Iterator[Executes]:
        """Lend a connection for one read; inside a snapshot, the snapshot's."""
        if self._outer() is not None or self.cluster is not None:
            with self.snapshot() as held, translate_errors(self.address):
                yield held
            return
        with self._lent() as connection, translate_errors(self.address):
            yield connection

    @contextmanager
    def snapshot(self) -> Iterator[Executes]:
        """Let this thread's reads see one commit; a snapshot inside a snapshot is the outer one."""
        held = self._outer()
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
    def walk(self) -> Iterator[Executes]:
        """Lend a connection whose reads all see one commit: this thread's snapshot's if it is inside one, as of its first read."""
        begin = self.cluster or _begin_reading
        with self._lent() as connection, translate_errors(self.address):
            try:
                with begin(connection, self.address.schema, self._outer()) as reading:
                    yield reading
            finally:
                roll_back(connection)

    def close(self) -> None:
        """Close the connections that nobody uses."""
        with self._lock:
            idle, self._idle, self._is_closed = self._idle, [], True
        for connection in idle:
            connection.close()

    def _outer(self) -> Executes | None:
        """Return what this thread reads with, if it is inside a snapshot."""
        return getattr(self._local, "snapshot", None)

    def take(self) -> psycopg.Connection[Any]:
        """Return a connection until it is given back: an idle one, else a new one."""
        return self._waiting() or self.connect()

    def give_back(self, connection: psycopg.Connection[Any]) -> None:
        """Keep a connection for the next one who needs it; one in the middle of something is closed."""
        import psycopg

        if connection.closed or connection.broken or self._is_closed:
            connection.close()
            return
        if connection.info.transaction_status is not psycopg.pq.TransactionStatus.IDLE:
            connection.close()
            return
        with self._lock:
            self._idle.append(connection)

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
        connection = self.take()
        try:
            yield connection
        finally:
            self.give_back(connection)


@contextmanager
def _begin_reading(connection: psycopg.Connection[Any], _schema: str, outer: Executes | None) -> Iterator[Executes]:
    run(connection, SNAPSHOT)
    if outer is None:
        run(connection, "SELECT 1 FROM settings")  # PostgreSQL takes the snapshot with the first read
    else:
        name = run(outer, "SELECT pg_export_snapshot()").fetchone()[0]
        run(connection, f"SET TRANSACTION SNAPSHOT '{name}'")
    yield connection


def _is_quiet(connection: psycopg.Connection[Any]) -> bool:
    """Return whether an idle connection is still there; a server that went says so, or closes, and either can be read."""
    if connection.closed or connection.broken:
        return False
    with selectors.DefaultSelector() as selector:
        selector.register(connection.fileno(), selectors.EVENT_READ)
        return not selector.select(timeout=0)


def run(connection: Executes, sql: str, values: Any = None) -> Any:
    """Execute a statement; values are always bound."""
    return connection.execute(sql.encode(), values)


def roll_back(connection: psycopg.Connection[Any]) -> None:
    """End a transaction; of a connection that is lost, which has none any more, nothing is said: whoever used it was told."""
    import psycopg

    try:
        if not connection.closed:
            connection.rollback()
    except psycopg.Error:
        connection.close()


@contextmanager
def translate_errors(address: Address) -> Iterator[None]:
    """Turn the server's errors into ours."""
    import psycopg

    try:
        yield
    except MunjangError:
        raise
    except psycopg.Error as error:
        raise _translate(error, address) from error


def _translate(error: psycopg.Error, address: Address) -> MunjangError:
    from psycopg import InterfaceError, OperationalError, errors

    name = address.shown
    said = "" if address.discreet else f" ({quote(address.hide(str(error)), 200)})"
    if isinstance(error, errors.DiskFull):
        return NoSpace(f"{name}: the server's disk is full; the old state is intact")
    if isinstance(error, errors.UndefinedTable | errors.InvalidSchemaName):
        return InputError(f"{name}: there is no such library\n  make it with munjang add, or check the address")
    if isinstance(error, errors.InsufficientPrivilege | errors.ReadOnlySqlTransaction):
        return InputError(f"{name}: the database server does not allow this{said}\n  ask its administrator, or use another user")
    if error.sqlstate in _BUSY_STATES:
        return Busy(f"{name}: the database server has too much to do{said}\n  try again later")
    if isinstance(error, OperationalError | InterfaceError):
        return ServerLost(f"{name}: the server does not answer{said}\n  check the address and that it runs")
    return DamagedFile(f"{name}: the database server refuses a statement{said}\n  run munjang check, and compare the versions of both")
