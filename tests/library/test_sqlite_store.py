"""The library file itself: what is refused when it is opened, what damage is told as, and who may hold it."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
import textwrap
from contextlib import closing
from dataclasses import replace

import numpy as np
import pytest

from munjang.errors import Busy, DamagedFile, InputError
from munjang.library import sqlite_files
from munjang.library.library import Library
from munjang.library.sqlite_files import open_connection, translate_errors
from munjang.library.sqlite_schema import create
from munjang.library.sqlite_store import SqliteStore


@pytest.fixture
def path(opened, encoder, tmp_path):
    """A library of two documents."""
    with opened(encoder) as library:
        library.add([{"id": "a", "text": "rain in the river"}, {"id": "b", "text": "snow on the train"}])
    return tmp_path / "a.db"


def change(path, sql: str, *values) -> None:
    connection = sqlite3.connect(path)
    with connection:
        connection.execute(sql, values)
    connection.close()


def test_a_library_of_a_later_version_is_refused_with_both_numbers(path, encoder):
    change(path, "PRAGMA user_version = 99")
    with pytest.raises(InputError, match=r"a.db: has format 99, this Munjang reads format 1\n  use the Munjang that wrote it"):
        Library.open(path, encoder)


def test_making_a_library_that_somebody_else_has_just_made_leaves_it_as_it_is(path, encoder):
    before = path.read_bytes()
    with closing(SqliteStore.open(path)) as store:
        settings = store.settings()
        create(path, replace(settings, dimension=3, model="other"), name="a.db")
        assert store.settings() == settings
    assert path.read_bytes() == before


def test_a_library_in_a_folder_that_does_not_exist_is_refused(tmp_path, encoder):
    with pytest.raises(InputError, match=r"none/a.db: there is no folder .*none\n  make the folder first"):
        Library.open(tmp_path / "none" / "a.db", encoder)
    assert not (tmp_path / "none").exists()


def test_a_closed_library_says_so(path, encoder):
    library = Library.open(path, encoder)
    library.close()
    with pytest.raises(InputError, match=r"a.db: the library is closed\n  open it again"):
        library.get(["a"])


def test_another_program_that_holds_the_file_is_told_as_busy(path, encoder, monkeypatch):
    monkeypatch.setattr(sqlite_files, "BUSY_SECONDS", 0.05)
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with Library.open(path, encoder) as library:
        with pytest.raises(Busy, match=r"a.db: another program is using the file\n  try again later"):
            library.add(["more"])
        assert [document.id for document in library.get(["a"])] == ["a"]
        other.execute("ROLLBACK")
        other.close()
        assert library.add(["more"]).added == 1


def test_a_path_that_cannot_be_opened_is_told_with_sqlites_own_code(tmp_path):
    (tmp_path / "a.db").mkdir()
    with pytest.raises(InputError, match=r"a.db: cannot be opened for reading and writing \(SQLITE_CANTOPEN\)\n  check the path"):
        open_connection(tmp_path / "a.db", write=False)


def test_an_error_of_our_own_making_is_not_told_as_a_damaged_file():
    connection = sqlite3.connect(":memory:")
    with pytest.raises(sqlite3.ProgrammingError, match="binding"), translate_errors("a.db"):
        connection.execute("SELECT ?", ())
    connection.close()


def test_a_document_that_was_changed_behind_our_back_is_told_by_its_id(path, encoder):
    change(path, "UPDATE documents SET text = 'rain in the sea' WHERE id = 'a'")
    with Library.open(path, encoder) as library:
        assert library.check() == ["document number 1 fails its checksum"]
        with pytest.raises(DamagedFile, match=r"a.db: document 'a' fails its checksum\n  run munjang check, then add the document again"):
            library.store.get(["a"])
        assert library.store.get(["b"])["b"].text == "snow on the train"


@pytest.mark.parametrize("sql", ["SET stop = -1", "SET document = 77", "SET start = 9, stop = 3"])
def test_a_passage_without_a_place_is_found_by_the_check(path, encoder, sql):
    change(path, f"UPDATE passages {sql} WHERE row = (SELECT min(row) FROM passages)")
    with Library.open(path, encoder) as library:
        assert any("has no document, or a place that no text has" in finding for finding in library.check())


def test_a_passage_beyond_its_document_is_no_answer(path, encoder):
    with Library.open(path, encoder) as library:
        assert library.search("rain", k=1)[0].id == "a"
        change(path, "UPDATE passages SET stop = 1000000")
        with pytest.raises(DamagedFile, match=r"a.db: passage \d+ has no position in its document\n  run munjang check"):
            library.search("rain", k=1)


FORKED = """
    import os, sys
    from contextlib import closing
    from munjang.library.sqlite_store import SqliteStore

    with closing(SqliteStore.open(sys.argv[1])) as store:
        assert store.count() == (2, 2)
        child = os.fork()
        if child == 0:
            os._exit(0 if store.count() == (2, 2) and store.get(["b"])["b"].text == "snow on the train" else 1)
        assert os.waitpid(child, 0)[1] == 0
        assert store.count() == (2, 2)
        assert store.check() == []
"""


@pytest.mark.skipif(not hasattr(__import__("os"), "fork"), reason="needs fork")
def test_parent_and_child_of_a_fork_read_through_connections_of_their_own(path):
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(FORKED), path], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_model_that_gives_other_vectors_than_it_says_is_refused(library, encoder, monkeypatch):
    library.add(["rain"])
    monkeypatch.setattr(encoder, "encode", lambda texts: np.zeros((len(list(texts)), 3), dtype=np.float32))
    with pytest.raises(InputError, match=r"the model gave vectors of shape \(1, 3\), expected \(1, 16\)"):
        library.add(["snow"])
    assert library.info().documents == 1


@pytest.mark.parametrize("k", [0, -3])
def test_an_answer_of_no_hits_cannot_be_asked_for(library, k):
    with pytest.raises(Exception, match=f"k is {k}, expected at least 1"):
        library.search("rain", k=k)


def test_what_is_unlike_turns_a_question_away(library):
    library.add([{"id": "a", "text": "rain river"}, {"id": "b", "text": "rain snow"}, {"id": "c", "text": "rain"}])
    assert {hit.id for hit in library.search("rain", k=2)} >= {"c"}
    before = {hit.id: hit.score for hit in library.search("rain", k=3)}
    after = {hit.id: hit.score for hit in library.search("rain", k=3, unlike=["b"])}
    assert "b" not in after
    assert after["a"] < before["a"]
