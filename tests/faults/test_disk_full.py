"""A full disk at any moment: a clear error, the old state intact, and work goes on when there is space again."""

from __future__ import annotations

import resource
from contextlib import contextmanager

import pytest

from munjang.errors import NoSpace


@contextmanager
def largest_file(size: int):
    """Let no file of this process grow beyond so many bytes: writes fail as they do on a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def add_until_full(worker, library) -> None:
    for version in range(2, 200):
        library.add([worker.record(str(i), version) for i in range(30, 60)])


@pytest.mark.parametrize("level", range(10))
def test_a_full_disk_leaves_the_old_state(worker, tmp_path, level):
    path = tmp_path / "a.db"
    with worker.opened(path) as library:
        library.add([worker.record(str(i), 1) for i in range(30)])
    size = path.stat().st_size
    with worker.opened(path) as library:
        with largest_file(1_000 + level * size // 6), pytest.raises(NoSpace, match="intact"):
            add_until_full(worker, library)
        known = library.get(map(str, range(60)))
        assert {document.metadata["version"] for document in known if int(document.id) < 30} == {1}
        assert all(f"version {document.metadata['version']} " in document.text for document in known)
        assert library.check() == []
        assert len(library.search("document", k=60)) == len(known)
        library.add([worker.record("after", 1)])
        assert library.get(["after"])
    with worker.opened(path) as library:
        assert library.check() == []


def test_a_full_disk_while_compacting_or_reencoding_leaves_the_old_state(worker, tmp_path):
    class Other(worker.StubEncoder):
        name, fingerprint = "other", "other"

    path = tmp_path / "a.db"
    with worker.opened(path) as library:
        library.add([worker.record(str(i), 50) for i in range(60)])
        for work in (library.compact, lambda: library.reencode(Other())):
            with largest_file(60_000), pytest.raises(NoSpace):
                work()
        assert library.check() == []
        assert library.info().model == "stub"
        assert len(library.search("document", k=60)) == 60


def test_a_new_library_on_a_full_disk_is_refused_and_can_be_made_later(worker, tmp_path):
    path = tmp_path / "a.db"
    with largest_file(3_000), pytest.raises(NoSpace):
        worker.opened(path)
    with worker.opened(path) as library:
        library.add(["rain"])
        assert library.check() == []


def test_removing_makes_room_when_little_is_left(worker, tmp_path):
    path = tmp_path / "a.db"
    with worker.opened(path) as library:
        library.add([worker.record(str(i), 80) for i in range(60)])
    with worker.opened(path) as library, largest_file(path.stat().st_size + 200_000):
        assert library.remove(["1", "2"]) == 2
