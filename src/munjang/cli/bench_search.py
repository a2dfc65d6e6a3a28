"""`munjang bench search`: how fast the nearest of many vectors are found on this machine, exactly and approximately, and at which recall.

The collection is what a library holds in memory; texts, files and the model take no part. Routes take turns, and the median of a route's
rounds counts.

Shapes: M vectors, N queries, D dimensions, K answers.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Annotated

import typer

from munjang.cli.options import JsonOption, examples
from munjang.cli.show import emit, note, print_table
from munjang.errors import InputError, MissingExtra
from munjang.wording import count

if TYPE_CHECKING:
    from munjang.library.lists import FittedLists
    from munjang.library.matrix import Matrix
    from munjang.types import Vectors

CLUSTER = 1_000
"""Made-up vectors in one cluster, about."""
SPREAD = 0.6
"""How far members of a cluster lie from its centre, against the centre's own length."""


@dataclass(frozen=True)
class Route:
    """How fast one way of searching is."""

    search: str
    queries_at_once: int
    ms_per_query: float
    queries_per_second: float
    recall: float
    """The share of the exact answers that it finds."""


def search(
    n: Annotated[int, typer.Option("-n", min=100, max=5_000_000, help="How many vectors, made up in clusters.")] = 100_000,
    dimension: Annotated[int, typer.Option("--dimensions", min=2, max=8_192, help="Numbers in a made-up vector.")] = 384,
    vectors: Annotated[
        Path | None, typer.Option(help="Search these vectors (.npy, as munjang encode -o writes); some of them become the queries.")
    ] = None,
    queries: Annotated[int, typer.Option(min=1, max=10_000, help="How many queries.")] = 200,
    k: Annotated[int, typer.Option("--top", "-k", min=1, max=1_000, help="How many neighbours of each.")] = 10,
    rounds: Annotated[int, typer.Option(min=1, max=100, help="How often every route is measured; the median counts.")] = 3,
    as_json: JsonOption = False,
) -> None:
    """Measure how fast the nearest of many vectors are found: exactly and, with the extra search, approximately.

    Queries are answered one at a time and all at once. Time is that of the search alone: no text is encoded and no file is read.
    """
    import numpy as np

    from munjang.library.matrix import Matrix
    from munjang.limits import usable_cores

    corpus_MD, asked_ND = _made_up(n, queries, dimension) if vectors is None else _held_out(vectors, queries)
    rows, width = corpus_MD.shape
    k = min(k, rows)
    matrix = Matrix(1, np.arange(rows), corpus_MD, np.empty(0, np.int64), np.empty((0, width), np.float32), None)
    started = time.perf_counter()
    lists = _lists(matrix)
    built = None if lists is None else time.perf_counter() - started
    routes = measure(matrix, lists, asked_ND, k, rounds=rounds)
    kind = "made up in clusters" if vectors is None else str(vectors)
    if as_json:
        facts = {"vectors": rows, "dimension": width, "source": kind, "queries": len(asked_ND), "k": k, "rounds": rounds}
        emit({**facts, "cores": usable_cores(), "build_seconds": built, "routes": [asdict(route) for route in routes]})
        return
    note(f"{count(rows, 'vector')} of {width} numbers ({kind}), {count(len(asked_ND), 'query')}, the {k} nearest, {usable_cores()} cores")
    if built is not None:
        note(f"the lists of approximate search were built in {built:.1f} s")
    rows = [
        (each.search, f"{each.queries_at_once:,}", f"{each.ms_per_query:.3f}", f"{each.queries_per_second:,.0f}", f"{each.recall:.3f}")
        for each in routes
    ]
    numbers = ("queries at once", "ms/query", "queries/s", "recall")
    print_table(("search", *numbers), rows, right=numbers)


def measure(matrix: Matrix, lists: FittedLists | None, asked_ND: Vectors, k: int, *, rounds: int) -> list[Route]:
    """Return each route's speed and recall, the exact ones first; without lists there are no others."""
    ways: dict[str, Callable[[Vectors], list[list[int]]]] = {"exact": lambda part_ND: matrix.search(part_ND, k)[1].tolist()}
    if lists is not None:
        ways["approximate"] = lambda part_ND: [rows.tolist() for _, rows in lists.search(part_ND, k)]
    truth = _answers(ways["exact"], asked_ND, len(asked_ND))
    runs = {(name, at_once): way for name, way in ways.items() for at_once in dict.fromkeys((1, len(asked_ND)))}
    took: dict[tuple[str, int], list[float]] = {run: [] for run in runs}
    recall: dict[tuple[str, int], float] = {}
    for _ in range(rounds):
        for (name, at_once), way in runs.items():
            started = time.perf_counter()
            found = _answers(way, asked_ND, at_once)
            took[name, at_once].append(time.perf_counter() - started)
            recall[name, at_once] = _recall(found, truth)
    seconds = {run: median(times) / len(asked_ND) for run, times in took.items()}
    return [Route(*run, round(1e3 * each, 4), round(1 / each, 1), round(recall[run], 4)) for run, each in seconds.items()]


def register(app: typer.Typer) -> None:
    """Add this command to `munjang bench`."""
    lines = ("munjang bench search", "munjang bench search -n 1000000 --json", "munjang bench search --vectors news.npy")
    app.command(epilog=examples(*lines))(search)


def _answers(way: Callable[[Vectors], list[list[int]]], asked_ND: Vectors, at_once: int) -> list[list[int]]:
    return [rows for start in range(0, len(asked_ND), at_once) for rows in way(asked_ND[start : start + at_once])]


def _recall(found: list[list[int]], truth: list[list[int]]) -> float:
    right = sum(len(set(rows) & set(best)) for rows, best in zip(found, truth, strict=True))
    return right / sum(map(len, truth))


def _lists(matrix: Matrix) -> FittedLists | None:
    """Build the lists of approximate search; None, with a note, where the extra is missing."""
    from munjang.library.lists import build_lists, fit_lists
    from munjang.library.tuning import Tuning

    try:
        return fit_lists(build_lists(matrix, Tuning()), matrix)
    except MissingExtra as error:
        note(f"only exact search is measured: {error}")
        return None


def _made_up(n: int, queries: int, dimension: int) -> tuple[Vectors, Vectors]:
    """Return unit vectors around random centres, and queries around the same; always the same ones."""
    import numpy as np

    from munjang.library.matrix import unit

    random = np.random.default_rng(0)
    centres_CD = random.standard_normal((max(1, n // CLUSTER), dimension), dtype=np.float32)

    def some(rows: int) -> Vectors:
        near_MD = random.standard_normal((rows, dimension), dtype=np.float32)
        near_MD *= np.float32(SPREAD)
        near_MD += centres_CD[random.integers(0, len(centres_CD), rows)]
        near_MD /= np.linalg.norm(near_MD, axis=1, keepdims=True)
        return near_MD

    return some(n), unit(some(queries))


def _held_out(path: Path, queries: int) -> tuple[Vectors, Vectors]:
    """Return a file's vectors without the queries, and the queries: rows drawn from it, at most a tenth."""
    import numpy as np

    from munjang.cli.topics_files import read_vectors
    from munjang.library.matrix import unit

    rows_MD = unit(read_vectors(path))
    if len(rows_MD) < 100:
        raise InputError(f"{path}: holds {count(len(rows_MD), 'vector')}, expected at least 100 to measure a search")
    drawn = np.random.default_rng(0).choice(len(rows_MD), min(queries, len(rows_MD) // 10), replace=False)
    return np.delete(rows_MD, drawn, axis=0), rows_MD[drawn]
