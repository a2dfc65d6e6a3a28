"""Five hundred hostile strings as ids, texts, metadata, filters and queries: each is taken whole or refused in words."""

from __future__ import annotations

import random

import pytest

from munjang.errors import MunjangError

SEEDS = [
    "'", '"', "''", '""', "`", ";", "--", "/*", "\\", "%", "_", "?", "$", "$.a", ":a", "@a", "NULL", "null", "0", "-1", "1e999", "NaN",
    "[]", "{}",
    "'; DROP TABLE documents; --", '"; DELETE FROM vectors; --', "1 OR 1=1", "' OR '1'='1", "x' UNION SELECT * FROM settings --",
    "a) OR (1=1", "words MATCH 'a'", "NEAR(a b, 5)", "a AND b", "a*", "^a", '"unterminated', "col:term", "{a b}: c", "a + b", "-a", "(((((",
    "\x00", "a\x00b", "\x1b[31m", "\r\n", "\t", "\x7f", "\u2028", "\ufeff", "\u200b", "\u202e evil", "\u0627\u0644\u0639", "\u05d0\u05d1",
    "\u1112\u1161\u11ab", "한", "ㅎㅏㄴ", "Ａ", "😀", "👨‍👩‍👧", "\U0010ffff", "\ud800", "e\u0301" * 40, "a" + "\u0301" * 500,
    "../../etc/passwd", "file:///etc/passwd", "${HOME}", "{{7*7}}", "<script>alert(1)</script>", "%s%n%x", "\\u0000", "\\x00",
    "x" * 1_000_000, "가" * 300_000, "a " * 300_000, "(" * 10_000, "'" * 9_999, "not " * 2_000, "a=1 and " * 3_000,
]  # fmt: skip


def hostile(count: int) -> list[str]:
    rng = random.Random(7)
    short = [seed for seed in SEEDS if len(seed) < 200]
    mixed = ["".join(rng.choice(short) for _ in range(rng.randrange(2, 6))) for _ in range(count - len(SEEDS))]
    return [*SEEDS, *mixed]


@pytest.fixture
def library(worker, tmp_path):
    with worker.opened(tmp_path / "a.db") as library:
        library.add([{"id": f"good {i}", "text": f"a good document {i}", "year": i} for i in range(5)])
        yield library


def attempt(work) -> bool:
    """Say whether the work was done; a refusal must be ours, with words that a terminal survives."""
    try:
        work()
    except MunjangError as error:
        message = str(error)
        assert len(message) < 1_000
        assert all(ch.isprintable() or ch == "\n" for ch in message)
        return False
    return True


@pytest.mark.filterwarnings("ignore::munjang.library.search.UnknownKeyWarning")
def test_hostile_strings_neither_break_nor_inject(library):
    good = {f"good {i}" for i in range(5)}
    stored = set()
    for number, text in enumerate(hostile(500)):
        if attempt(lambda text=text, n=number: library.add([{"id": text, "text": f"hostile id {n}", "note": "x"}])):
            stored.add(text)
        attempt(lambda text=text: library.get([text]))
        attempt(lambda text=text, n=number: library.search(text[:20_000], k=3, by=None if n % 2 == 0 else "meaning", explain=n % 5 == 0))
        attempt(lambda text=text: library.search(text, k=3, by="words"))
        attempt(lambda text=text: library.search("good", where=text))
        attempt(lambda text=text: library.search("good", where=f"note = '{text}'"))
        attempt(lambda text=text: library.search("good", where=f'"{text}" = 1'))
        attempt(lambda text=text: library.search(like=[text]))
    assert {document.id for document in library.get(stored)} == stored
    assert library.info().documents == 5 + len(stored)
    assert len(stored) > 400
    assert {hit.id for hit in library.search("a good document", where="year >= 0")} == good
    for text in list(stored)[::2]:
        assert library.remove([text]) == 1
    assert library.info().documents == 5 + len(stored) - len(list(stored)[::2])
    assert library.check() == []


def test_hostile_texts_and_metadata_come_back_as_they_were_cleaned(library):
    for number, text in enumerate(hostile(200)):
        attempt(lambda text=text, n=number: library.add([{"id": f"h{n}", "text": text + " x", "k": text, text: n}]))
    for document in library.get(f"h{number}" for number in range(200)):
        key = next(key for key in document.metadata if key != "k")
        assert document.text in (f"{key} x", f"{document.metadata['k']} x")
        if len(key) < 1_000 and '"' not in key:
            hits = library.search("x", where=f'"{key}" = {document.metadata[key]}')
            assert document.id in {hit.id for hit in hits}
    assert library.check() == []
