"""A library whose file is replaced or taken away while it is open."""

from __future__ import annotations

import pytest

from munjang.library.library import Library
from munjang.library.sqlite_files import LibraryGone, LibraryReplaced

OLD = [{"id": "a", "text": "rain in the river"}, {"id": "b", "text": "snow on the train"}]
NEW = [{"id": "c", "text": "the cat sleeps"}, {"id": "d", "text": "the dog runs"}, {"id": "e", "text": "rain again"}]


@pytest.fixture
def library(opened, encoder):
    """An open library that has been written to and searched, so that its log holds its documents."""
    made = opened(encoder)
    made.add(OLD)
    assert ids(made) == {"a", "b"}
    return made


@pytest.fixture
def new_file(tmp_path, encoder):
    """Another library's file, closed."""
    with Library.open(tmp_path / "new.db", encoder, analyser="bigrams") as made:
        made.add(NEW)
    return tmp_path / "new.db"


def ids(library) -> set[str]:
    return {hit.id for hit in library.search("rain", 10)}


WAYS = {
    "search": lambda library: library.search("rain", 10),
    "get": lambda library: library.get(["a"]),
    "info": lambda library: library.info(),
    "check": lambda library: library.check(),
    "add": lambda library: library.add(["more rain"]),
    "remove": lambda library: library.remove(["a"]),
    "entries": lambda library: list(library.store.entries()),
}


@pytest.mark.parametrize("way", WAYS)
def test_another_file_in_its_place_is_told_and_left_as_it_is(library, new_file, tmp_path, encoder, way):
    new_file.replace(tmp_path / "a.db")
    content = (tmp_path / "a.db").read_bytes()
    with pytest.raises(LibraryReplaced, match=r"a\.db: another file was put in the library's place while it was open\n  close it and open"):
        WAYS[way](library)
    assert (tmp_path / "a.db").read_bytes() == content


@pytest.mark.parametrize("way", WAYS)
def test_a_file_that_is_gone_is_told_as_gone(library, tmp_path, way):
    (tmp_path / "a.db").unlink()
    with pytest.raises(LibraryGone, match=r"a\.db: the library's file is gone\n  put it back"):
        WAYS[way](library)
    assert not (tmp_path / "a.db").exists()


def test_what_has_begun_ends_on_the_file_on_which_it_began(library, new_file, tmp_path):
    with library.store.snapshot():
        assert library.info().documents == 2
        new_file.replace(tmp_path / "a.db")
        assert library.info().documents == 2
    with pytest.raises(LibraryReplaced):
        library.info()


def test_a_write_that_went_to_a_file_no_longer_there_is_not_acknowledged(library, new_file, tmp_path, encoder):
    def records():
        yield {"id": "x", "text": "more rain"}
        new_file.replace(tmp_path / "a.db")

    with pytest.raises(LibraryReplaced):
        library.add(records())
