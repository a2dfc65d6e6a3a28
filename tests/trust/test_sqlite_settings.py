"""What SQLite writes is as durable as its settings: they are those under which a commit survives a power cut."""

from __future__ import annotations

import sqlite3

import pytest
from tests.faults.library_worker import opened

from munjang.library.sqlite_files import open_connection

FULL = 2
"""PRAGMA synchronous: the write-ahead log is synced before a commit returns."""


@pytest.fixture
def path(tmp_path):
    with opened(str(tmp_path / "a.db")) as library:
        library.add(["rain"])
    return tmp_path / "a.db"


@pytest.mark.parametrize("write", [True, False], ids=["writer", "reader"])
def test_every_connection_commits_durably(path, write):
    connection = open_connection(path, write=write)
    try:
        settings = {
            name: connection.execute(f"PRAGMA {name}").fetchone()[0]
            for name in ("journal_mode", "synchronous", "trusted_schema", "query_only")
        }
    finally:
        connection.close()
    assert settings == {"journal_mode": "wal", "synchronous": FULL, "trusted_schema": 0, "query_only": int(not write)}


def test_the_write_ahead_log_is_a_property_of_the_file(path):
    connection = sqlite3.connect(path)
    try:
        assert connection.execute("PRAGMA journal_mode").fetchone()[0] == "wal"
        assert connection.execute("PRAGMA page_size").fetchone()[0] == 8_192
    finally:
        connection.close()


def test_a_reading_connection_cannot_write(path):
    connection = open_connection(path, write=False)
    try:
        with pytest.raises(sqlite3.OperationalError, match="readonly"):
            connection.execute("DELETE FROM documents")
    finally:
        connection.close()
