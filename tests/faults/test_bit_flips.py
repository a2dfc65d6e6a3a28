"""A flipped bit in the file is noticed: by check always, by search when it reads what was hit."""

from __future__ import annotations

import random
import sqlite3

import pytest

from munjang.errors import DamagedFile, MunjangError
from munjang.library.sqlite_files import PAGE_BYTES
from munjang.library.store import passage_checksum


@pytest.fixture(scope="module")
def whole(worker, tmp_path_factory) -> bytes:
    path = tmp_path_factory.mktemp("flip") / "a.db"
    with worker.opened(path) as library:
        library.add([worker.record(str(i), i) for i in range(120)])
        library.compact()
    return path.read_bytes()


def blob_places(raw: bytes, path) -> list[tuple[int, int]]:
    """Return where each vector's bytes stand in the file."""
    connection = sqlite3.connect(path)
    vectors = [vector for (vector,) in connection.execute("SELECT vector FROM vectors")]
    connection.close()
    places = [(raw.find(vector), len(vector)) for vector in vectors]
    assert all(at > 0 for at, _ in places)
    return places


def flipped(raw: bytes, at: int, bit: int) -> bytes:
    return raw[:at] + bytes([raw[at] ^ (1 << bit)]) + raw[at + 1 :]


def noticed_by_search(worker, path) -> bool:
    try:
        with worker.opened(path) as library:
            library.search("document", k=10)
    except DamagedFile:
        return True
    return False


def clear_caches(path) -> None:
    for cache in path.parent.glob("*.cache/*"):
        cache.unlink()


def flip_vectors(worker, whole, folder, count: int) -> None:
    path, rng = folder / "a.db", random.Random(count)
    path.write_bytes(whole)
    places = blob_places(whole, path)
    for turn in range(count):
        at, size = rng.choice(places)
        path.write_bytes(flipped(whole, at + rng.randrange(size), rng.randrange(8)))
        with worker.opened(path) as library:
            assert library.check() != []
        if turn % 10 == 0:
            clear_caches(path)
            assert noticed_by_search(worker, path)


def test_every_flipped_bit_of_a_vector_is_noticed(worker, whole, tmp_path):
    flip_vectors(worker, whole, tmp_path, 60)


@pytest.mark.slow
def test_a_thousand_flipped_bits_of_vectors_are_noticed(worker, whole, tmp_path):
    flip_vectors(worker, whole, tmp_path, 1_000)


def test_a_flipped_bit_anywhere_is_noticed_or_changes_no_answer(worker, whole, tmp_path):
    """Pages have bytes that nobody reads; a bit flipped there must do no harm, any other must be found."""
    path, rng = tmp_path / "a.db", random.Random(5)
    path.write_bytes(whole)
    with worker.opened(path) as library:
        before = [(hit.id, hit.text, hit.score) for hit in library.search("document 3", k=120)]
    harmless = 0
    for _ in range(80):
        path.write_bytes(flipped(whole, rng.randrange(PAGE_BYTES, len(whole)), rng.randrange(8)))
        clear_caches(path)
        try:
            with worker.opened(path) as library:
                wrong = library.check()
                if not wrong:
                    harmless += 1
                    assert [(hit.id, hit.text, hit.score) for hit in library.search("document 3", k=120)] == before
        except DamagedFile:
            pass
    assert harmless < 60


def test_a_crc_finds_every_single_bit():
    vector = bytes(range(128))
    good = passage_checksum(7, 3, 0, 10, vector)
    for at in range(len(vector)):
        for bit in range(8):
            assert passage_checksum(7, 3, 0, 10, flipped(vector, at, bit)) != good
    assert passage_checksum(8, 3, 0, 10, vector) != good


def test_swapped_vectors_are_noticed(worker, whole, tmp_path):
    path = tmp_path / "a.db"
    path.write_bytes(whole)
    connection = sqlite3.connect(path)
    (a, first, first_sum), (b, second, second_sum) = connection.execute("SELECT row, vector, checksum FROM vectors LIMIT 2").fetchall()
    connection.execute("UPDATE vectors SET vector = ?, checksum = ? WHERE row = ?", (second, second_sum, a))
    connection.execute("UPDATE vectors SET vector = ?, checksum = ? WHERE row = ?", (first, first_sum, b))
    connection.commit()
    connection.close()
    with worker.opened(path) as library:
        assert len(library.check()) == 2
    assert noticed_by_search(worker, path)


def changed(whole, path, script: str) -> None:
    path.write_bytes(whole)
    connection = sqlite3.connect(path)
    connection.executescript(script)
    connection.close()


@pytest.mark.parametrize(
    "settings",
    ["SELECT * FROM old WHERE one = 2", "SELECT one, uuid, generation, NULL AS model, fingerprint, dimension, analyser, "
     "passage_characters, passage_overlap FROM old", "SELECT one, uuid, generation, model, fingerprint, 'x' AS dimension, analyser, "
     "passage_characters, passage_overlap FROM old"],
    ids=["none", "no model", "a word for a number"],
)  # fmt: skip
def test_damaged_settings_are_refused(worker, whole, tmp_path, settings):
    path = tmp_path / "a.db"
    changed(whole, path, f"ALTER TABLE settings RENAME TO old; CREATE TABLE settings AS {settings}; DROP TABLE old")
    with pytest.raises(DamagedFile, match="settings are missing or damaged"):
        worker.opened(path)


def test_a_table_whose_name_is_no_text_is_refused(worker, whole, tmp_path):
    path = tmp_path / "a.db"
    assert b"CREATE TABLE passages" in whole
    path.write_bytes(whole.replace(b"CREATE TABLE passages (row INTEGER", b"CREATE TABLE passa\xe9es (row INTEGE("))
    with pytest.raises(DamagedFile, match="the file is damaged"):
        worker.opened(path)


def test_an_index_of_words_in_no_known_format_is_refused(worker, whole, tmp_path):
    path = tmp_path / "a.db"
    changed(whole, path, "UPDATE words_config SET v = 0 WHERE k = 'version'")
    with worker.opened(path) as library, pytest.raises(DamagedFile, match="fts5"):
        library.search("document")


VALUES = {"documents": ("id", "text", "metadata", "content_hash", "checksum"), "passages": ("document", "start", "stop"),
          "vectors": ("vector", "checksum"), "words_content": ("c0",), "settings": ("dimension",)}  # fmt: skip


@pytest.mark.parametrize("value", ["x'00ff'", "'a word'", "1.5", "7"], ids=["blob", "text", "fraction", "number"])
@pytest.mark.parametrize(("table", "column"), [(table, column) for table, columns in VALUES.items() for column in columns])
def test_a_value_of_another_type_is_refused_or_does_no_harm(worker, whole, tmp_path, table, column, value):
    """Every row of a column holds what its table forbids, as a damaged page can; what we raise is ours."""
    path = tmp_path / "a.db"
    unique = f"{value} || '-' || number" if column == "id" else value
    changed(whole, path, f"UPDATE {table} SET {column} = {unique}")
    doors = (
        lambda library: library.search("document", k=10),
        lambda library: library.search("document", k=10),
        lambda library: library.search("document", k=10, where="version >= 3"),
        lambda library: library.search(like=["7"], k=3),
        lambda library: library.get([str(number) for number in range(120)]),
        lambda library: list(library.store.entries()),
        lambda library: library.remove(["3"]),
        lambda library: library.add([worker.record("5", 9_000)]),
        lambda library: library.compact(),
    )
    refused = 0
    for door in doors:
        try:
            with worker.opened(path) as library:
                door(library)
        except MunjangError:
            refused += 1
    try:
        with worker.opened(path) as library:
            refused += len(library.check())
    except MunjangError:
        refused += 1
    assert refused > 0
