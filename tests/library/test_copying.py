"""One library's documents in another."""

from __future__ import annotations

import os
import shutil
import sqlite3
import threading
import time

import pytest

from munjang.errors import UsageError
from munjang.library.copying import copy_documents, copy_library, snapshot
from munjang.library.library import Library


def filled(opened, encoder, name):
    library = opened(encoder, name)
    library.add([{"id": str(number), "text": f"rain {number}"} for number in range(5)])
    return library


def test_a_copy_holds_the_same_answers_and_is_made_once(opened, encoder):
    source, target = filled(opened, encoder, "a.db"), opened(encoder, "b.db")
    target.add([{"id": "own", "text": "snow"}, {"id": "3", "text": "rain 3"}])
    seen = len(encoder.seen)
    assert copy_documents(source.store, target.store) == 4
    assert copy_documents(source.store, target.store) == 0
    assert len(encoder.seen) == seen
    asked = source.search("rain 2", k=3, by="meaning")  # how rare words are differs: the target has one document more
    assert [(hit.id, hit.score) for hit in target.search("rain 2", k=3, by="meaning")] == [(hit.id, hit.score) for hit in asked]
    assert target.get(["own"])[0].text == "snow"


def test_a_copy_to_a_library_of_another_model_is_refused_with_both_names(opened, encoder, make_encoder):
    source, target = filled(opened, encoder, "a.db"), opened(make_encoder("other", 8), "b.db")
    with pytest.raises(
        UsageError, match=r"b.db: holds vectors of 'other' \(other-8\), \S+a.db those of 'stub' .*\n  copy to a new library"
    ):
        copy_documents(source.store, target.store)
    assert target.info().documents == 0


def test_a_snapshot_is_one_commit_however_much_is_written_meanwhile(opened, encoder, tmp_path):
    source = filled(opened, encoder, "a.db")
    stop = threading.Event()

    def write():
        number = 5
        while not stop.is_set():  # two documents a commit: a copy of half a commit would have one of them
            source.add([{"id": str(number), "text": f"rain {number}"}, {"id": str(number + 1), "text": f"rain {number + 1}"}])
            number += 2

    writer = threading.Thread(target=write)
    writer.start()
    try:
        sizes = [snapshot(source.store, tmp_path / f"copy-{number}.db") for number in range(5)]
    finally:
        stop.set()
        writer.join()
    assert sizes == sorted(sizes)
    for number, size in enumerate(sizes):
        path = tmp_path / f"copy-{number}.db"
        assert not path.with_name(path.name + "-wal").exists()
        with Library.open(path, encoder) as copy:
            assert copy.check() == []
            assert copy.store.uuid != source.store.uuid
            assert sorted(int(entry.document.id) for block in copy.store.entries() for entry in block) == list(range(size))
            assert size % 2 == 1
            assert copy.search("rain 2", k=1)[0].id == "2"
    assert not list(tmp_path.glob(".*"))


def test_a_copy_to_a_new_file_is_a_snapshot_and_a_second_one_brings_what_came_since(opened, encoder, tmp_path):
    source, target = filled(opened, encoder, "a.db"), tmp_path / "b.db"
    assert copy_library(source.store, target) == 5
    source.add([{"id": "new", "text": "snow"}])
    assert copy_library(source.store, target) == 1
    with pytest.raises(UsageError, match="is the library that it should be copied to"):
        copy_library(source.store, tmp_path / "a.db")


def test_a_snapshot_that_fails_leaves_nothing(opened, encoder, tmp_path, monkeypatch):
    source = filled(opened, encoder, "a.db")
    (tmp_path / "there.db").write_bytes(b"mine")
    with pytest.raises(UsageError, match="is there already"):
        snapshot(source.store, tmp_path / "there.db")
    assert (tmp_path / "there.db").read_bytes() == b"mine"
    (tmp_path / "folder").mkdir()
    monkeypatch.setattr("munjang.library.sqlite_store.open_connection", _no_connection)
    with pytest.raises(sqlite3.OperationalError):
        source.store.back_up(tmp_path / "folder" / "b.db")
    assert list((tmp_path / "folder").iterdir()) == []


def test_a_snapshot_removes_what_killed_ones_to_the_same_name_left_an_hour_ago(opened, encoder, tmp_path):
    source = filled(opened, encoder, "a.db")
    left = [tmp_path / f".b.db.{name}" for name in ("0a.part", "0a.part-journal", "1b.part")]
    for path in [*left, tmp_path / ".other.db.0a.part"]:
        path.write_bytes(b"half")
    for path in tmp_path.glob(".*.0a.part*"):
        os.utime(path, (time.time() - 4_000, time.time() - 4_000))
    source.store.back_up(tmp_path / "b.db")
    assert sorted(path.name for path in tmp_path.glob(".*.part*")) == [".b.db.1b.part", ".other.db.0a.part"]


def _no_connection(*_, **__):
    raise sqlite3.OperationalError("the disk went away")


def test_a_snapshot_of_a_library_on_a_server_is_one_file(encoder, url, tmp_path):
    pytest.importorskip("psycopg", reason="the extra pgvector is not installed")
    with Library.open(f"{url}#copied", encoder, analyser="bigrams") as source:
        source.add([{"id": str(number), "text": f"rain {number}"} for number in range(5)])
        assert snapshot(source.store, tmp_path / "copy.db") == 5
    shutil.copyfile(tmp_path / "copy.db", tmp_path / "sent.db")  # alone, without what lies beside it
    with Library.open(tmp_path / "sent.db", encoder) as copy:
        assert copy.check() == []
        assert copy.info().documents == 5
