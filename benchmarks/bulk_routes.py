"""One way of encoding a file, alone in its process, so that its time and memory are its own. Called by bulk.py; prints JSON.

    python benchmarks/bulk_routes.py ROUTE SOURCE OUTPUT MODEL SHARDS

encode            the texts are in memory and the model is loaded; only `encode` is timed, with all threads
bulk              munjang bulk as it is without options; `bulk 2x1` is two workers of one thread
bulk --dask       munjang bulk --dask local, one worker a core; the same for --ray and --spark
bulk --share      two shares at once, as two machines would do them, each with one worker; then munjang bulk --finish
map_partitions    Dask and sentence-transformers as one would write it: the function that is mapped loads the model
map_partitions, kept   the same, but each process keeps the model

`work_s` is wall-clock time from the first row's turn to the last vector on disk: without starting and stopping processes and loading
models, with reading, writing, syncing, and waiting for the last worker. `munjang bulk` tells it by its receipts: when they were written,
and how long their shards took.
"""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
import threading
import time
from functools import lru_cache
from pathlib import Path
from typing import Any

CORES = len(os.sched_getaffinity(0))


def encode(source: str, model: str) -> float:
    """Return the seconds that `encode` takes for all texts of a file."""
    from munjang import SentenceEncoder
    from munjang.text.readers import read_texts

    encoder = SentenceEncoder.load(model)
    texts = [record.text for record in read_texts(source)]
    started = time.perf_counter()
    encoder.encode(texts)
    return time.perf_counter() - started


def bulk(
    source: str, output: str, model: str, shards: int, *, workers: int | None = None, threads: int | None = None, cluster: str | None = None
) -> float:
    """Return the seconds from the beginning of the first shard to the end of the last."""
    from munjang.bulk.run import encode_bulk

    own: dict[str, Any] = {} if workers is None or threads is None else {"workers": workers, "threads": threads}
    own |= {} if cluster is None else {cluster: "local"}
    encode_bulk([source], output, model=model, shard_rows=count_shard_rows(source, shards), **own)
    return measure_shards(output)


def count_shard_rows(source: str, shards: int) -> int:
    with Path(source).open("rb") as lines:
        return math.ceil(sum(1 for _ in lines) / shards)


def measure_shards(output: str) -> float:
    """Return the seconds from the beginning of the first shard to the end of the last, by the clock that files are stamped with."""
    spent = {path.stat().st_mtime: json.loads(path.read_text())["seconds"] for path in (Path(output) / "receipts").iterdir()}
    return max(spent) - min(ended - seconds for ended, seconds in spent.items())


def bulk_shares(source: str, output: str, model: str, shards: int) -> float:
    """Do a job in as many shares as there are cores, all at once, and end it."""
    from munjang.bulk.run import finish_bulk

    command = [sys.executable, "-m", "munjang.cli.main", "bulk", source, "-o", output, "--model", model, "--workers", "1"]
    command += ["--shard-rows", str(count_shard_rows(source, shards))]
    runs = [subprocess.Popen([*command, "--share", f"{number}/{CORES}"], stdout=subprocess.DEVNULL) for number in range(1, CORES + 1)]
    if any(run.wait() for run in runs) or finish_bulk(output).missing:
        raise SystemExit("a share failed")
    return measure_shards(output)


@lru_cache(maxsize=1)
def kept_model(path: str) -> Any:
    return loaded_model(path)


def loaded_model(path: str) -> Any:
    """Load a model with sentence-transformers, in float32 whatever its file holds: half precision is much slower on processors."""
    from sentence_transformers import SentenceTransformer

    return SentenceTransformer(path, device="cpu", model_kwargs={"dtype": "float32"})


def with_vectors(part: Any, path: str, keep: bool) -> Any:
    """Add the vectors of one partition."""
    import pandas as pd

    model = kept_model(path) if keep else loaded_model(path)
    vectors = model.encode(part["text"].tolist(), show_progress_bar=False)
    return part.assign(vector=pd.Series(list(vectors), index=part.index, dtype=list_type()))


def list_type() -> Any:
    import pandas as pd
    import pyarrow as pa

    return pd.ArrowDtype(pa.list_(pa.float32()))


def map_partitions(source: str, output: str, model: str, shards: int, *, keep: bool) -> float:
    """Return the seconds after the cluster was started."""
    import dask.dataframe as dd
    import pandas as pd
    from distributed import Client, LocalCluster

    from munjang.models.registry import resolve

    path = str(resolve(model).path)
    with LocalCluster(n_workers=CORES, threads_per_worker=1, dashboard_address=None) as cluster, Client(cluster):
        started = time.perf_counter()
        frame = dd.from_pandas(pd.read_json(source, lines=True, dtype={"id": str}), npartitions=shards)
        meta = frame._meta.assign(vector=pd.Series([], dtype=list_type()))
        found = frame.map_partitions(with_vectors, path, keep, meta=meta)
        found[["id", "vector"]].to_parquet(output, write_index=False)
        return time.perf_counter() - started


def peak_mb(pid: int) -> float:
    """Return a process's own peak; getrusage would count what its parent held before the program was started."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next((int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM")), 0.0)


class Peaks:
    """Looks at the processes below this one, five times a second, and keeps the peak of each."""

    def __init__(self) -> None:
        self.by_process: dict[int, float] = {}
        threading.Thread(target=self._look, daemon=True).start()

    def _look(self) -> None:
        import psutil

        while True:
            for process in psutil.Process().children(recursive=True):
                try:
                    self.by_process[process.pid] = max(self.by_process.get(process.pid, 0.0), peak_mb(process.pid))
                except OSError:  # it has ended
                    continue
            time.sleep(0.2)


def main(route: str, source: str, output: str, model: str, shards: int) -> None:
    below = Peaks()
    if route == "encode":
        work = encode(source, model)
    elif route == "bulk":
        work = bulk(source, output, model, shards)
    elif route == "bulk --share":
        work = bulk_shares(source, output, model, shards)
    elif route.startswith("bulk --"):
        work = bulk(source, output, model, shards, cluster=route.removeprefix("bulk --"))
    elif route.startswith("bulk "):
        workers, threads = map(int, route.removeprefix("bulk ").split("x"))
        work = bulk(source, output, model, shards, workers=workers, threads=threads)
    else:
        work = map_partitions(source, output, model, shards, keep=route.endswith("kept"))
    own = peak_mb(os.getpid())
    workers_mb = list(below.by_process.values())
    print(json.dumps({"work_s": work, "run_mb": own, "worker_mb": max(workers_mb, default=0.0), "all_mb": own + sum(workers_mb)}))


if __name__ == "__main__":
    main(*sys.argv[1:5], int(sys.argv[5]))
