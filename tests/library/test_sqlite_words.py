"""A library that is compacted again and again: its index of words stays one that SQLite can read."""

from __future__ import annotations

import sqlite3

import pytest

from munjang.errors import DamagedFile
from munjang.library import sqlite_write
from munjang.library.sqlite_write import MOST_LEVELS, READABLE_LEVELS, word_levels


def levels_of(path) -> int:
    connection = sqlite3.connect(path)
    try:
        return word_levels(connection)
    finally:
        connection.close()


def documents(turn: int) -> list[dict]:
    """Some new, some changed, long enough for an index of more than one page."""
    return [{"id": str(number % 60), "text": f"rain word{number} " + f"filler{turn} words here " * 40} for number in range(turn, turn + 30)]


@pytest.mark.parametrize("most", [8, MOST_LEVELS])
def test_the_levels_stay_few_however_often_it_is_compacted(opened, encoder, tmp_path, monkeypatch, most):
    monkeypatch.setattr(sqlite_write, "MOST_LEVELS", most)
    library = opened(encoder)
    seen = []
    for turn in range(40):  # without a bound there are 80 levels in the end
        library.add(documents(turn))
        library.compact()
        seen.append(levels_of(tmp_path / "a.db"))
    assert 1 <= min(seen) <= max(seen) <= most + 4 < READABLE_LEVELS
    assert [hit.id for hit in library.search("word50", k=1, by="words")] == ["50"]
    assert len(library.search("raining", k=70, by="words")) == 60
    assert library.check() == []


def test_an_index_that_has_many_levels_already_gets_few(opened, encoder, tmp_path, monkeypatch):
    library = opened(encoder)
    with monkeypatch.context() as older:
        older.setattr(sqlite_write, "MOST_LEVELS", 10**9)
        for turn in range(40):
            library.add(documents(turn))
            library.compact()
    before = levels_of(tmp_path / "a.db")
    library.add(documents(50))
    library.compact()
    after = levels_of(tmp_path / "a.db")
    assert after <= (8 if before >= MOST_LEVELS else before + 4)  # a later SQLite has a bound of its own
    assert len(library.search("raining", k=70, by="words")) == 60
    assert library.check() == []


def test_an_index_past_being_read_is_made_anew_from_its_texts(opened, encoder, tmp_path):
    library = opened(encoder)
    library.add(documents(0))
    library.close()
    with sqlite3.connect(tmp_path / "a.db") as connection:  # 2,002 levels, as a library had that was compacted a thousand times
        connection.execute("UPDATE words_data SET block = ? WHERE id = 10", (bytes.fromhex("000000008F520100") + bytes(4_004),))
    connection.close()
    library = opened(encoder)
    with pytest.raises(DamagedFile, match="the file is damaged"):
        library.search("word7", k=1, by="words")
    assert library.check() != []
    library.compact()
    assert [hit.id for hit in library.search("word7", k=1, by="words")] == ["7"]
    assert library.check() == []


def test_levels_are_read_as_fts5_writes_them():
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE VIRTUAL TABLE words USING fts5 (body)")
    assert word_levels(connection) == 0
    connection.execute("INSERT INTO words (body) VALUES ('rain')")
    connection.commit()
    assert word_levels(connection) == 1
    connection.execute("UPDATE words_data SET block = x'00000000FF0000018F52' WHERE id = 10")  # as later versions of SQLite begin it
    assert word_levels(connection) == 2_002 > READABLE_LEVELS
    connection.execute("DELETE FROM words_data WHERE id = 10")
    assert word_levels(connection) == 0
    connection.close()
