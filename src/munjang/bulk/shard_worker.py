"""What every worker does, wherever it runs: load the job's model once, then turn one shard after the other into receipts.

Processes here, and tasks of Dask, Ray and Spark, all call this. A shard's bytes follow from the shard, so who does it changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol

from munjang.bulk.job import BulkJob, Receipt, ShardSpec
from munjang.bulk.shard import EmbeddingCache, ShardProblem, describe_problem, load_model, run_shard
from munjang.bulk.storage import open_storage
from munjang.types import DEFAULT_DEVICE, DEFAULT_ENGINE, Device, EngineName

ATTEMPTS = 5
"""Workers that may die over one shard."""


@dataclass(frozen=True)
class Work:
    """What every worker is told first."""

    job: BulkJob
    output: str
    threads: int
    cache: str | None = None
    device: Device = DEFAULT_DEVICE
    engine: EngineName = DEFAULT_ENGINE


class RunShards(Protocol):
    """Does shards on a cluster, and calls `done` in this thread for each as it is finished; raises at a problem."""

    def __call__(self, address: str, work: Work, specs: Sequence[ShardSpec], *, workers: int, done: Callable[[Receipt], None]) -> None:
        """Start so many workers where the address says this machine."""


class ShardWorker:
    """A job's model and storage in one process."""

    def __init__(self, work: Work, *, threads: int | None = None) -> None:
        """Load the model; `threads` where it is not the job's number that counts."""
        self._work = work
        self._storage = open_storage(work.output)
        job = work.job
        self._encoder = load_model(job.model, job.settings, threads=threads or work.threads, device=work.device, engine=work.engine)

    def run(self, spec: ShardSpec) -> Receipt | ShardProblem:
        """Try a shard; threads may call this at the same time."""
        cache = EmbeddingCache(self._work.cache, self._work.job) if self._work.cache else None
        try:
            return run_shard(self._work.job, spec, self._encoder, self._storage, cache=cache)
        finally:
            if cache is not None:
                cache.close()


_load_worker = lru_cache(maxsize=1)(ShardWorker)


def run_in_process(work: Work, spec: ShardSpec) -> Receipt | ShardProblem:
    """Try a shard in a process that is given one after the other; the first one loads the model."""
    try:
        worker = _load_worker(work)
    except Exception as error:
        return describe_problem(error, where="a worker")
    return worker.run(spec)


def make_thread_limits(threads: int) -> dict[str, str]:
    """Return the environment that keeps libraries of a worker from taking more threads than it has."""
    return dict.fromkeys(("RAYON_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), str(threads))
