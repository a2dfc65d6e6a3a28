"""Records without ids: short ids made of their text, which stay the same however often and in whatever order they are added."""

from __future__ import annotations

from pathlib import Path

import pytest

from munjang.library import indexing
from munjang.library.indexing import make_entries
from munjang.library.library import Library
from munjang.library.store import Document, content_hash
from munjang.text.readers import read_texts

TEXTS = ["비가 온다", "눈이 온다", "the cat sleeps"]


@pytest.fixture
def library(encoder, tmp_path):
    with Library.open(tmp_path / "lines.db", encoder) as made:
        yield made


def ids_of(library: Library) -> dict[str, str]:
    return {entry.document.text: entry.document.id for block in library.store.entries(block=100) for entry in block}


def put_with_whole_hashes(library: Library, texts: list[str]) -> None:
    """Store documents as earlier versions did: the whole hash is the id."""
    old = [Document(content_hash(text), text, {}, content_hash(text)) for text in texts]
    with library.store.writer("test"):
        library.store.put(make_entries(old, library.encoder, library.store.settings()))


def test_a_line_of_a_text_file_gets_a_short_id(library, tmp_path: Path):
    file = tmp_path / "lines.txt"
    file.write_text("\n".join(TEXTS), encoding="utf-8")
    library.add(read_texts(file))
    assert {hit.id for hit in library.search("비", k=3)} == {content_hash(text)[:12] for text in TEXTS}


def test_adding_a_file_again_changes_nothing_and_other_files_replace_nothing(library):
    assert library.add(TEXTS).added == 3
    again = library.add(reversed(TEXTS))
    assert (again.added, again.changed, again.unchanged, again.passages) == (0, 0, 3, 0)
    assert library.add(["other line one", "other line two"]).added == 2
    assert library.info().documents == 5


def test_equal_texts_are_one_document(library):
    report = library.add([TEXTS[0], TEXTS[0]])
    assert (report.added, report.unchanged) == (1, 1)


def test_a_library_with_whole_hashes_as_ids_gets_no_duplicates(library):
    put_with_whole_hashes(library, TEXTS)
    report = library.add([*TEXTS, "a new line"])
    assert (report.added, report.unchanged) == (1, 3)
    assert sorted(map(len, ids_of(library).values())) == [12, 32, 32, 32]


def test_texts_whose_hashes_begin_alike_get_longer_ids(library, monkeypatch):
    monkeypatch.setattr(indexing, "LENGTHS", (1, 3, 32))
    texts = [f"line {number}" for number in range(40)]
    assert library.add(texts).added == 40
    found = ids_of(library)
    assert all(content_hash(text).startswith(id) for text, id in found.items())
    assert len(set(found.values())) == 40
    again = library.add(reversed(texts))
    assert (again.added, again.changed, again.unchanged) == (0, 0, 40)
    assert ids_of(library) == found


def test_a_text_with_a_longer_id_is_known_when_the_shorter_one_is_gone(library, monkeypatch):
    monkeypatch.setattr(indexing, "LENGTHS", (1, 32))
    texts = [f"line {number}" for number in range(40)]
    library.add(texts)
    library.remove([id for id in ids_of(library).values() if len(id) == 1])
    kept = ids_of(library)
    report = library.add(list(kept))
    assert (report.added, report.unchanged) == (0, len(kept))
    assert ids_of(library) == kept


def test_a_changed_document_takes_its_first_text_back(library):
    library.add([TEXTS[0]])
    [id] = ids_of(library).values()
    library.update([{"id": id, "text": "something else"}])
    assert library.add([TEXTS[0]]).changed == 1
    assert ids_of(library) == {TEXTS[0]: id}


def test_an_id_that_was_given_is_kept_even_if_it_is_a_hash(library):
    library.add([{"id": content_hash(TEXTS[0]), "text": TEXTS[0]}])
    assert ids_of(library) == {TEXTS[0]: content_hash(TEXTS[0])}


def test_an_update_without_an_id_finds_the_document_with_the_same_text(library):
    library.add([TEXTS[0]])
    report = library.update([{"text": TEXTS[0], "year": 2020}])
    assert report.relabelled == 1
