"""Bulk encoding, measured in processes of its own: memory, throughput, workers against threads, and Dask with sentence-transformers.

    python benchmarks/bulk.py [--rows 12000] [--memory 100000,1000000] [--rounds 2] [--model NAME] [--only memory,speed,dask] [--json FILE]

memory  peak memory of the run and of its largest worker at a small and a large number of rows, with a tiny model made here
speed   the same file: read, `encode` and save in one process with all threads, against `munjang bulk` as workers × threads = cores
dask    `munjang bulk --dask` on a cluster of processes, against map_partitions with sentence-transformers on an equal cluster: written the
        obvious way (the model is loaded in the function), and with the model kept in each process

Every route is a fresh process and is measured whole, start and model loading included; inside a round the routes run one after the other.
`work_s` leaves the start out: what a long job is like. Reported are medians over the rounds, and ratios of rows per second to the first
route of each group, for the whole and for the work.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from functools import lru_cache
from pathlib import Path
from typing import Any

from bench_texts import short_sentences

ROOT = Path(__file__).resolve().parents[1]
CORES = len(os.sched_getaffinity(0))
PARTS = 8
"""Shards, or partitions, of the input when routes are compared."""


def write_rows(path: Path, count: int) -> Path:
    """Write texts as JSON Lines: distinct sentences, numbered anew when they run out."""
    texts = short_sentences(10_000)
    with path.open("w", encoding="utf-8") as out:
        for number in range(count):
            again, place = divmod(number, len(texts))
            out.write(json.dumps({"id": str(number), "text": texts[place] + (f" {again}" if again else "")}, ensure_ascii=False) + "\n")
    return path


def tiny_model(folder: Path) -> str:
    """Make a model so small that everything but the model is what is measured."""
    sys.path.insert(0, str(ROOT))
    from tests.conftest import Tiny, build

    return str(build(folder, Tiny()))


def bulk(source: str, output: str, model: str, *, workers: int, threads: int, rows: int, dask: str | None = None) -> float:
    """Return the seconds that each worker was at work on shards."""
    from munjang.bulk.output import open_output
    from munjang.bulk.run import Crew, encode_bulk
    from munjang.bulk.settings import BulkSettings

    encode_bulk([source], output, model=model, settings=BulkSettings(shard_rows=rows), crew=Crew(workers, threads, dask))
    return sum(receipt.seconds for receipt in open_output(output).receipts) / workers


def in_memory(source: str, output: str, model: str) -> float:
    """Return the seconds after the model was loaded."""
    import numpy as np

    from munjang import SentenceEncoder
    from munjang.text.readers import read_texts

    encoder = SentenceEncoder.load(model)
    started = time.perf_counter()
    np.save(Path(output).with_suffix(".npy"), encoder.encode([record.text for record in read_texts(source)]))
    return time.perf_counter() - started


@lru_cache(maxsize=1)
def kept_model(path: str) -> Any:
    from sentence_transformers import SentenceTransformer

    return SentenceTransformer(path, device="cpu")


def with_vectors(part: Any, path: str) -> Any:
    from sentence_transformers import SentenceTransformer

    return added(part, SentenceTransformer(path, device="cpu"))


def with_vectors_of_kept_model(part: Any, path: str) -> Any:
    return added(part, kept_model(path))


def added(part: Any, model: Any) -> Any:
    import pandas as pd

    vectors = model.encode(part["text"].tolist(), show_progress_bar=False)
    return part.assign(vector=pd.Series(list(vectors), index=part.index, dtype=list_type()))


def list_type() -> Any:
    import pandas as pd
    import pyarrow as pa

    return pd.ArrowDtype(pa.list_(pa.float32()))


def map_partitions(source: str, output: str, model: str, *, keep: bool) -> float:
    """Return the seconds after the cluster was started."""
    import dask.dataframe as dd
    import pandas as pd
    from distributed import Client, LocalCluster

    from munjang.models.registry import resolve

    path = str(resolve(model).path)
    with LocalCluster(n_workers=CORES, threads_per_worker=1, dashboard_address=None) as cluster, Client(cluster):
        started = time.perf_counter()
        frame = dd.from_pandas(pd.read_json(source, lines=True, dtype={"id": str}), npartitions=PARTS)
        meta = frame._meta.assign(vector=pd.Series([], dtype=list_type()))
        found = frame.map_partitions(with_vectors_of_kept_model if keep else with_vectors, path, meta=meta)
        found[["id", "vector"]].to_parquet(output, write_index=False)
        return time.perf_counter() - started


def run_route(name: str, source: str, output: str, model: str, rows: int) -> None:
    """Run one route in this process and print the peak memory of it and of its largest worker."""
    workers_peak = Peak()
    shard = max(1, -(-rows // PARTS))
    if name == "in memory":
        work = in_memory(source, output, model)
    elif name.startswith("bulk "):
        workers, threads = map(int, name.removeprefix("bulk ").split("x"))
        work = bulk(source, output, model, workers=workers, threads=threads, rows=shard)
    elif name == "memory":
        work = bulk(source, output, model, workers=CORES, threads=1, rows=16_384)
    elif name == "dask bulk":
        work = bulk(source, output, model, workers=CORES, threads=1, rows=shard, dask="local")
    else:
        work = map_partitions(source, output, model, keep=name.endswith("kept"))
    print(json.dumps({"work_s": work, "run_mb": peak_mb(os.getpid()), "largest_worker_mb": workers_peak.megabytes}))


def peak_mb(pid: int) -> float:
    """Return a process's own peak; getrusage would count what its parent held before the program was started."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next((int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM")), 0.0)


class Peak:
    """Looks at the processes below this one, five times a second, and keeps the largest peak."""

    def __init__(self) -> None:
        self.megabytes = 0.0
        threading.Thread(target=self._look, daemon=True).start()

    def _look(self) -> None:
        import psutil

        while True:
            for process in psutil.Process().children(recursive=True):
                try:
                    self.megabytes = max(self.megabytes, peak_mb(process.pid))
                except OSError:  # it has ended
                    continue
            time.sleep(0.2)


def measured(name: str, source: Path, scratch: Path, model: str, rows: int) -> dict[str, float]:
    """Run one route as a process of its own."""
    output = scratch / "out"
    command = [sys.executable, __file__, "--route", name, str(source), str(output), model, str(rows)]
    started = time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, "PYTHONWARNINGS": "ignore"})
    seconds = time.perf_counter() - started
    if done.returncode:
        raise SystemExit(f"{name}: {done.stderr[-2000:]}")
    shutil.rmtree(output, ignore_errors=True)
    return {"seconds": seconds, "rows_per_s": rows / seconds, **json.loads(done.stdout.splitlines()[-1])}


def compared(names: list[str], source: Path, scratch: Path, model: str, rows: int, rounds: int) -> dict[str, dict[str, float]]:
    """Run every route in every round; return medians and the ratios to the first route."""
    found: dict[str, list[dict[str, float]]] = {name: [] for name in names}
    for _ in range(rounds):
        for name in names:
            found[name].append(measured(name, source, scratch, model, rows))
    first = found[names[0]]
    return {
        name: {key: round(statistics.median(each[key] for each in runs), 2) for key in runs[0]}
        | {
            "ratio": round(statistics.median(b["rows_per_s"] / a["rows_per_s"] for a, b in zip(first, runs, strict=True)), 3),
            "ratio_work": round(statistics.median(a["work_s"] / b["work_s"] for a, b in zip(first, runs, strict=True)), 3),
        }
        for name, runs in found.items()
    }


def memory(scratch: Path, sizes: list[int]) -> dict[str, Any]:
    """Return the peaks at both sizes and how the larger one compares."""
    model = tiny_model(scratch / "tiny")
    found = {}
    for size in sizes:
        found[f"{size:,} rows"] = measured("memory", write_rows(scratch / f"{size}.jsonl", size), scratch, model, size)
    small, *_, large = found.values()
    ratios = {key: round(large[key] / small[key], 3) for key in ("run_mb", "largest_worker_mb")}
    return {name: {key: round(value, 1) for key, value in facts.items()} for name, facts in found.items()} | {"ratio": ratios}


def show(title: str, table: dict[str, dict[str, float]]) -> None:
    print(f"\n{title}")
    for name, facts in table.items():
        print(f"  {name:<32}" + "  ".join(f"{key} {value:,}" for key, value in facts.items()))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=12_000)
    parser.add_argument("--memory", default="100000,1000000")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--model", default="all-MiniLM-L6-v2")
    parser.add_argument("--only", default="memory,speed,dask")
    parser.add_argument("--json", type=Path)
    asked = parser.parse_args()
    only = asked.only.split(",")
    found: dict[str, Any] = {"machine": f"{platform.processor() or platform.machine()}, {CORES} cores", "rows": asked.rows}
    with tempfile.TemporaryDirectory(prefix="munjang-bulk-") as place:
        scratch = Path(place)
        source = write_rows(scratch / "rows.jsonl", asked.rows)
        if "memory" in only:
            found["memory"] = memory(scratch, [int(size) for size in asked.memory.split(",")])
            show("memory", found["memory"])
        if "speed" in only:
            names = ["in memory", f"bulk {CORES}x1", f"bulk 1x{CORES}"]
            found["speed"] = compared(names, source, scratch, asked.model, asked.rows, asked.rounds)
            show("workers × threads, against encode in memory", found["speed"])
        if "dask" in only:
            names = ["map_partitions, obvious", "map_partitions, model kept", "dask bulk"]
            found["dask"] = compared(names, source, scratch, asked.model, asked.rows, 1 if asked.rounds == 1 else asked.rounds - 1)
            show("Dask", found["dask"])
    if asked.json:
        asked.json.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--route"]:
        run_route(*sys.argv[2:6], int(sys.argv[6]))
    else:
        main()
