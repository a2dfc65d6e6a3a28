"""Bulk encoding, measured: memory, throughput against `encode`, workers against threads, and Dask with sentence-transformers.

    python benchmarks/bulk.py [--parts memory,throughput,workers,dask] [--rows 30000] [--rounds 3] [--model NAME] [--json FILE]

memory      peaks of a run at 100,000 and 1,000,000 rows, with a tiny model made here, in shards of the usual 16,384 rows
throughput  `munjang bulk` without options against `encode` of texts that are in memory already
workers     as many workers as cores with one thread each, against one worker with all threads
clusters    `munjang bulk` on Dask, Ray and Spark on this machine, and in shares, against its own processes; not in the default,
            since it needs what `./run clusters` installs, and is run by .venv-clusters/bin/python
dask        `munjang bulk --dask local`, against map_partitions with sentence-transformers: written the obvious way (the function that is
            mapped loads the model), and with the model kept in each process

Every route is a process of its own (bulk_routes.py); inside a round the routes run one after the other, in turned order every second round.
Shown are medians over rounds. `rows_per_s` counts the whole process, start and loading included; `working` leaves these out: what a long
job is like. `rows_per_cpu_s` divides by the processor time of all processes, which other work on the machine changes least; the workers of
Ray and Spark are not in it, since these do not wait for them. Ratios are to the first route of the part, round by round.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from bench_texts import short_sentences
from machine import processor

HERE = Path(__file__).resolve().parent
CORES = len(os.sched_getaffinity(0))
SHARDS = {"throughput": 24, "workers": 24, "clusters": 48, "dask": 8}
"""Shards, or partitions, of the input: many where a worker that waits for the last one would count, few where each loads a model."""
MEMORY_ROWS, MEMORY_SHARD = (100_000, 1_000_000), 16_384
ROUTES = {
    "throughput": ["encode", "bulk"],
    "workers": [f"bulk 1x{CORES}", f"bulk {CORES}x1"],
    "dask": ["map_partitions", "map_partitions, kept", "bulk --dask"],
    "clusters": [f"bulk {CORES}x1", "bulk --dask", "bulk --ray", "bulk --spark", "bulk --share"],
}
Facts = dict[str, float]


def write_rows(path: Path, count: int) -> Path:
    """Write texts as JSON Lines: distinct sentences in random order, numbered anew when they run out."""
    texts = short_sentences(10_000)
    random.Random(1).shuffle(texts)
    with path.open("w", encoding="utf-8") as out:
        for number in range(count):
            again, place = divmod(number, len(texts))
            out.write(json.dumps({"id": str(number), "text": texts[place] + (f" {again}" if again else "")}, ensure_ascii=False) + "\n")
    return path


def tiny_model(folder: Path) -> str:
    """Make a model so small that everything but the model is what is measured."""
    sys.path.insert(0, str(HERE.parent))
    from tests.conftest import Tiny, build

    return str(build(folder, Tiny()))


def measured(route: str, source: Path, scratch: Path, model: str, *, rows: int, shards: int) -> Facts:
    """Run one route as a process of its own."""
    output = scratch / "out"
    command = [sys.executable, str(HERE / "bulk_routes.py"), route, str(source), str(output), model, str(shards)]
    started, before = time.perf_counter(), _cpu_seconds()
    done = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, "PYTHONWARNINGS": "ignore"})
    seconds = time.perf_counter() - started
    if done.returncode:
        raise SystemExit(f"{route}: {done.stderr[-2000:]}")
    shutil.rmtree(output, ignore_errors=True)
    facts: Facts = json.loads(done.stdout.splitlines()[-1])
    rates = {"rows_per_s": rows / seconds, "working_rows_per_s": rows / facts.pop("work_s")}
    return rates | {"rows_per_cpu_s": rows / (_cpu_seconds() - before)} | facts


def _cpu_seconds() -> float:
    """Return the processor time of all processes that were started here and have ended, with those that they started."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def compared(part: str, source: Path, scratch: Path, model: str, *, rows: int, rounds: int) -> dict[str, Facts]:
    """Run every route of a part in every round; return medians, and the ratios to the first route with their range."""
    routes = ROUTES[part]
    found: dict[str, list[Facts]] = {route: [] for route in routes}
    for number in range(rounds):
        for route in routes if number % 2 == 0 else reversed(routes):
            found[route].append(measured(route, source, scratch, model, rows=rows, shards=SHARDS[part]))
    return {route: _medians(runs, found[routes[0]]) for route, runs in found.items()}


def _medians(runs: list[Facts], first: list[Facts]) -> Facts:
    facts = {key: statistics.median(run[key] for run in runs) for key in runs[0]}
    for name, key in (("ratio", "rows_per_s"), ("working_ratio", "working_rows_per_s"), ("cpu_ratio", "rows_per_cpu_s")):
        ratios = [mine[key] / base[key] for mine, base in zip(runs, first, strict=True)]
        facts |= {name: statistics.median(ratios), f"{name}_least": min(ratios), f"{name}_most": max(ratios)}
    return facts


def memory(scratch: Path) -> dict[str, Facts]:
    """Return the peaks at both sizes, and how much larger those of the larger one are."""
    model = tiny_model(scratch / "tiny")
    found = {}
    for rows in MEMORY_ROWS:
        source = write_rows(scratch / f"{rows}.jsonl", rows)
        found[f"{rows:,} rows"] = measured("bulk", source, scratch, model, rows=rows, shards=-(-rows // MEMORY_SHARD))
    small, large = found.values()
    return found | {"ratio": {key: large[key] / small[key] for key in ("run_mb", "worker_mb", "all_mb")}}


def show(title: str, table: dict[str, Facts]) -> None:
    print(f"\n{title}")
    for name, facts in table.items():
        cells = (f"{key} {value:,.3f}" if value < 100 else f"{key} {value:,.0f}" for key, value in facts.items())
        print(f"  {name:<22}" + "  ".join(cells))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", default="memory,throughput,workers,dask")
    parser.add_argument("--rows", type=int, default=30_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--model", default="ko-en-small")
    parser.add_argument("--json", type=Path)
    asked = parser.parse_args()
    found: dict[str, Any] = {"machine": f"{processor()}, {CORES} cores", "rows": asked.rows, "rounds": asked.rounds, "model": asked.model}
    with tempfile.TemporaryDirectory(prefix="munjang-bulk-") as place:
        scratch = Path(place)
        source = write_rows(scratch / "rows.jsonl", asked.rows)
        for part in asked.parts.split(","):
            if part == "memory":
                found[part] = memory(scratch)
            else:
                found[part] = compared(part, source, scratch, asked.model, rows=asked.rows, rounds=asked.rounds)
            show(part, found[part])
    if asked.json:
        asked.json.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
