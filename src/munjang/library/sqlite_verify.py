"""Is a library's file what was written? Found out before the first answer, for a few per cent of a search.

Beside the library, in `NAME.cache/pages.cache`, stands the sum of every page of its file. The writer keeps the sums up to date with each
commit. A file whose pages have these sums is whole. Where a sum is missing or another one (a writer was killed, the file was copied or
restored, another program wrote to it, or it is damaged), everything is checked as by `munjang check`: what passes gets new sums, and what
does not is refused with DamagedFile until the library is opened again or written to.

A search passes over the pages of vectors and of passages' words: it does not need them, or reads rows that have a checksum of their own.
Reading everything (`whole`) and writing pass over nothing.

Of a very large library the first search reads a part, and a thread in the background the rest; the next process goes on where this one
stopped. A library that stays open is read again every hour.

`findings` reads everything and compares it with its checksums.
"""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import numpy as np

from munjang.errors import Busy, DamagedFile, MunjangError
from munjang.library import sqlite_tokens
from munjang.library.sqlite_files import BUSY_SECONDS, SqliteConnections, is_busy, translate_errors
from munjang.library.sqlite_pages import (
    NO_FILE,
    LogPages,
    LogPosition,
    PageSums,
    descriptor_of,
    folder_of,
    load_sums,
    page_bytes_of,
    page_count,
    read_log,
    read_mark,
    save_sums,
    sum_file,
    sum_whole_file,
    tell_apart,
    write_mark,
)
from munjang.library.sqlite_schema import TABLES, is_definition, read_settings
from munjang.library.store import document_checksum, passage_checksum
from munjang.types import Ints

BYTES_AT_ONCE = 256 * 2**20
"""What the first search reads at most, in about a tenth of a second."""

UNSUMMED_BYTES = 64 * 2**20
"""A larger file without sums is not checked by a search, which would take seconds, but by `munjang check` or `add`."""

AGAIN_SECONDS = 3_600.0
RETRY_SECONDS, PATIENCE = 5.0, 0.2
"""A writer in the middle of a commit keeps the words from being checked: how long a search waits, and when the next one tries again."""

STEP_BYTES, STEP_PAUSE = 32 * 2**20, 0.25
"""What the thread in the background reads before it lets others work."""
_TRIES, _TRY_PAUSE = 4, 0.02
"""A commit that has its sums only a moment later is no damage."""


class Verifier:
    """Compares a library's file with its sums, and keeps the sums of those who write."""

    def __init__(self, path: Path, uuid: str, connections: SqliteConnections) -> None:
        self._path, self._uuid, self._connections = path, uuid, connections
        self._folder = folder_of(path)
        self._lock = threading.Lock()
        self._closed = threading.Event()
        self._damage: str | None = None
        self._due = self._whole_due = 0.0
        self._begun = False
        self._writing: tuple[PageSums, LogPosition] | None = None
        self._log_end = LogPosition()

    def verify(self, *, whole: bool = False) -> None:
        """Raise DamagedFile if the file is not what was written; costs next to nothing when it was verified in the last hour."""
        if not self._is_due(whole=whole):
            return
        with self._lock:
            if not self._is_due(whole=whole):
                return
            self._connections.check_in_place()
            if whole:
                self._verify_whole(at_any_size=True)
            else:
                self._verify_for_search()

    def check(self, *, patience: float = BUSY_SECONDS) -> list[str]:
        """Read everything and return what is wrong; a file that is whole gets sums. Raise Busy when a writer is in the way for so long."""
        if self._connections.read_only:
            return self._check_copy()
        connection = self._connections.writer()
        try:
            with translate_errors(self._connections.name):
                connection.execute(f"PRAGMA busy_timeout = {round(patience * 1_000)}")
                before = sum_whole_file(self._path)
                found = findings(connection, dimension=read_settings(connection).dimension)
                if not found and before is not None and before.has_sums_of(sum_whole_file(self._path)):  # nobody committed meanwhile
                    save_sums(self._folder, self._uuid, tell_apart(before, connection))
        finally:
            connection.close()
        return found

    def _check_copy(self) -> list[str]:
        """Check a temporary copy: SQLite compares words with their texts only where it could write."""
        with self._connections.walk() as connection, closing(sqlite3.connect("", isolation_level=None)) as copy:
            connection.backup(copy)
            return findings(copy, dimension=read_settings(connection).dimension)

    def begin_writing(self) -> None:
        """Get ready to keep the sums of what is committed from now on; the caller holds the writer's lock and an open connection.

        The pages of a damaged file get no new sums, so that damage is not taken for what was written.
        """
        self._writing = None
        with self._lock:
            try:
                if time.monotonic() >= self._whole_due:
                    self._verify_whole(at_any_size=False)
                sums = None if self._damage else load_sums(self._folder, self._uuid)
                if sums is not None:
                    self._log_end = read_log(self._path, after=self._log_end).end
                    self._writing = sums, self._log_end
            except (MunjangError, OSError):
                pass

    def take_commit(self) -> None:
        """Take over the pages of a commit that was just made."""
        if self._writing is None:
            return
        sums, position = self._writing
        self._writing = None
        try:
            log = read_log(self._path, after=position)
            if log.size is not None:
                sums = self._with_commit(sums, log, log.size)
                save_sums(self._folder, self._uuid, sums)
            self._writing = sums, log.end
        except OSError:  # the next search finds other sums than those of the file, and checks everything
            pass

    def end_writing(self, connection: sqlite3.Connection) -> None:
        """Tell pages apart if many are new; what was damaged may have been mended, so the next search looks again."""
        if self._writing is not None and self._writing[0].has_many_new:
            save_sums(self._folder, self._uuid, tell_apart(self._writing[0], connection))
        self._writing = None
        if self._damage is not None:
            self._damage, self._due, self._whole_due = None, 0.0, 0.0

    def close(self) -> None:
        """Stop what goes on in the background."""
        self._closed.set()

    def _is_due(self, *, whole: bool) -> bool:
        if self._damage is not None:
            raise DamagedFile(self._damage)
        return time.monotonic() >= (self._whole_due if whole else self._due)

    def _verify_whole(self, *, at_any_size: bool) -> None:
        sums = load_sums(self._folder, self._uuid)
        if sums is None and not at_any_size and self._path.stat().st_size > UNSUMMED_BYTES:
            return
        whole = sums is not None and self._matches(lambda sums: sums.all_N)
        seconds = AGAIN_SECONDS if whole or self._check_or_raise() else RETRY_SECONDS
        self._due = self._whole_due = time.monotonic() + seconds

    def _verify_for_search(self) -> None:
        sums = load_sums(self._folder, self._uuid)
        if sums is None:
            whole = self._path.stat().st_size > UNSUMMED_BYTES or self._check_or_raise()
        elif not self._begun and len(sums.searched_N) * sums.page_bytes <= BYTES_AT_ONCE:
            whole = self._matches(lambda sums: sums.searched_N) or self._check_or_raise()
        else:
            whole = self._verify_part(sums)
        self._begun = True
        self._due = time.monotonic() + (AGAIN_SECONDS if whole else RETRY_SECONDS)

    def _verify_part(self, sums: PageSums) -> bool:
        """Begin where the last process stopped: with a part now, if this is the first time, and with the rest in the background."""
        start = read_mark(self._folder) % max(1, len(sums.searched_N))
        pages_N = np.roll(sums.searched_N, -start)
        at_once = 0 if self._begun else BYTES_AT_ONCE // sums.page_bytes
        if not self._matches(_only(pages_N[:at_once])):
            return self._check_or_raise()
        write_mark(self._folder, start + at_once)
        step = STEP_BYTES // sums.page_bytes
        threading.Thread(target=self._go_on, args=(pages_N[at_once:], start + at_once, step), daemon=True).start()
        return True

    def _go_on(self, pages_N: Ints, start: int, step: int) -> None:
        """Compare pages in the background; the next search raises what is found."""
        for at in range(0, len(pages_N), step):
            if self._closed.wait(STEP_PAUSE):
                return
            try:
                if not self._matches(_only(pages_N[at : at + step])):
                    if not self._closed.is_set():
                        self._check_or_raise()
                    return
            except MunjangError:
                return
            write_mark(self._folder, start + at + step)

    def _check_or_raise(self) -> bool:
        """Check everything; return False when a writer does not let it."""
        try:
            found = self.check(patience=PATIENCE)
        except Busy:
            return False
        except DamagedFile as error:  # it cannot even be opened
            self._damage = str(error)
            raise
        if found:
            more = f", and {len(found) - 1:,} more" if len(found) > 1 else ""
            advice = "munjang check lists all; restore the library from a copy, or remove and add again what fails"
            self._damage = f"{self._connections.name}: the file is damaged ({found[0]}{more})\n  {advice}"
            raise DamagedFile(self._damage)
        return True

    def _matches(self, choose: Callable[[PageSums], Ints]) -> bool:
        """Say whether the pages have their sums; a commit that gets its sums only a moment later is no damage."""
        for attempt in range(_TRIES):
            if attempt:
                time.sleep(_TRY_PAUSE)
            sums = load_sums(self._folder, self._uuid)
            try:
                if sums is not None and self._match(sums, choose(sums)):
                    return True
            except OSError:
                pass
        return False

    def _match(self, sums: PageSums, pages_N: Ints) -> bool:
        with self._connections.reader():  # so that SQLite has the file open
            file = descriptor_of(self._path)
            if file is None or page_bytes_of(file) != sums.page_bytes:
                return False
            log = read_log(self._path)
            count = len(sums.sums_N)
            if page_count(file, sums.page_bytes, log) != count:
                return False
            found = sum_file(self._path, file, sums.page_bytes, log, pages_N[pages_N < count])
            return all(np.array_equal(found_N, sums.sums_N[part_N]) for part_N, found_N in found)

    def _with_commit(self, sums: PageSums, log: LogPages, count: int) -> PageSums:
        """Return the sums after commits that left `count` pages and are in the log."""
        pages_N = np.array(sorted(page for page in log.offsets if page < count), dtype=np.int64)
        parts = list(sum_file(self._path, NO_FILE, sums.page_bytes, log, pages_N))
        written_N, sums_N = (np.concatenate(each) for each in zip(*parts, strict=True))
        return sums.with_pages(count, written_N, sums_N)


def _only(pages_N: Ints) -> Callable[[PageSums], Ints]:
    return lambda _: pages_N


MOST = 100
"""Findings after which a check stops counting the same kind of thing."""


def findings(connection: sqlite3.Connection, *, dimension: int) -> list[str]:
    """Return what is wrong, one sentence each. The connection must be able to write, and be inside no transaction."""
    steps: tuple[Callable[[], Iterator[str]], ...] = (
        lambda: _schema(connection),
        lambda: _structure(connection),
        lambda: _documents(connection),
        lambda: _passages(connection, dimension),
        lambda: _orphans(connection),
        lambda: sqlite_tokens.findings(connection),
        lambda: _words(connection),
    )
    found: list[str] = []
    for step in steps:
        try:
            found.extend(step())
        except (sqlite3.Error, UnicodeDecodeError) as error:  # SQLite names a damaged table, and Python cannot read the name
            if is_busy(error):
                raise
            found.append(f"reading stops: {error}")
    return found


def _schema(connection: sqlite3.Connection) -> Iterator[str]:
    """Compare the tables' definitions, by one letter of which words may be looked for otherwise than they were written."""
    defined = {sql for (sql,) in connection.execute("SELECT sql FROM sqlite_master")}
    for statement in TABLES:
        if not any(is_definition(sql, statement) for sql in defined if isinstance(sql, str)):
            yield f"the definition of {statement.split(' (')[0].removeprefix('CREATE ').lower()} is missing or another one"


def _structure(connection: sqlite3.Connection) -> Iterator[str]:
    for (message,) in connection.execute(f"PRAGMA integrity_check({MOST})"):
        if message != "ok":
            yield f"the file's structure: {message}"


def _documents(connection: sqlite3.Connection) -> Iterator[str]:
    for number, *parts, checksum in connection.execute("SELECT number, id, text, metadata, content_hash, checksum FROM documents"):
        if not all(isinstance(part, str) for part in parts) or document_checksum(*parts) != checksum:
            yield f"document number {number} fails its checksum"


def _passages(connection: sqlite3.Connection, dimension: int) -> Iterator[str]:
    sql = """SELECT passages.row, document, start, stop, vector, vectors.checksum, documents.number
             FROM passages LEFT JOIN vectors ON vectors.row = passages.row LEFT JOIN documents ON documents.number = document"""
    for row, document, start, stop, vector, checksum, known in connection.execute(sql):
        if known is None or not all(isinstance(each, int) for each in (document, start, stop)) or not 0 <= start <= stop:
            yield f"passage {row} has no document, or a place that no text has"
        elif not isinstance(vector, bytes) or len(vector) != 4 * dimension:
            yield f"passage {row} has no vector of {dimension} numbers"
        elif passage_checksum(row, document, start, stop, vector) != checksum:
            yield f"the vector of passage {row} fails its checksum"


def _orphans(connection: sqlite3.Connection) -> Iterator[str]:
    for sql, what in (
        ("SELECT count(*) FROM vectors WHERE row NOT IN (SELECT row FROM passages)", "vectors without a passage"),
        ("SELECT count(*) FROM documents WHERE number NOT IN (SELECT document FROM passages)", "documents without a passage"),
        ("SELECT count(*) FROM words_docsize WHERE id NOT IN (SELECT row FROM passages)", "words without a passage"),
        ("SELECT count(*) FROM passages WHERE row NOT IN (SELECT id FROM words_docsize)", "passages without words"),
    ):
        count = connection.execute(sql).fetchone()[0]
        if count:
            yield f"{count:,} {what}"


def _words(connection: sqlite3.Connection) -> Iterator[str]:
    """Let FTS5 compare its index with its texts; it asks for this through an INSERT that writes nothing."""
    try:
        connection.execute("INSERT INTO words (words) VALUES ('integrity-check')")
    except sqlite3.Error as error:
        if is_busy(error):
            raise
        yield f"the index of words: {error}"
