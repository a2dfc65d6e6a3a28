"""What every store promises, tried on every store there is: add a factory to STORES and it is held to all of this."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from tests.postgres import citus_url, one_node_url, postgres_url

from munjang.errors import Busy, UsageError
from munjang.library.sqlite_store import SqliteStore
from munjang.library.store import Document, Entry, NewMetadata, NewTokenCodes, Passage, Settings, Store, StoredCodebook
from munjang.library.where import matches, parse_where
from munjang.vectors.maxsim import fit_codebook

DIMENSION = 5
IN_MEMORY = Path("/dev/shm")
"""Where the long test of random operations does not wait for a disk."""

SETTINGS = Settings("stub", "f00d", DIMENSION, "bigrams", 100, 20)


@dataclass(frozen=True)
class Factory:
    """How a test gets a store: `opened` gives the same store each time it is called with the same folder."""

    name: str
    opened: Callable[[Path], Store]


def open_sqlite(folder: Path) -> Store:
    return SqliteStore.open(folder / "store.db", create_with=SETTINGS)


def open_postgres(folder: Path, url: Callable[[], str] = postgres_url, *, distributed: bool = False) -> Store:
    from munjang.library.pgvector_store import PgvectorStore

    name = f"t{url.__name__[0]}" + hashlib.blake2b(str(folder).encode(), digest_size=12).hexdigest()
    return PgvectorStore.open(f"{url()}#{name}", create_with=SETTINGS, distributed=distributed)


STORES = [
    Factory("sqlite", open_sqlite),
    Factory("postgres", open_postgres),
    Factory("one node", lambda folder: open_postgres(folder, one_node_url, distributed=True)),
    Factory("citus", lambda folder: open_postgres(folder, citus_url, distributed=True)),
]


def entry(id: str, text: str = "눈이 온다 snow", metadata: dict | None = None, *, passages: int = 1, seed: int = 0) -> Entry:
    vectors = np.random.default_rng(abs(hash((id, text, seed))) % 2**32).normal(size=(passages, DIMENSION)).astype(np.float32)
    cut = [Passage(min(i, len(text)), len(text), tuple(text.split())) for i in range(passages)]
    return Entry(Document(id, text, metadata or {}, f"hash of {text}"), tuple(cut), vectors)


@pytest.fixture(params=STORES, ids=lambda factory: factory.name)
def factory(request) -> Factory:
    {"postgres": postgres_url, "one node": one_node_url, "citus": citus_url}.get(request.param.name, str)()
    return request.param


@pytest.fixture
def folder(factory, tmp_path) -> Path:
    return tmp_path


@pytest.fixture
def store(factory, folder) -> Iterator[Store]:
    store = factory.opened(folder)
    yield store
    store.close()


def put(store: Store, *changes) -> None:
    with store.writer("test"):
        store.put(changes)


def all_vectors(store: Store) -> dict[int, tuple[str, np.ndarray]]:
    return {
        int(row): (id, vector)
        for block in store.vectors(block=3)
        for row, id, vector in zip(block.rows_N, block.ids, block.vectors_ND, strict=True)
    }


def test_what_was_put_can_be_had_again_after_opening_anew(factory, folder):
    first = factory.opened(folder)
    given = entry("한 id", "본문", {"year": 2020, "tags": ["a", None, {"b": 1.5}]}, passages=2)
    put(first, given)
    uuid, generation = first.uuid, first.generation()
    first.close()
    second = factory.opened(folder)
    assert (second.uuid, second.generation(), second.settings()) == (uuid, generation, SETTINGS)
    assert second.get(["한 id", "none"]) == {"한 id": given.document}
    assert second.count() == (1, 2)
    [[found]] = second.entries()
    assert (found.document, found.passages) == (given.document, given.passages)
    np.testing.assert_array_equal(found.vectors_PD, given.vectors_PD)
    second.close()


def test_a_second_document_with_the_id_replaces_the_first_and_gets_new_rows(store):
    put(store, entry("a", "old", passages=3), entry("b"))
    before = store.rows()
    put(store, entry("a", "new", passages=2))
    after = store.rows()
    assert store.get(["a"])["a"].text == "new"
    assert store.count() == (2, 3)
    assert max(set(after) - set(before)) > max(before)
    assert len(set(after) & set(before)) == 1


def test_how_the_model_computed_is_kept_and_replaced_with_the_other_settings(store):
    assert (store.settings().compute, store.settings().pooling) == (None, None)
    with store.writer("test"):
        store.put([entry("a")], settings=replace(SETTINGS, compute="int8", pooling="cls"))
    assert (store.settings().compute, store.settings().pooling) == ("int8", "cls")


@pytest.mark.parametrize("held", [False, True], ids=["opened anew", "open all the while"])
def test_a_store_of_munjang_0_1_is_read_and_gets_the_new_columns_when_it_is_encoded_anew(factory, folder, held):
    store = factory.opened(folder)
    put(store, entry("a"))
    with store.writer("test"):  # 0.1 had neither column
        for name in ("compute", "pooling"):
            execute = store._held().execute
            execute(f"ALTER TABLE settings DROP COLUMN {name}")
    if not held:
        store.close()
        store = factory.opened(folder)
    reader = factory.opened(folder)
    assert store.settings() == reader.settings() == SETTINGS
    put(store, entry("b"))
    assert store.settings().compute is None
    with store.writer("test"):
        store.put([entry("a")], settings=replace(SETTINGS, compute="int8"))
    assert (store.settings().compute, reader.settings().compute) == ("int8", "int8")
    assert reader.settings().pooling is None
    reader.close()
    store.close()


def test_a_store_says_which_keys_its_documents_have(store):
    assert (store.has_key("year"), store.keys(9)) == (False, [])
    put(store, entry("a", metadata={"year": None, "태그": [1]}), entry("b", metadata={'odd "key"': 1, "year": 3}))
    assert [store.has_key(key) for key in ("year", "태그", 'odd "key"', "Year", "id", "a\x00b")] == [True, True, True, False, False, False]
    assert store.keys(9) == ['odd "key"', "year", "태그"]
    assert len(store.keys(2)) == 2


def test_row_numbers_are_never_used_twice(store):
    seen: set[int] = set()
    for _ in range(5):
        put(store, entry("a"), entry("b"))
        rows = {int(row) for row in store.rows()}
        assert not rows & seen
        seen |= rows
        with store.writer("test"):
            store.delete(["a", "b"])
            store.compact()


def test_new_metadata_keep_the_rows(store):
    put(store, entry("a", metadata={"year": 1}))
    rows = store.rows()
    put(store, NewMetadata("a", {"year": 2}), NewMetadata("nobody", {}))
    assert store.get(["a", "nobody"]) == {"a": replace(entry("a").document, metadata={"year": 2})}
    np.testing.assert_array_equal(store.rows(), rows)
    assert store.check() == []


def test_an_error_among_the_changes_leaves_the_old_state(store):
    put(store, entry("a", "old"))
    generation = store.generation()

    def changes():
        yield entry("a", "new")
        yield entry("b")
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError), store.writer("test"):
        store.put(changes())
    assert store.get(["a", "b"]) == {"a": entry("a", "old").document}
    assert store.generation() == generation
    assert store.check() == []


def test_vectors_of_a_wrong_shape_or_with_nan_are_refused(store):
    for bad in (np.zeros((1, DIMENSION + 1)), np.zeros((2, DIMENSION)), np.full((1, DIMENSION), np.nan)):
        with pytest.raises(UsageError):
            put(store, replace(entry("a"), vectors_PD=bad.astype(np.float32)))
    assert store.count() == (0, 0)


def test_new_settings_replace_everything_in_one_step(store):
    put(store, entry("a"), entry("b"))
    rows = set(store.rows())
    other = Settings("other", "beef", 2, "kiwi", 50, 10)
    wide = [replace(entry(id), vectors_PD=np.ones((1, 2), np.float32)) for id in ("a", "c")]
    with store.writer("test"):
        store.put(wide, settings=other)
    assert store.settings() == other
    assert set(store.get(["a", "b", "c"])) == {"a", "c"}
    assert not rows & set(store.rows())
    assert store.check() == []


def test_the_second_writer_is_told_who_holds_the_store(factory, folder, store):
    other = factory.opened(folder)
    with store.writer("add news.jsonl"), pytest.raises(Busy) as error, other.writer("x"):
        pass
    assert "add news.jsonl" in str(error.value)
    with other.writer("x"):
        pass
    other.close()


def test_writing_without_the_lock_is_refused(store):
    for write in (lambda: store.put([]), lambda: store.delete(["a"]), lambda: store.compact()):
        with pytest.raises(UsageError):
            write()


def test_a_snapshot_sees_one_commit_while_others_write(factory, folder, store):
    put(store, entry("a"))
    other = factory.opened(folder)
    with store.snapshot():
        generation, rows = store.generation(), store.rows()
        put(other, entry("b"))
        assert store.generation() == generation
        np.testing.assert_array_equal(store.rows(), rows)
        assert store.get(["b"]) == {}
        assert len(all_vectors(store)) == 1
    assert set(store.get(["a", "b"])) == {"a", "b"}
    assert store.generation() > generation
    other.close()


def test_a_walk_over_vectors_is_not_disturbed_by_a_writer(factory, folder, store):
    put(store, *(entry(str(i)) for i in range(10)))
    walk = store.vectors(block=3)
    first = next(walk)
    with store.writer("test"):
        store.delete([str(i) for i in range(10)])
    assert sum(len(block.rows_N) for block in walk) + len(first.rows_N) == 10
    assert store.count() == (0, 0)


def test_vectors_after_a_row_are_those_after_it(store):
    put(store, *(entry(str(i), passages=2) for i in range(5)))
    rows = store.rows()
    found = np.concatenate([block.rows_N for block in store.vectors(after=int(rows[3]), block=2)])
    np.testing.assert_array_equal(found, rows[4:])
    some = store.vectors_of([int(rows[7]), int(rows[1]), 10**9])
    np.testing.assert_array_equal(some.rows_N, rows[[1, 7]])
    assert some.ids == ("0", "3")


def test_places_know_the_document_and_the_stretch(store):
    put(store, entry("a", "눈이 온다", passages=2))
    places = store.places([*store.rows().tolist(), 10**9])
    assert [(place.id, place.start, place.stop) for place in places.values()] == [("a", 0, 5), ("a", 1, 5)]
    np.testing.assert_array_equal(store.rows_of(["a", "b"]), store.rows())


def test_words_find_their_passages_and_rarer_words_count_more(store):
    put(
        store,
        entry("a", "snow rain rain"),
        entry("b", "snow wind", {"year": 1}),
        entry("c", "snow snow sun", {"year": 2}),
        entry("d", "cloud", {"year": 2}),
    )
    ids = {place.row: place.id for place in store.places(store.rows()).values()}
    assert next(ids[hit.row] for hit in store.lexical(["wind", "snow"], 9)) == "b"
    assert {ids[hit.row] for hit in store.lexical(["snow"], 9)} == {"a", "b", "c"}
    assert [ids[hit.row] for hit in store.lexical(["snow"], 9, where=parse_where("year = 2"))] == ["c"]
    scores = [hit.score for hit in store.lexical(["snow", "sun"], 9)]
    assert scores == sorted(scores, reverse=True)
    assert len(store.lexical(["snow"], 2)) == 2
    assert store.lexical(["nothing"], 9) == store.lexical([], 9) == []
    passages, counts = store.word_frequencies(["snow", "nothing", "snow", "wind", ""])
    assert passages == len(store.rows())
    assert counts == [len(store.lexical([word], 9)) for word in ("snow", "nothing", "wind")]


def test_words_in_a_range_are_listed_with_their_passages(store):
    put(store, entry("a", "snow sun 눈"), entry("b", "snow wind 눈사람 누리"))
    assert store.words_between("s", "t") == {"snow": 2, "sun": 1}
    assert store.words_between("눈", "눉") == {"눈": 1, "눈사람": 1}
    assert store.words_between("t", "s") == store.words_between("x", "y") == {}
    put(store, entry("c", "sand"))
    assert store.words_between("s", "t") == {"snow": 2, "sun": 1, "sand": 1}


def test_hostile_words_and_ids_find_nothing_and_break_nothing(store):
    hostile = ['"', "'", '" OR "', "a*", "NEAR(a b)", "words:a", "-a", "^a", "(", "\x00", "a\x00b", "%", "_", "\\", "‮", "😀", "x" * 10_000]
    for word in hostile:
        assert store.lexical([word, word], 3) == []
        assert store.get([word]) == {}
        assert len(store.rows_of([word])) == 0
    assert store.check() == []


def test_readers_in_threads_always_see_a_whole_commit(store):
    put(store, *(entry(f"{i}", "text 0", {"round": 0}) for i in range(4)))
    stop, wrong = threading.Event(), []

    def read() -> None:
        while not stop.is_set():
            with store.snapshot():
                documents = store.get([str(i) for i in range(4)])
                texts = {(document.text, document.metadata["round"]) for document in documents.values()}
                if len(documents) != 4 or len(texts) != 1 or len(all_vectors(store)) != 4:
                    wrong.append(documents)

    threads = [threading.Thread(target=read) for _ in range(3)]
    for thread in threads:
        thread.start()
    try:
        for turn in range(1, 40):
            put(store, *(entry(f"{i}", f"text {turn}", {"round": turn}) for i in range(4)))
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert not wrong
    assert store.check() == []


IDS = st.sampled_from(["a", "b", "한", "'; DROP TABLE documents; --", 'q"', "\u1112\u1161\u11ab", "é" * 50])
METADATA = st.dictionaries(st.sampled_from(["year", "k'", "태그"]), st.one_of(st.integers(0, 3), st.sampled_from(["x", "1"])), max_size=2)
WORDS = st.lists(st.sampled_from(["snow", "rain", "눈", "비"]), min_size=1, max_size=4).map(" ".join)
WHERES = [
    "year >= 1",
    "year = 1 or 태그 = 'x'",
    "not year in (1, 2)",
    '"k\'" is not null',
    "태그 like 'X' and year < 3",
    "id > 'a' or text contains 'snow'",
]


class StoreMachine(RuleBasedStateMachine):
    """A store beside a dict: whatever is done to both, they agree."""

    factory: Factory

    @initialize()
    def begin(self):
        self.folder = TemporaryDirectory(dir=IN_MEMORY if IN_MEMORY.is_dir() else None)
        self.store = self.factory.opened(Path(self.folder.name))
        self.model: dict[str, Entry] = {}

    def teardown(self):
        if hasattr(self, "store"):
            assert self.store.check() == []
            self.store.close()
            self.folder.cleanup()

    @rule(batch=st.lists(st.tuples(IDS, WORDS, METADATA, st.integers(1, 3), st.integers(0, 9)), min_size=1, max_size=5))
    def put(self, batch):
        entries = [entry(id, text, metadata, passages=passages, seed=seed) for id, text, metadata, passages, seed in batch]
        put(self.store, *entries)
        self.model |= {each.document.id: each for each in entries}

    @rule(id=IDS, metadata=METADATA)
    def relabel(self, id, metadata):
        put(self.store, NewMetadata(id, metadata))
        if id in self.model:
            old = self.model[id]
            self.model[id] = replace(old, document=replace(old.document, metadata=metadata))

    @rule(ids=st.lists(IDS, max_size=3))
    def delete(self, ids):
        with self.store.writer("test"):
            assert self.store.delete(ids) == len(set(ids) & set(self.model))
        self.model = {id: each for id, each in self.model.items() if id not in ids}

    @rule()
    def open_anew(self):
        self.store.close()
        self.store = self.factory.opened(Path(self.folder.name))

    @rule()
    def compact(self):
        with self.store.writer("test"):
            self.store.compact()

    @rule(where=st.sampled_from(WHERES))
    def filter(self, where):
        condition = parse_where(where)
        found = {place.id for place in self.store.places(self.store.rows(condition)).values()}
        assert found == {
            id for id, each in self.model.items() if matches(condition, {"id": id, "text": each.document.text, **each.document.metadata})
        }

    @rule(word=st.sampled_from(["snow", "rain", "눈", "비", "sun"]))
    def look_up(self, word):
        found = {place.id for place in self.store.places([hit.row for hit in self.store.lexical([word], 100)]).values()}
        assert found == {id for id, each in self.model.items() if word in each.document.text.split()}

    @invariant()
    def agrees(self):
        if not hasattr(self, "store"):
            return
        assert self.store.get([*self.model, "nobody"]) == {id: each.document for id, each in self.model.items()}
        assert self.store.count() == (len(self.model), sum(len(each.passages) for each in self.model.values()))
        found: dict[str, list[np.ndarray]] = {}
        for id, vector in all_vectors(self.store).values():
            found.setdefault(id, []).append(vector)
        assert set(found) == set(self.model)
        for id, each in self.model.items():
            np.testing.assert_array_equal(np.stack(found[id]), each.vectors_PD)


def run_machine(factory: Factory, *, examples: int, steps: int) -> None:
    machine = type("Machine", (StoreMachine,), {"factory": factory})
    limits = settings(max_examples=examples, stateful_step_count=steps, deadline=None, suppress_health_check=list(HealthCheck))
    machine.TestCase.settings = limits
    machine.TestCase().runTest()


def test_random_operations_agree_with_a_dict(factory):
    run_machine(factory, examples=25 if factory.name in ("sqlite", "postgres") else 6, steps=20)


@pytest.mark.slow
def test_ten_thousand_random_operations_agree_with_a_dict(factory):
    run_machine(factory, examples=200, steps=50)


def make_book(*, complete: bool = True, seed: int = 0) -> StoredCodebook:
    rows_TD = np.random.default_rng(seed).normal(size=(50, DIMENSION)).astype(np.float32)
    return StoredCodebook(fit_codebook(rows_TD, "int8"), SETTINGS.fingerprint, complete)


def put_tokens(store: Store, *changes, book: StoredCodebook | None = None) -> None:
    with store.writer("test"):
        store.put(changes, codebook=book)


def test_token_codes_come_and_go_with_their_passages(factory, folder):
    store = factory.opened(folder)
    assert store.codebook() is None
    assert store.token_codes_of(store.rows()) == {}
    put(store, entry("old"))
    coded = replace(entry("a", passages=2), token_codes=(b"12345", b""))
    put_tokens(store, coded, book=make_book())
    old, first, second = store.rows().tolist()
    assert store.token_codes_of([old, first, second]) == {first: b"12345", second: b""}
    assert store.rows_without_codes(9).tolist() == [old]
    put_tokens(store, NewTokenCodes(old, b"54321"), NewTokenCodes(10**15, b"54321"), book=make_book(complete=False))
    store.close()
    store = factory.opened(folder)
    assert store.codebook().checksum == make_book(complete=False).checksum != make_book().checksum
    assert [each.token_codes for block in store.entries(tokens=True) for each in block] == [(b"54321",), (b"12345", b"")]
    assert [each.token_codes for block in store.entries() for each in block] == [None, None]
    put(store, replace(coded, token_codes=(b"abcde", b"12345")))
    assert sorted(store.token_codes_of(store.rows()).values()) == [b"12345", b"54321", b"abcde"]
    with store.writer("test"):
        store.delete(["a"])
        store.compact()
    assert store.token_codes_of([old, first, second, *store.rows()]) == {old: b"54321"}
    assert store.check() == []
    store.close()


def test_codes_of_another_codebook_or_model_are_gone(store):
    put_tokens(store, replace(entry("a"), token_codes=(b"12345",)), book=make_book())
    put_tokens(store, book=make_book(seed=1))
    assert store.token_codes_of(store.rows()) == {}
    put_tokens(store, replace(entry("a"), token_codes=(b"12345",)))
    with store.writer("test"):
        store.put([entry("a")], settings=SETTINGS)
    assert store.codebook() is None
    assert store.token_codes_of(store.rows()) == {}
    for book in (None, make_book()):
        with pytest.raises(UsageError, match="codebook"):
            put_tokens(store, replace(entry("b"), token_codes=(b"123",)), book=book)
    assert store.codebook() is None
    assert [*store.get(["b"])] == []
