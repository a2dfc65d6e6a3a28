"""Caches make a library fast, and are never believed."""

from __future__ import annotations

import os
import shutil
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from munjang.errors import MissingExtra
from munjang.library import sqlite_pages
from munjang.library.cache_file import read_cache, write_cache
from munjang.library.index_config import Tuning
from munjang.library.library import Library
from munjang.library.matrix import Matrix, unit
from munjang.library.sqlite_store import SqliteStore
from munjang.vectors.coarse import is_available

ALWAYS = Tuning(cache_from=1, approximate_from=10_000, stale_part=0.3)
WORDS = [f"w{i}" for i in range(40)]


def texts(count: int, start: int = 0) -> list[dict]:
    rng = np.random.default_rng(count + start)
    return [{"id": str(start + i), "text": " ".join(rng.choice(WORDS, 5)), "even": i % 2 == 0} for i in range(count)]


def found(library, **options) -> list[tuple[str, float]]:
    return [(hit.id, round(hit.score, 5)) for query in ("w1 w2", "w3 w4 w5") for hit in library.search(query, k=5, **options)]


@pytest.fixture
def cached(opened, encoder, tmp_path):
    library = opened(encoder, tuning=ALWAYS)
    library.add(texts(200))
    answer = found(library)
    library.close()
    return tmp_path / "a.db.cache" / "vectors.cache", answer


def test_a_cache_file_is_written_and_read_again(cached, opened, encoder):
    path, answer = cached
    stamp = path.stat().st_mtime_ns
    library = opened(encoder, tuning=ALWAYS)
    assert found(library) == answer
    assert path.stat().st_mtime_ns == stamp


@pytest.mark.parametrize("place", ["header", "vectors", "rows", "end"])
def test_a_damaged_cache_is_made_anew(cached, opened, encoder, place):
    path, answer = cached
    raw = bytearray(path.read_bytes())
    at = {"header": 40, "vectors": 5_000, "rows": len(raw) - 100, "end": len(raw) - 1}[place]
    raw[at] ^= 0x10
    path.write_bytes(raw)
    library = opened(encoder, tuning=ALWAYS)
    assert found(library) == answer
    library.close()
    assert path.read_bytes() != bytes(raw)


@pytest.mark.parametrize("content", [b"", b"short", b"x" * 100_000])
def test_a_cache_that_is_something_else_is_made_anew(cached, opened, encoder, content):
    path, answer = cached
    path.write_bytes(content)
    assert found(opened(encoder, tuning=ALWAYS)) == answer


def test_a_truncated_or_missing_cache_is_made_anew(cached, opened, encoder):
    path, answer = cached
    path.write_bytes(path.read_bytes()[:-64])
    assert found(opened(encoder, tuning=ALWAYS)) == answer
    shutil.rmtree(path.parent)
    assert found(opened(encoder, tuning=ALWAYS)) == answer


def test_the_cache_of_another_library_is_not_believed(cached, opened, encoder, tmp_path):
    path, _ = cached
    other = opened(encoder, "b.db", tuning=ALWAYS)
    other.add(texts(200, start=1_000))
    answer = found(other)
    other.close()
    (tmp_path / "b.db.cache" / "vectors.cache").write_bytes(path.read_bytes())
    assert found(opened(encoder, "b.db", tuning=ALWAYS)) == answer


def test_a_library_restored_from_a_copy_does_not_believe_the_newer_cache(opened, encoder, tmp_path):
    library = opened(encoder, tuning=ALWAYS)
    library.add(texts(50))
    library.close()
    copy = (tmp_path / "a.db").read_bytes()
    library = opened(encoder, tuning=ALWAYS)
    library.add([{"id": "x", "text": "w1 w2"}])
    library.add(texts(100, start=100))
    found(library)
    library.close()
    (tmp_path / "a.db").write_bytes(copy)
    library = opened(encoder, tuning=ALWAYS)
    library.add([{"id": "y", "text": "w3 w4"}])
    library.add(texts(100, start=300))
    assert found(library) == found(opened(encoder, tuning=Tuning(cache_from=10**9)))


def test_a_folder_that_takes_no_cache_costs_nothing_but_time(opened, encoder, tmp_path):
    (tmp_path / "a.db.cache").write_text("a file where the folder should be")
    library = opened(encoder, tuning=ALWAYS)
    library.add(texts(50))
    assert len(found(library)) == 10


@settings(max_examples=25, deadline=None)
@given(steps=st.lists(st.tuples(st.integers(0, 60), st.integers(1, 25), st.booleans()), min_size=1, max_size=6))
def test_a_cache_that_lags_behind_gives_the_same_answers(tmp_path_factory, make_encoder, steps):
    from munjang.library.library import Library

    path = tmp_path_factory.mktemp("lag") / "a.db"
    with (
        Library.open(path, make_encoder(), analyser="bigrams", tuning=ALWAYS) as cached,
        Library.open(path, make_encoder(), analyser="bigrams", tuning=Tuning(cache_from=10**9, stale_part=0)) as plain,
    ):
        for start, count, remove in steps:
            if remove:
                plain.remove(str(i) for i in range(start, start + count))
            else:
                plain.add(texts(count, start))
            assert [score for _, score in found(cached)] == pytest.approx([score for _, score in found(plain)], abs=2e-5)
            assert found(cached, where="even = true") == found(plain, where="even = true")


def test_approximate_search_finds_what_exact_search_finds(opened, encoder):
    pytest.importorskip("faiss")
    library = opened(encoder, tuning=Tuning(approximate_from=100, cache_from=1))
    library.add(texts(1_000))
    assert library.prepare() == "approximate"
    queries = [f"{a} {b}" for a in WORDS[:6] for b in WORDS[6:12]]
    exact = library.search_many(queries, k=10, exact=True)
    for options in ({}, {"exact": False}):
        near = library.search_many(queries, k=10, **options)
        pairs = [({round(hit.score, 4) for hit in a}, {round(hit.score, 4) for hit in b}) for a, b in zip(exact, near, strict=True)]
        shared = [len(a & b) / len(a) for a, b in pairs]
        assert np.mean(shared) > 0.95
    filtered = library.search("w1 w2", k=10, where="even = true")
    assert all(hit.metadata["even"] for hit in filtered)
    assert len(filtered) == 10


def test_the_lists_follow_additions_and_removals(opened, encoder, tmp_path):
    pytest.importorskip("faiss")
    tuning = Tuning(approximate_from=100, cache_from=1)
    library = opened(encoder, tuning=tuning)
    library.add(texts(500))
    library.prepare()
    library.add([{"id": "new", "text": "w1 w2 w3 brand"}])
    assert library.search("w1 w2 w3 brand", k=1)[0].id == "new"
    library.remove(["new"])
    assert library.search("w1 w2 w3 brand", k=1)[0].id != "new"
    library.close()
    path = tmp_path / "a.db.cache" / "lists.cache"
    raw = bytearray(path.read_bytes())
    raw[9_000] ^= 1
    path.write_bytes(raw)
    again = opened(encoder, tuning=tuning)
    assert len(again.search("w1", k=5)) == 5
    assert len(again.search("w1", k=5, exact=False)) == 5
    assert path.read_bytes() != bytes(raw)


def test_without_faiss_approximate_search_names_the_extra(opened, encoder, monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "faiss", None)
    library = opened(encoder, tuning=Tuning(approximate_from=10))
    library.add(texts(50))
    with pytest.raises(MissingExtra, match="munjang\\[search\\]"):
        library.search("w1", exact=False)
    assert len(library.search("w1", exact=True, k=3)) == 3


def test_every_flipped_bit_in_a_cache_file_is_noticed(tmp_path):
    path, belongs = tmp_path / "c" / "x.cache", {"uuid": "u"}
    write_cache(path, belongs, {"vectors": [np.ones((3, 2), np.float32), np.zeros((1, 2), np.float32)], "rows": [np.arange(4)]})
    arrays = read_cache(path, belongs)
    assert arrays is not None
    assert arrays["vectors"].shape == (4, 2)
    assert arrays["rows"].tolist() == [0, 1, 2, 3]
    assert read_cache(path, {"uuid": "v"}) is None
    raw = path.read_bytes()
    for at in [*range(400), *range(4_000, len(raw))]:
        for bit in (1, 128):
            path.write_bytes(raw[:at] + bytes([raw[at] ^ bit]) + raw[at + 1 :])
            assert read_cache(path, belongs) is None


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 30), st.integers(0, 30), st.integers(1, 12), st.integers(0, 2**32 - 1))
def test_a_matrix_in_two_parts_with_gaps_is_searched_as_one(base, tail, k, seed):
    rng = np.random.default_rng(seed)
    vectors = rng.normal(size=(base + tail, 3)).astype(np.float32)
    rows = np.sort(rng.choice(10_000, base + tail, replace=False)).astype(np.int64)
    alive = np.flatnonzero(rng.random(base + tail) < 0.7)
    matrix = Matrix(1, rows[:base], vectors[:base], rows[base:], vectors[base:], alive if len(alive) < len(rows) else None)
    kept = np.arange(len(rows)) if matrix.alive_P is None else alive
    query = rng.normal(size=(2, 3)).astype(np.float32)
    scores, found_rows = matrix.search(query, k)
    expected = np.sort(query @ vectors[kept].T, axis=1)[:, ::-1][:, :k]
    np.testing.assert_allclose(scores, expected, rtol=1e-5, atol=1e-6)
    assert set(found_rows.ravel().tolist()) <= set(rows[kept].tolist())
    np.testing.assert_array_equal(matrix.positions(rows), kept)


@pytest.mark.skipif(not is_available(), reason="this processor has no exact integer product, so no index is made")
@pytest.mark.parametrize("tail", [0, 300])
@pytest.mark.parametrize("gaps", [0.0, 0.2])
@pytest.mark.parametrize("part", [None, 0.02, 0.6])
def test_single_questions_have_the_same_answers_before_and_after_an_index_is_made(monkeypatch, tail, gaps, part):
    monkeypatch.setattr("munjang.vectors.exact_index.SMALLEST", 1)
    monkeypatch.setattr("munjang.library.matrix.INDEXED_FROM", 1)
    rng = np.random.default_rng(4)
    base, total = 5_000, 5_000 + tail
    vectors = unit(rng.normal(size=(total, 24)).astype(np.float32))
    vectors[50] = vectors[4_000] = vectors[0]  # equal scores
    alive = np.flatnonzero(rng.random(total) >= gaps) if gaps else None
    rows = np.arange(total, dtype=np.int64) * 3
    older = Matrix(1, rows[:base], vectors[:base], rows[base:], vectors[base:], None)
    matrix = Matrix(2, rows[:base], vectors[:base], rows[base:], vectors[base:], alive, older.index)
    among = None if part is None else matrix.positions(rows[rng.random(total) < part])
    questions = np.concatenate([vectors[:1], unit(rng.normal(size=(9, 24)).astype(np.float32))])
    before = [matrix.search(one, 8, among_P=among) for one in questions[:, None]]
    deadline = time.monotonic() + 30
    while older.index.find() is None:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    for one, (scores, found) in zip(questions[:, None], before, strict=True):
        again = matrix.search(one, 8, among_P=among)
        np.testing.assert_array_equal(again[0], scores)
        np.testing.assert_array_equal(again[1], found)


@pytest.mark.parametrize("approximate_from", [10_000, 100])
def test_a_library_without_a_folder_for_caches_answers_the_same_and_writes_none(opened, encoder, tmp_path, approximate_from):
    if approximate_from == 100:
        pytest.importorskip("faiss")
    tuning = Tuning(cache_from=1, approximate_from=approximate_from)
    opened(encoder, tuning=tuning).add(texts(200))
    with Library(SqliteStore.open(tmp_path / "a.db"), encoder, folder=None, tuning=tuning) as bare:
        bare.prepare()
        answer = found(bare, exact=True)
        assert [id for id, _ in found(bare)][:1] == [id for id, _ in answer][:1]
    assert [each.name for each in (tmp_path / "a.db.cache").iterdir()] == [sqlite_pages.FILE]  # which is the store's own
    assert found(opened(encoder, tuning=tuning), exact=True) == answer


def test_a_cache_that_cannot_be_described_is_not_written_and_an_array_without_parts_is_left_out(tmp_path):
    path = tmp_path / "cache" / "a.cache"
    with pytest.raises(ValueError, match="a cache's header does not fit"):
        write_cache(path, {"name": "x" * 5_000}, {"rows": [np.arange(3)]})
    assert list((tmp_path / "cache").iterdir()) == []
    write_cache(path, {"name": "x"}, {"none": [], "rows": [np.arange(3), np.arange(2)]})
    found = read_cache(path, {"name": "x"})
    assert {name: array.tolist() for name, array in found.items()} == {"rows": [0, 1, 2, 0, 1]}


def test_a_written_cache_takes_away_what_a_killed_writer_left_an_hour_ago(tmp_path):
    for name, age in ((".a.cache-1", 4_000), (".a.cache-2", 60), (".b.cache-1", 4_000)):
        (tmp_path / name).write_bytes(b"half")
        os.utime(tmp_path / name, (time.time() - age, time.time() - age))
    write_cache(tmp_path / "a.cache", {"what": "rows"}, {"rows": [np.arange(4)]})
    assert sorted(path.name for path in tmp_path.iterdir()) == [".a.cache-2", ".b.cache-1", "a.cache"]
