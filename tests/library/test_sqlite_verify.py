"""A library's file is compared with the sums of its pages: damage is noticed, and nothing else is taken for damage."""

from __future__ import annotations

import fcntl
import multiprocessing
import os
import shutil
import sqlite3
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from tests.faults.library_worker import opened, record

from munjang.errors import DamagedFile, InputError
from munjang.library import sqlite_pages, sqlite_verify
from munjang.library.sqlite_files import PAGE_BYTES
from munjang.library.sqlite_pages import FILE, MARK, PASSED_OVER, PageSums, descriptor_of, load_sums, read_log, sum_whole_file

COUNT = 60


@pytest.fixture
def path(tmp_path):
    with opened(str(tmp_path / "a.db")) as library:
        library.add([record(str(number), number) for number in range(COUNT)])
    return tmp_path / "a.db"


@pytest.fixture
def checks(monkeypatch) -> list[int]:
    """Counts how often everything is checked."""
    seen: list[int] = []
    real = sqlite_verify.findings
    monkeypatch.setattr(sqlite_verify, "findings", lambda *given, **named: seen.append(1) or real(*given, **named))
    return seen


def sum_whole_file_of(path, library) -> PageSums:
    library.store.generation()
    return sum_whole_file(path)


def damage_index(path) -> None:
    """Let the index of passages by document forget a document; the table still knows it."""
    with sqlite3.connect(path) as connection:
        (page,) = connection.execute("SELECT pageno FROM dbstat WHERE name = 'passages_of' AND pagetype = 'leaf' LIMIT 1").fetchone()
    connection.close()
    times = path.stat()
    with path.open("r+b") as stream:
        stream.seek((page - 1) * PAGE_BYTES + PAGE_BYTES - 9)
        byte = stream.read(1)
        stream.seek(-1, os.SEEK_CUR)
        stream.write(bytes([byte[0] ^ 4]))
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))


def search_all(library) -> list[str]:
    return [hit.id for hit in library.search("document 3", k=COUNT, where="version >= 0")]


def search_for(library, *, seconds: float) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        library.search("document 3", k=3)
        time.sleep(0.01)


@pytest.mark.parametrize(
    "write",
    [
        lambda library: library.add([record("new", 5)]),
        lambda library: library.add([{**record("3", 3), "version": 4}]),
        lambda library: library.remove(["1", "2"]),
        lambda library: library.compact(),
        lambda library: library.reencode(library.encoder, passage_characters=300),
        lambda library: [library.add([record(f"many {turn}", turn)]) for turn in range(30)],
        lambda library: library.add([record(f"big {number}", 88) for number in range(1_500)]),  # the log begins anew
    ],
    ids=["add", "metadata", "remove", "compact", "reencode", "many commits", "a log that begins anew"],
)
def test_after_every_kind_of_commit_the_sums_are_those_of_the_file(path, checks, write):
    with opened(str(path)) as library:
        write(library)
        uuid = library.store.uuid
        assert load_sums(path.with_name("a.db.cache"), uuid).has_sums_of(sum_whole_file_of(path, library))
    with opened(str(path)) as library:  # its log is in the file now
        assert load_sums(path.with_name("a.db.cache"), uuid).has_sums_of(sum_whole_file_of(path, library))
        library.search("document 3", k=3)
    assert not checks


def test_a_damaged_index_is_refused_by_search_get_and_walks_and_the_reason_is_told(path):
    damage_index(path)
    with opened(str(path)) as library:
        for read in (
            lambda: library.search("document 3"),
            lambda: library.search_many(["document 3"]),
            lambda: library.search(like=["1"]),
            lambda: library.get(["1"]),
            lambda: list(library.store.entries()),
        ):
            with pytest.raises(DamagedFile, match=r"a.db: the file is damaged \(.+\n  munjang check lists all; restore the library"):
                read()
        assert library.check()


def test_a_library_that_was_mended_by_writing_answers_again(path):
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE documents SET text = 'another' WHERE id = '7'")
    connection.close()
    with opened(str(path)) as library:
        with pytest.raises(DamagedFile):
            search_all(library)
        assert library.remove(["7"]) == 1
        assert "7" not in search_all(library)
        library.add([record("7", 7)])
        assert "7" in search_all(library)


def test_writing_to_a_damaged_library_does_not_make_the_damage_pass_for_what_was_written(path):
    damage_index(path)
    with opened(str(path)) as library:
        library.add([record("new", 1)])
    with opened(str(path)) as library, pytest.raises(DamagedFile):
        search_all(library)


def test_a_file_that_came_without_its_cache_is_checked_once(path, checks):
    shutil.rmtree(path.with_name("a.db.cache"))
    for _ in range(3):
        with opened(str(path)) as library:
            assert len(search_all(library)) == COUNT
    assert len(checks) == 1


def test_a_large_file_without_sums_is_left_to_check_and_add(path, checks, monkeypatch):
    monkeypatch.setattr(sqlite_verify, "UNSUMMED_BYTES", 0)
    shutil.rmtree(path.with_name("a.db.cache"))
    with opened(str(path)) as library:
        search_all(library)
        library.add([record("one", 1)])
        assert not checks
        library.prepare()
        assert len(checks) == 1
    damage_index(path)
    with opened(str(path)) as library, pytest.raises(DamagedFile):
        search_all(library)


def test_a_commit_of_another_program_is_checked_and_taken(path, checks):
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE settings SET generation = generation + 1")
    connection.close()
    for _ in range(2):
        with opened(str(path)) as library:
            assert len(search_all(library)) == COUNT
    assert len(checks) == 1


def test_a_writer_that_was_killed_before_its_sums_is_no_damage(path, checks, monkeypatch):
    with opened(str(path)) as library:
        with monkeypatch.context() as patch:
            patch.setattr(sqlite_verify.Verifier, "take_commit", lambda self: None)
            library.add([record("late", 1)])
        copy = path.parent / "copy" / "a.db"
        copy.parent.mkdir()
        for name in ("a.db", "a.db-wal"):
            shutil.copyfile(path.with_name(name), copy.with_name(name))
        shutil.copytree(path.with_name("a.db.cache"), copy.with_name("a.db.cache"))
    with opened(str(copy)) as library:
        assert "late" in search_all(library)
    assert checks == [1]


def test_an_older_copy_in_the_place_of_the_library_is_checked_and_taken(path, tmp_path):
    shutil.copyfile(path, tmp_path / "copy")
    with opened(str(path)) as library:
        library.add([record("new", 1)])
    shutil.copyfile(tmp_path / "copy", path)
    with opened(str(path)) as library:
        assert len(search_all(library)) == COUNT


@pytest.mark.parametrize("raw", [b"", b"no cache", bytes(8_192)])
def test_damaged_sums_are_made_anew(path, raw):
    sums = path.with_name("a.db.cache") / FILE
    sums.write_bytes(raw)
    with opened(str(path)) as library:
        assert len(search_all(library)) == COUNT
    assert len(sums.read_bytes()) > 4_096


def test_a_search_passes_over_vectors_but_a_walk_does_not(path, monkeypatch):
    monkeypatch.setattr(sqlite_pages, "CLASSIFIED_BYTES", 0)
    with opened(str(path)) as library:
        assert library.check() == []
        sums = load_sums(path.with_name("a.db.cache"), library.store.uuid)
        search_all(library)  # keeps vectors in its cache
    passed_over = np.flatnonzero(sums.kind_N == PASSED_OVER)
    assert 0 < len(passed_over) < len(sums.kind_N)
    connection = sqlite3.connect(path)
    (page,) = connection.execute("SELECT pageno FROM dbstat WHERE name = 'vectors' AND pagetype = 'leaf' LIMIT 1").fetchone()
    connection.close()
    with path.open("r+b") as stream:
        stream.seek(page * PAGE_BYTES - 40)
        stream.write(bytes(8))
    with opened(str(path)) as library:
        assert len(search_all(library)) == COUNT
        with pytest.raises(DamagedFile):
            list(library.store.entries())


def test_a_very_large_library_is_read_part_by_part_and_on_in_the_background(path, monkeypatch):
    monkeypatch.setattr(sqlite_verify, "BYTES_AT_ONCE", PAGE_BYTES)
    monkeypatch.setattr(sqlite_verify, "STEP_BYTES", PAGE_BYTES)
    monkeypatch.setattr(sqlite_verify, "STEP_PAUSE", 3_600)
    for turn in range(1, 4):
        with opened(str(path)) as library:
            search_all(library)
        assert (path.with_name("a.db.cache") / MARK).read_text() == str(turn)
    monkeypatch.setattr(sqlite_verify, "STEP_PAUSE", 0.0)
    damage_index(path)
    with opened(str(path)) as library, pytest.raises(DamagedFile):
        search_for(library, seconds=30)


def test_a_library_that_stays_open_is_read_again(path, monkeypatch):
    monkeypatch.setattr(sqlite_verify, "AGAIN_SECONDS", 0.05)
    monkeypatch.setattr(sqlite_verify, "STEP_PAUSE", 0.0)
    with opened(str(path)) as library:
        search_all(library)
        damage_index(path)
        with pytest.raises(DamagedFile):
            search_for(library, seconds=30)


def test_searching_while_another_process_writes_finds_no_damage(path):
    worker = subprocess.Popen(
        [sys.executable, "-m", "tests.faults.library_worker", "write", str(path), "5"], stdout=subprocess.PIPE, text=True
    )
    try:
        assert "begin" in worker.stdout.readline()
        end = time.monotonic() + 3
        while time.monotonic() < end:
            with opened(str(path)) as library:
                library.search("document 3", k=3)
    finally:
        worker.kill()
        worker.communicate()


def test_threads_that_search_first_at_once_verify_once(path, monkeypatch):
    calls = []
    real = sqlite_verify.Verifier._match
    monkeypatch.setattr(sqlite_verify.Verifier, "_match", lambda *given: calls.append(1) or real(*given))
    with opened(str(path)) as library:
        threads = [threading.Thread(target=search_all, args=(library,)) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert calls == [1]


def _can_lock(path) -> bool:
    """Say whether nobody else has SQLite's lock for readers of the file."""
    with path.open("r+b") as stream:
        try:
            fcntl.lockf(stream, fcntl.LOCK_EX | fcntl.LOCK_NB, 510, 0x40000000 + 2)
        except OSError:
            return False
        return True


def test_verifying_does_not_take_sqlites_locks_from_the_file(path):
    """A process that closes any descriptor of a file loses its locks on it; another one could then remove the log."""
    with opened(str(path)) as library:
        search_all(library)
        library.add([record("new", 1)])
        library.store.verify(whole=True)
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            assert pool.apply(_can_lock, (path,)) is False


def test_a_log_is_read_as_sqlite_reads_it(path):
    with opened(str(path)) as library:
        library.add([record("new", 1)])
        log = read_log(path)
        assert log.size
        assert log.offsets
        assert read_log(path, after=log.end).offsets == {}
        assert descriptor_of(path) is not None
        connection = library.store._connections.writer()
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("PRAGMA cache_size = 1")
        connection.execute("UPDATE documents SET text = text || 'x'")  # spills pages that are never committed
        assert read_log(path).end == log.end
        connection.execute("ROLLBACK")
        connection.close()
    assert read_log(path).offsets == {}


def test_no_thread_gets_an_answer_while_another_finds_the_damage(path, monkeypatch):
    damage_index(path)
    real = sqlite_verify.findings
    monkeypatch.setattr(sqlite_verify, "findings", lambda *given, **named: time.sleep(0.3) or real(*given, **named))
    outcomes: list[str] = []
    with opened(str(path)) as library:

        def search() -> None:
            try:
                search_all(library)
                outcomes.append("answered")
            except DamagedFile:
                outcomes.append("refused")

        threads = [threading.Thread(target=search) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert outcomes == ["refused"] * 6


def test_a_library_that_cannot_even_be_checked_stays_refused(path, monkeypatch):
    def no_check(*given, **named):
        raise DamagedFile("its settings are missing")

    damage_index(path)
    monkeypatch.setattr(sqlite_verify, "findings", no_check)
    with opened(str(path)) as library:
        for _ in range(3):
            with pytest.raises(DamagedFile, match="settings are missing"):
                search_all(library)


def test_a_search_does_not_wait_for_a_long_commit_of_another_program(path, monkeypatch):
    monkeypatch.setattr(sqlite_verify, "RETRY_SECONDS", 0.0)
    damage_index(path)
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with opened(str(path)) as library:
        begun = time.monotonic()
        library.search("document 3", k=3)  # nothing is known yet
        assert time.monotonic() - begun < 8
        other.execute("ROLLBACK")
        other.close()
        with pytest.raises(DamagedFile):
            search_for(library, seconds=30)


def test_a_library_whose_file_and_cache_are_gone_says_so(path):
    with opened(str(path)) as library:
        shutil.rmtree(path.with_name("a.db.cache"))
        path.unlink()
        with pytest.raises(InputError, match="the library's file is gone"):
            library.search("document 3")
