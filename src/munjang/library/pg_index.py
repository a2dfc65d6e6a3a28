"""The index over the vectors of a library in PostgreSQL: made and measured once, then asked.

An index may hold less than the store: halves (float16), or one bit for each dimension (binary). What it proposes is scored again by the
stored float32 vectors, so every score is that of an exact search. The index' name says what it is, and its comment how wide a search looks
(`effort`): as wide as found the wanted part of the ten nearest passages of a sample when it was built.

A filter that is not looked up before (`pg_filter`) is applied while the index is walked, which goes on until enough passages fit (iterative
scans of pgvector 0.8). A walk that ends with too few is followed by an exact search.
"""

from __future__ import annotations

import math
import re
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from munjang.errors import MunjangError, UsageError
from munjang.library.index_config import IndexMethod, IndexPrecision
from munjang.library.pg_connections import Executes, run
from munjang.library.store import Progress
from munjang.types import Ints

if TYPE_CHECKING:
    import psycopg

SAMPLE, TRIED_K = 64, 10
"""Passages by which an index is measured, and how many neighbours of each."""

LARGEST: dict[IndexPrecision, int] = {"float32": 2_000, "float16": 4_000, "binary": 64_000}
"""Dimensions that pgvector's indexes take."""

MOST_WALKED = 50_000
"""Passages that a walk under a filter looks at before it gives up."""

_EFFORTS: dict[IndexMethod, tuple[int, ...]] = {
    "hnsw": (40, 60, 80, 120, 160, 240, 320, 480, 640, 1_000),
    "ivfflat": (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256),
}
_OLD_EFFORT = 100
_NAME = re.compile(r"passages_near_(\d+)(?:_(hnsw|ivfflat)_(float32|float16|binary))?")
_OPERATORS: dict[IndexPrecision, tuple[str, str, str]] = {
    "float32": ("{0}::vector({1})", "vector_cosine_ops", "<=>"),
    # Of unit length, since a half holds no number above 65,504.
    "float16": ("l2_normalize({0}::vector({1}))::halfvec({1})", "halfvec_cosine_ops", "<=>"),
    "binary": ("binary_quantize({0}::vector({1}))::bit({1})", "bit_hamming_ops", "<~>"),
}
"""What an index holds of a vector, its operator class, and the operator that orders by it."""
_LOOK_SECONDS = 1.0
_LEAST_MEMORY, _MOST_MEMORY = 64, 2_048  # megabytes
_LINK_BYTES = 750  # of a node of an HNSW graph while it is built: 32 neighbours of 16 bytes, and what surrounds them


class IndexMemoryWarning(UserWarning):
    """An index does not fit into the memory that a server uses to build it."""


@dataclass(frozen=True)
class NearIndex:
    """An index that a search may ask."""

    dimension: int
    method: IndexMethod
    precision: IndexPrecision
    effort: int
    """hnsw.ef_search, or ivfflat.probes, for ten answers."""

    @property
    def name(self) -> str:
        """The index' name in its schema."""
        return f"passages_near_{self.dimension}_{self.method}_{self.precision}"

    @property
    def order(self) -> str:
        """The expression by which the index orders passages; the query's vector stands in for its %s."""
        made, _, operator = _OPERATORS[self.precision]
        return f"{made.format('vector', self.dimension)} {operator} {made.format('%s', self.dimension)}"

    def count_proposals(self, k: int) -> int:
        """Return how many passages are scored again for k answers."""
        if self.precision == "float32":
            return k
        if self.precision == "float16":
            return k + max(10, k // 4)
        return max(4 * k, self.effort * k // TRIED_K * (1 if self.method == "hnsw" else 20))

    def settings(self, k: int) -> str:
        """Return the statements that let the next query of a transaction look for k answers."""
        width = max(1, self.effort * max(k, TRIED_K) // TRIED_K)
        own: dict[str, str | int] = (
            {"ef_search": min(1_000, width), "max_scan_tuples": MOST_WALKED, "scan_mem_multiplier": 8}
            if self.method == "hnsw"
            else {"probes": min(32_768, width), "max_probes": min(32_768, 20 * width)}
        )
        own["iterative_scan"] = "relaxed_order"
        return "; ".join(f"SET LOCAL {self.method}.{key} = {value}" for key, value in own.items())


def find_index(connection: Executes, dimension: int) -> NearIndex | None:
    """Return the index for vectors of this dimension; None where there is none."""
    sql = """SELECT relname, obj_description(pg_class.oid, 'pg_class') FROM pg_index JOIN pg_class ON pg_class.oid = indexrelid
             WHERE indrelid = 'passages'::regclass AND indisvalid AND relname LIKE 'passages\\_near\\_%%' ORDER BY relname DESC"""
    for name, comment in run(connection, sql):
        match = _NAME.fullmatch(name)
        if match is not None and int(match[1]) == dimension:
            effort = int(comment) if (comment or "").isdigit() else _OLD_EFFORT
            method: IndexMethod = "ivfflat" if match[2] == "ivfflat" else "hnsw"
            precision: IndexPrecision = "float16" if match[3] == "float16" else "binary" if match[3] == "binary" else "float32"
            return NearIndex(dimension, method, precision, effort)
    return None


def choose_index(dimension: int, method: IndexMethod | None, precision: IndexPrecision | None, old: NearIndex | None) -> NearIndex:
    """Return the index that is wanted: what is not said is as it was, else HNSW over the first precision that takes the dimension."""
    default: IndexPrecision = old.precision if old is not None else "float16" if dimension <= LARGEST["float16"] else "binary"
    chosen = precision or default
    if dimension > LARGEST[chosen]:
        fact = f"an index in {chosen} takes at most {LARGEST[chosen]:,} dimensions, found {dimension:,}"
        wider = next((name for name in ("float16", "binary") if dimension <= LARGEST[name]), None)
        advice = f"ask for {wider}" if wider else "searching stays exact"
        raise UsageError(f"{fact}\n  {advice}")
    return NearIndex(dimension, method or (old.method if old is not None else "hnsw"), chosen, _OLD_EFFORT)


def make_index(connection: psycopg.Connection[Any], index: NearIndex, passages: int) -> None:
    """Make an index of so many passages and drop all others, inside the caller's transaction: whoever is interrupted changes nothing."""
    made, operators, _ = _OPERATORS[index.precision]
    options = "" if index.method == "hnsw" else f" WITH (lists = {_count_lists(passages)})"
    _give_memory(connection, index, passages)
    run(connection, "SET LOCAL client_connection_check_interval = '2s'")  # whoever asked for it may be gone before it is done
    run(connection, f"DROP INDEX IF EXISTS {index.name}")
    run(
        connection,
        f"CREATE INDEX {index.name} ON passages USING {index.method} (({made.format('vector', index.dimension)}) {operators})"
        f"{options} WHERE vector_dims(vector) = {index.dimension}",
    )
    names = [name for (name,) in run(connection, "SELECT indexname FROM pg_indexes WHERE schemaname = current_schema()")]
    for name in names:
        if _NAME.fullmatch(name) and name != index.name:
            run(connection, f"DROP INDEX {name}")


@contextmanager
def watch_build(connect: Callable[[], psycopg.Connection[Any]], process: int, progress: Progress | None) -> Iterator[None]:
    """Report the passages that a server's process has put into the index that it builds inside the block."""
    if progress is None:
        yield
        return
    ended = threading.Event()
    watch = threading.Thread(target=_report_build, args=(connect, process, progress, ended), daemon=True)
    watch.start()
    try:
        yield
    finally:
        ended.set()
        watch.join()


def _report_build(connect: Callable[[], psycopg.Connection[Any]], process: int, progress: Progress, ended: threading.Event) -> None:
    import psycopg

    reported = 0
    try:
        with connect() as connection:
            while not ended.wait(_LOOK_SECONDS):
                sql = "SELECT coalesce(max(tuples_done), 0) FROM pg_stat_progress_create_index WHERE pid = %s"
                (done,) = run(connection, sql, (process,)).fetchone()
                if done > reported:
                    progress(done - reported)
                    reported = done
    except (MunjangError, psycopg.Error):  # whoever builds the index is told what is wrong with the server
        pass


def measure_effort(index: NearIndex, rows: Ints, recall: float, find: Callable[[int, NearIndex | None], Ints]) -> NearIndex:
    """Return the index with the least effort that finds this part of the nearest passages of a sample.

    `find` returns the nearest rows to a row's own vector, by an index or exactly.
    """
    sample = np.random.default_rng(0).choice(rows, min(SAMPLE, len(rows)), replace=False).tolist()
    truth = [set(find(row, None).tolist()) - {row} for row in sample]
    total = max(1, sum(map(len, truth)))
    for effort in _EFFORTS[index.method]:
        index = replace(index, effort=effort)
        if sum(len(near & set(find(row, index).tolist())) for row, near in zip(sample, truth, strict=True)) >= recall * total:
            break
    return index


def write_effort(connection: psycopg.Connection[Any], index: NearIndex) -> None:
    """Keep what was measured."""
    run(connection, f"COMMENT ON INDEX {index.name} IS '{int(index.effort)}'")


def _count_lists(passages: int) -> int:
    """Return how many lists pgvector advises: one for a thousand rows up to a million, then the square root.

    >>> _count_lists(50_000), _count_lists(4_000_000)
    (50, 2000)
    """
    return max(1, passages // 1_000 if passages <= 1_000_000 else round(passages**0.5))


def _give_memory(connection: psycopg.Connection[Any], index: NearIndex, passages: int) -> None:
    """Let the server hold the graph in memory while it is built, which is many times faster, unless it is allowed more already."""
    size = {"float32": 4.0, "float16": 2.0, "binary": 1 / 8}[index.precision]
    needed = math.ceil(passages * (index.dimension * size + _LINK_BYTES) * 1.1 / 2**20)
    wanted = min(_MOST_MEMORY, max(_LEAST_MEMORY, needed))
    found = run(connection, "SELECT setting::bigint / 1024 FROM pg_settings WHERE name = 'maintenance_work_mem'").fetchone()[0]
    if wanted > found:
        run(connection, f"SET LOCAL maintenance_work_mem = '{wanted}MB'")
    given = max(wanted, found)
    if index.method == "hnsw" and needed > given:
        fact = f"building the graph of the index takes {needed:,} MB and gets {given:,}, so the rest of it takes many times longer"
        advice = f'stop it, and give it more where the server has more: PGOPTIONS="-c maintenance_work_mem={needed}MB"'
        warnings.warn(f"{fact}\n  {advice}", IndexMemoryWarning, stacklevel=2)
