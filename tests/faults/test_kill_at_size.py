"""kill -9 while a finished bulk folder is added, while an index is made, and while a library is copied: 20 times each, at any moment.

What was there stays, what is new is there whole or not at all, and the same command goes on or begins anew.
"""

from __future__ import annotations

import random
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

import numpy as np
import pytest
from tests.bulk.conftest import write_jsonl

from munjang.bulk.output import open_output
from munjang.bulk.run import encode_bulk
from munjang.errors import InputError
from munjang.library.index_config import Tuning
from munjang.library.library import Library
from munjang.library.pg_connections import run as run_sql
from munjang.library.pg_filter import has_index
from munjang.library.pg_index import find_index

pytestmark = pytest.mark.slow
pytest.importorskip("pyarrow")
KILLS, ROWS = 20, 3_000
COMMAND = "import sys; from munjang.cli.main import run; print('go', flush=True); sys.exit(run(sys.argv[1:]))"
LARGE = f"from munjang.library import pgvector_store; pgvector_store.INDEXED_FROM = 1_000; {COMMAND}"
LISTS = """
import sys
from munjang.library.index_config import Tuning
from munjang.library.library import Library
with Library.open(sys.argv[1], create=False, tuning=Tuning(cache_from=50, approximate_from=1_000)) as library:
    print("go", flush=True)
    assert library.prepare() == "approximate"
"""
TUNING = Tuning(cache_from=50, approximate_from=1_000)


@dataclass(frozen=True)
class Truth:
    """What a full library holds."""

    texts: dict[str, str]
    vectors: dict[str, set[bytes]]


class Killed:
    """A command that is killed at any moment of the time that it takes undisturbed."""

    def __init__(self) -> None:
        self._chance, self._longest, self.kills = random.Random(24), 0.0, 0

    def run_to_end(self, *arguments: object, code: str = COMMAND) -> None:
        """Let it end, and keep how long it took."""
        process = start(code, *arguments)
        process.stdout.readline()
        began = time.monotonic()
        _, messages = process.communicate(timeout=300)
        assert process.returncode == 0, messages
        self._longest = max(self._longest, time.monotonic() - began)

    def kill(self, *arguments: object, code: str = COMMAND) -> None:
        """Start it and kill it, which counts unless it had ended."""
        process = start(code, *arguments)
        process.stdout.readline()
        time.sleep(self._chance.uniform(0.0, self._longest))
        process.kill()
        process.communicate()
        self.kills += process.returncode == -9


def start(code: str, *arguments: object) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", code, *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@pytest.fixture(scope="module")
def bulk_folder(tmp_path_factory: pytest.TempPathFactory, tiny_bert_folder: Path) -> Path:
    """Texts with vectors, as `munjang bulk` wrote them."""
    folder = tmp_path_factory.mktemp("bulk")
    encode_bulk(
        [write_jsonl(folder / "news.jsonl", ROWS)], folder / "out", model=tiny_bert_folder, keep_text=True, workers=1, shard_rows=500
    )
    return folder / "out"


@pytest.fixture(scope="module")
def truth(bulk_folder: Path) -> Truth:
    """Return the text of each row, and the vectors of each text: a text of two shards has two, which differ in their last digits."""
    texts: dict[str, str] = {}
    vectors: dict[str, set[bytes]] = {}
    for block in open_output(bulk_folder).blocks():
        for id, text, vector_D in zip(block.ids, block.texts, block.vectors_ND, strict=True):
            texts[id] = text
            vectors.setdefault(text, set()).add(vector_D.tobytes())
    return Truth(texts, vectors)


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory, bulk_folder: Path) -> Path:
    """A library of all rows in a file, not to be changed."""
    path = tmp_path_factory.mktemp("filled") / "filled.db"
    Killed().run_to_end("add", path, "--from-bulk", bulk_folder, "--analyser", "bigrams")
    return path


@pytest.fixture(params=["sqlite", "postgres"])
def new_library(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[], str]:
    """Return what names libraries that do not exist yet."""
    if request.param == "sqlite":
        return lambda: str(tmp_path / f"{uuid4().hex}.db")
    url = request.getfixturevalue("postgres")
    return lambda: f"{url}#k{uuid4().hex}"


def read_whole(address: str, truth: Truth) -> int:
    """Compare every document of a library with what it was made of, and return how many there are; none if it was not made yet."""
    try:
        library = Library.open(address, create=False)
    except InputError:  # it was killed before it made one
        return 0
    with library:
        assert library.check() == []
        documents = library.get(list(truth.texts))
        assert len(documents) == library.info().documents == library.info().passages
        assert {document.id: document.text for document in documents} == {document.id: truth.texts[document.id] for document in documents}
        block = library.store.vectors_of(library.store.rows_of([document.id for document in documents]))
        assert all(vector_D.tobytes() in truth.vectors[truth.texts[id]] for id, vector_D in zip(block.ids, block.vectors_ND, strict=True))
        assert len(library.search("rain", k=5, by="words")) == min(5, sum("rain" in document.text.split() for document in documents))
        return len(documents)


def kill_and_compare(killed: Killed, new_library: Callable[[], str], truth: Truth, arguments: Callable[[str], tuple[object, ...]]) -> str:
    """Kill a command that fills libraries until it was killed often enough; return the last library, which is full."""
    address, before = new_library(), 0
    while killed.kills < KILLS:
        killed.kill(*arguments(address))
        count = read_whole(address, truth)
        assert count >= before
        address, before = (new_library(), 0) if count == len(truth.texts) else (address, count)
    killed.run_to_end(*arguments(address))
    assert read_whole(address, truth) == len(truth.texts)
    return address


def test_a_killed_add_of_a_bulk_folder_goes_on_with_whole_batches(tmp_path, bulk_folder, truth, new_library):
    killed = Killed()

    def arguments(address: str) -> tuple[object, ...]:
        return ("add", address, "--from-bulk", bulk_folder, "--analyser", "bigrams")

    killed.run_to_end(*arguments(new_library()))
    kill_and_compare(killed, new_library, truth, arguments)


def test_a_killed_copy_goes_on_or_begins_anew(tmp_path, filled, truth, new_library):
    killed = Killed()
    killed.run_to_end("copy", filled, new_library())
    last = kill_and_compare(killed, new_library, truth, lambda address: ("copy", filled, address))
    back = iter(tmp_path / f"back-{number}.db" for number in range(1_000))
    kill_and_compare(Back(killed), lambda: str(next(back)), truth, lambda address: ("copy", last, address))


class Back(Killed):
    """The way back, as long as the way there."""

    def __init__(self, there: Killed) -> None:
        super().__init__()
        self._longest = there._longest


def test_a_killed_index_of_a_file_leaves_the_old_lists_or_whole_new_ones(tmp_path, bulk_folder, filled):
    path, killed, chance = tmp_path / "news.db", Killed(), random.Random(1)
    killed.run_to_end("copy", filled, path)
    killed = Killed()
    killed.run_to_end(path, code=LISTS)
    with Library.open(path, create=False, tuning=TUNING) as library:
        ids = [document.id for document in library.get([f"r{number}" for number in range(ROWS)])]
    while killed.kills < KILLS:
        with Library.open(path, create=False, tuning=TUNING) as library:
            library.remove(chance.sample(ids, 400))  # so that the lists are too old
        subprocess.run([sys.executable, "-c", COMMAND, "add", path, "--from-bulk", bulk_folder], check=True, capture_output=True)
        killed.kill(path, code=LISTS)
        compare_with_exact(path)
    killed.run_to_end(path, code=LISTS)
    compare_with_exact(path)


def compare_with_exact(path: Path) -> None:
    """Search in the lists that there are, if there are some, and exactly."""
    with Library.open(path, create=False, tuning=TUNING) as library:
        assert library.check() == []
        assert library.info().documents == ROWS
        vectors_ND = library.store.vectors_of(np.arange(1, 40)).vectors_ND[:20]
        if len(vectors_ND):
            with library.store.snapshot():
                found, exact = (library.vector_search.nearest(vectors_ND, 5, where=None, exact=way) for way in (None, True))
            shared = sum(len({hit.row for hit in a} & {hit.row for hit in b}) for a, b in zip(found, exact, strict=True))
            assert shared >= 0.8 * 5 * len(vectors_ND)


def test_a_killed_index_of_a_server_leaves_the_old_index_or_a_whole_new_one(filled, truth, postgres):
    from munjang.library.pgvector_store import PgvectorStore

    address, killed = f"{postgres}#k{uuid4().hex}", Killed()
    killed.run_to_end("copy", filled, address)
    killed = Killed()
    kinds = [("hnsw", "float16"), ("ivfflat", "float32")]
    for method, precision in kinds:
        killed.run_to_end("index", address, "--method", method, "--precision", precision)
    seen, turn = set(), 0
    while killed.kills < KILLS:
        turn += 1
        method, precision = kinds[turn % 2]
        store = PgvectorStore.open(address)
        with store._connections._lent() as connection:
            run_sql(connection, "DROP INDEX IF EXISTS documents_by_metadata, passages_by_length")
        killed.kill("index", address, "--method", method, "--precision", precision, code=LARGE)
        with store._connections.reader() as connection:
            index = find_index(connection, 32)
            others = [has_index(connection, name) for name in ("documents_by_metadata", "passages_by_length")]
            assert len(set(others)) == 1
            sql = "SELECT count(*) FROM pg_class WHERE relname LIKE 'passages_near%%' AND relnamespace = current_schema()::regnamespace"
            assert run_sql(connection, sql).fetchone()[0] == 1
        assert index is not None
        assert (index.method, index.precision) in kinds
        seen |= {index.method, others[0]}
        store.close()
        assert read_whole(address, truth) == ROWS
    assert seen == {"hnsw", "ivfflat", True, False}


def test_a_killed_making_of_token_vectors_goes_on(tmp_path, bulk_folder, truth, tiny_bert_folder):
    killed = Killed()

    def fill(name: str) -> Path:
        Killed().run_to_end("add", tmp_path / name, "--from-bulk", bulk_folder, "--analyser", "bigrams")
        return tmp_path / name

    killed.run_to_end("index", fill("whole.db"), "--late", "--model", tiny_bert_folder)
    path, count = fill("0.db"), 0
    while killed.kills < KILLS:
        killed.kill("index", path, "--late", "--model", tiny_bert_folder)
        assert read_whole(str(path), truth) == ROWS
        with Library.open(path, create=False) as library:
            if library.info().token_vectors:
                count += 1
                path = fill(f"{count}.db")
    killed.run_to_end("index", path, "--late", "--model", tiny_bert_folder)
    with Library.open(path, create=False) as library:
        assert library.info().token_vectors
        assert library.check() == []
