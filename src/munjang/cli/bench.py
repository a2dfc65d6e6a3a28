"""`munjang bench`: how fast things are on this machine, without any peer. `benchmarks/` compares with peers."""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Annotated, Any

import typer

from munjang.cli.load_model import load_cross_encoder, load_model
from munjang.cli.options import ComputeOption, JsonOption, ModelOption, chosen_device, examples, new_app
from munjang.cli.show import emit, note, print_facts, print_table
from munjang.engine.devices import find_device
from munjang.errors import InputError, MissingExtra
from munjang.library.index_config import Tuning
from munjang.limits import usable_cores
from munjang.train.interrupt import Interrupted
from munjang.types import DEFAULT_COMPUTE, Compute
from munjang.wording import count

if TYPE_CHECKING:
    from munjang.library.ivf_index import IvfIndex
    from munjang.library.matrix import Matrix
    from munjang.models.cross_encoder import CrossEncoder
    from munjang.models.sentence_encoder import SentenceEncoder
    from munjang.train.progress import StepNews
    from munjang.types import Vectors

app = new_app()


@app.callback(
    invoke_without_command=True, epilog=examples("munjang bench encode --seconds 3", "munjang bench search", "munjang bench pairs")
)
def bench(context: typer.Context) -> None:
    """Measure speed on this machine."""
    if context.invoked_subcommand is None:
        print(context.get_help())


@app.command(epilog=examples("munjang bench encode", "munjang bench encode --model my-model --seconds 5 --json"))
def encode(
    model: ModelOption = None,
    seconds: Annotated[float, typer.Option(min=0.0, max=600.0, help="Seconds to measure each route on each kind of text.")] = 2.0,
    as_json: JsonOption = False,
) -> None:
    """Measure encoding speed: short sentences and passages, float32 and int8.

    Also measures the machine's float32 peak (matrix product) and the percentage of it that the float32 route reaches.
    """
    from munjang.cli.speed import measure, sample_texts

    device = "cpu" if chosen_device() == "auto" else chosen_device()
    models: dict[str, SentenceEncoder] = {compute: load_model(model, compute=compute) for compute in find_device(device).computes}
    measured = measure(models, sample_texts(), seconds=seconds)
    name = models["float32"].name
    if as_json:
        emit({"model": name, "cores": usable_cores(), **asdict(measured)})
        return
    note(f"model {name}, {usable_cores()} cores, float32 peak {measured.sgemm_gflops:.0f} GFLOP/s")
    if measured.peak_disturbed:
        note("a route was faster than the peak, so the peak was disturbed: the machine is busy; measure again when it is idle")
    rows = [
        (
            speed.texts,
            speed.compute,
            f"{speed.texts_per_second:,.0f}",
            f"{speed.tokens_per_second:,.0f}",
            f"{speed.gflops:,.0f}",
            "" if speed.share_of_peak is None else f"{speed.share_of_peak:.0%}",
        )
        for speed in measured.routes
    ]
    numbers = ("texts/s", "tokens/s", "GFLOP/s", "of the peak")
    print_table(("texts", "compute", *numbers), rows, right=numbers)


@app.command(epilog=examples("munjang bench pairs", "munjang bench pairs -n 100000 --cross my-reranker --json"))
def pairs(
    model: ModelOption = None,
    cross: Annotated[str | None, typer.Option(help="A cross-encoder. Default: the model's encoder with an untrained head.")] = None,
    n: Annotated[int, typer.Option("-n", min=2, max=10_000_000, help="Number of sentences.")] = 10_000,
    seconds: Annotated[float, typer.Option(min=0.0, max=600.0, help="Seconds to score sampled pairs.")] = 5.0,
    compute: ComputeOption = DEFAULT_COMPUTE,
    as_json: JsonOption = False,
) -> None:
    """Measure how long it takes to compare n sentences with each other: a cross-encoder over all pairs, or vectors and nearest neighbours.

    The vector route is measured completely; the cross-encoder scores a sample of pairs, and the total is extrapolated.
    """
    from munjang.models.cross_vs_bi_timing import number_samples, time_all_pairs

    encoder = load_model(model, compute=compute)
    scorer = _make_untrained(encoder, compute) if cross is None else load_cross_encoder(cross, compute=compute)
    measured = time_all_pairs(encoder, scorer, number_samples(n), seconds=seconds)
    name = f"{encoder.name} with an untrained head" if cross is None else scorer.name
    if as_json:
        names = {"model": encoder.name, "cross_encoder": name, "untrained_head": cross is None}
        emit({**names, "compute": compute, "cores": usable_cores(), "extrapolated": ["cross_seconds", "ratio"], **measured.to_json()})
        return
    note(f"{n:,} English sentences made of the sample collection, {usable_cores()} cores, {compute}")
    if cross is None:
        note("the head is untrained: its scores mean nothing, but it takes as long as a trained one")
    sampled = f"extrapolated from {count(measured.sampled_pairs, 'pair')} in {_duration(measured.sampled_seconds)}"
    parts = f"measured: encoding {_duration(measured.encode_seconds)}, search {_duration(measured.search_seconds)}"
    rows = [
        ("cross-encoder", name, count(measured.pairs, "pair"), _duration(measured.cross_seconds), sampled),
        ("bi-encoder", encoder.name, f"{count(n, 'sentence')}, the nearest of each", _duration(measured.bi_seconds), parts),
    ]
    print_table(("way", "model", "work", "time", "how"), rows, right=("time",))
    print(f"the cross-encoder takes {measured.ratio:,.0f} times as long")


def _make_untrained(encoder: SentenceEncoder, compute: Compute) -> CrossEncoder:
    from munjang.models.cross_vs_bi_timing import write_untrained_cross_encoder

    with tempfile.TemporaryDirectory(prefix="munjang-bench-") as folder:
        write_untrained_cross_encoder(encoder.folder, encoder.tokenizer, Path(folder))
        return load_cross_encoder(folder, compute=compute)


def _duration(seconds: float) -> str:
    """Write a duration in the unit that a person would use.

    >>> _duration(4.21), _duration(150), _duration(234_000)
    ('4.2 s', '2.5 min', '65.0 h')
    """
    if seconds < 120:
        return f"{seconds:.1f} s"
    return f"{seconds / 60:.1f} min" if seconds < 7_200 else f"{seconds / 3_600:.1f} h"


WARM_UP = 2
"""Steps before the clock starts."""
SCRATCH = {"layers": 4, "width": 256, "heads": 4, "inner": 1024, "vocabulary": 2000}
"""The model that is trained when none is named."""


class StepClock:
    """Listens to a training and takes the time from the end of the warm-up to the last step."""

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self._clock = clock
        self.started = self.ended = 0.0

    def show_message(self, line: str) -> None:
        """Drop a remark."""

    def step(self, news: StepNews) -> None:
        """Take the time of a step."""
        self.ended = self._clock()
        if news.step == WARM_UP:
            self.started = self.ended


@app.command(epilog=examples("munjang bench train", "munjang bench train --model my-model --steps 50 --batch-size 32 --json"))
def train(
    model: Annotated[
        str | None, typer.Option("--model", "-m", help="The model to train. Default: a small BERT with random weights.")
    ] = None,
    steps: Annotated[int, typer.Option(min=1, max=10_000, help="Number of steps to time.")] = 20,
    batch_size: Annotated[int, typer.Option(min=2, max=1_024, help="Pairs per step; each is two texts.")] = 16,
    as_json: JsonOption = False,
) -> None:
    """Measure training speed in steps and texts per second.

    Each step reads pairs of short sentences and tells each pair from the others of its batch. The trained model is discarded.
    """
    from munjang.train import train as run
    from munjang.train.recipe import make_recipe

    clock = StepClock()
    with tempfile.TemporaryDirectory(prefix="munjang-bench-") as name:
        folder = Path(name)
        try:
            run(make_recipe(_recipe(folder, model, steps, batch_size), folder=folder), progress=clock)
        except Interrupted:  # its checkpoint goes with the folder
            raise KeyboardInterrupt from None
    seconds = clock.ended - clock.started
    trained = model or f"a new BERT of {SCRATCH['layers']} layers, {SCRATCH['width']} wide"
    if as_json:
        facts = {"model": model, "scratch": SCRATCH if model is None else None, "steps": steps, "batch_size": batch_size}
        speed = {"seconds": seconds, "steps_per_second": steps / seconds, "texts_per_second": 2 * batch_size * steps / seconds}
        emit({**facts, "cores": usable_cores(), **speed})
        return
    print_facts(
        [
            ("model", trained),
            ("cores", str(usable_cores())),
            ("steps", f"{steps:,} of {count(batch_size, 'pair')} in {seconds:.1f} s, after {WARM_UP} that are not counted"),
            ("steps/s", f"{steps / seconds:.2f}"),
            ("texts/s", f"{2 * batch_size * steps / seconds:,.0f}"),
        ]
    )


def _recipe(folder: Path, model: str | None, steps: int, batch_size: int) -> dict[str, Any]:
    """Write the pairs, and return the recipe that trains on them."""
    from munjang.models.cross_vs_bi_timing import number_samples

    pairs = (steps + WARM_UP) * batch_size
    texts = number_samples(2 * pairs)
    lines = (json.dumps({"a": a, "b": b}, ensure_ascii=False) + "\n" for a, b in zip(texts[::2], texts[1::2], strict=True))
    (folder / "pairs.jsonl").write_text("".join(lines), encoding="utf-8")
    source = {"path": str(folder / "pairs.jsonl"), "texts": ["a", "b"]}
    stage = {"objective": "in_batch", "steps": steps + WARM_UP, "batch_size": batch_size, "data": [source]}
    # a folder is meant as seen from here, not from the recipe
    base = None if model is None else str(Path(model).absolute()) if Path(model).is_dir() else model
    made = {"scratch": SCRATCH} if base is None else {"base": base}
    return {"output": str(folder / "model"), "model": made, "stage": [stage], "checkpoint_every": 10**6}


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


@app.command(epilog=examples("munjang bench search", "munjang bench search -n 1000000 --json", "munjang bench search --vectors news.npy"))
def search(
    n: Annotated[int, typer.Option("-n", min=100, max=5_000_000, help="Number of synthetic vectors, in clusters.")] = 100_000,
    dimension: Annotated[int, typer.Option("--dimensions", min=2, max=8_192, help="Dimensions of the synthetic vectors.")] = 384,
    vectors: Annotated[
        Path | None, typer.Option(help="Search these vectors (.npy, as munjang encode -o writes); some of them become the queries.")
    ] = None,
    queries: Annotated[int, typer.Option(min=1, max=10_000, help="Number of queries.")] = 200,
    k: Annotated[int, typer.Option("--top", "-k", min=1, max=1_000, help="Number of neighbours per text.")] = 10,
    rounds: Annotated[int, typer.Option(min=1, max=100, help="Number of rounds; the median is reported.")] = 3,
    as_json: JsonOption = False,
) -> None:
    """Measure nearest-neighbour search: exact and, with the extra search, approximate.

    Queries are answered one at a time and all at once. Time is that of the search alone: no text is encoded and no file is read.
    """
    import numpy as np

    from munjang.library.matrix import Matrix

    corpus_MD, asked_ND = _make_vectors(n, queries, dimension) if vectors is None else _hold_out_queries(vectors, queries)
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


def measure(matrix: Matrix, lists: IvfIndex | None, asked_ND: Vectors, k: int, *, rounds: int) -> list[Route]:
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


def _answers(way: Callable[[Vectors], list[list[int]]], asked_ND: Vectors, at_once: int) -> list[list[int]]:
    return [rows for start in range(0, len(asked_ND), at_once) for rows in way(asked_ND[start : start + at_once])]


def _recall(found: list[list[int]], truth: list[list[int]]) -> float:
    right = sum(len(set(rows) & set(best)) for rows, best in zip(found, truth, strict=True))
    return right / sum(map(len, truth))


def _lists(matrix: Matrix) -> IvfIndex | None:
    """Build the lists of approximate search; None, with a note, where the extra is missing."""
    from munjang.library.ivf_index import build_lists, fit_lists

    try:
        return fit_lists(build_lists(matrix, Tuning()), matrix)
    except MissingExtra as error:
        note(f"only exact search is measured: {error}")
        return None


def _make_vectors(n: int, queries: int, dimension: int) -> tuple[Vectors, Vectors]:
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


def _hold_out_queries(path: Path, queries: int) -> tuple[Vectors, Vectors]:
    """Return a file's vectors without the queries, and the queries: rows drawn from it, at most a tenth."""
    import numpy as np

    from munjang.cli.topics import read_vectors
    from munjang.library.matrix import unit

    rows_MD = unit(read_vectors(path))
    if len(rows_MD) < 100:
        raise InputError(f"{path}: holds {count(len(rows_MD), 'vector')}, expected at least 100 to measure a search")
    drawn = np.random.default_rng(0).choice(len(rows_MD), min(queries, len(rows_MD) // 10), replace=False)
    return np.delete(rows_MD, drawn, axis=0), rows_MD[drawn]
