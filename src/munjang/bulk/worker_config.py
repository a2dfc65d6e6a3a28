"""Who does a job's work: processes on this machine, or a cluster; and which share of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from munjang.bulk.cluster_address import LOCAL
from munjang.errors import UsageError
from munjang.limits import usable_cores
from munjang.options import DeviceOption, EngineOption, Option, check_options
from munjang.types import DEFAULT_DEVICE, DEFAULT_ENGINE
from munjang.wording import brief_repr

CLUSTERS = ("dask", "ray", "spark")


@brief_repr
@dataclass(frozen=True)
class WorkerConfig:
    """Who does the work: so many processes of so many threads on this machine, or a cluster; all shards, or a share of them."""

    workers: Annotated[int | None, Option("Number of processes. Default: one per core.", min=1)] = None
    """None: as many as there are cores for `threads` each."""
    threads: Annotated[int, Option("Threads per process.", min=1)] = 1
    dask: Annotated[str | None, Option("A Dask scheduler's address (tls://…), or local for a cluster on this machine.")] = None
    ray: Annotated[str | None, Option("A Ray cluster's address (host:6379, auto), or local for a cluster on this machine.")] = None
    spark: Annotated[str | None, Option("A Spark master (spark://…, yarn, k8s://…), or local for one on this machine.")] = None
    share: Annotated[str | None, Option("Do a part of the shards: 3/16 is the third of 16 runs that together do all.")] = None
    device: DeviceOption = DEFAULT_DEVICE
    """Where each worker's model computes; what the vectors are does not depend on it."""
    engine: EngineOption = DEFAULT_ENGINE

    def cluster(self) -> tuple[str, str] | None:
        """Return the kind of cluster that does the work, and its address; None for processes here."""
        named = [(kind, address) for kind in CLUSTERS if (address := getattr(self, kind)) is not None]
        if len(named) > 1:
            raise UsageError(f"--{named[0][0]} and --{named[1][0]} are two clusters, expected one")
        return named[0] if named else None

    def processes(self) -> int:
        """Return the number of worker processes; together they have no more threads than there are cores."""
        check_options(WorkerConfig, vars(self))
        cores = usable_cores()
        _, address = self.cluster() or ("", LOCAL)
        if self.workers is not None and self.workers * self.threads > cores and address == LOCAL:
            raise UsageError(
                f"{self.workers} workers of {self.threads} threads, but there are {cores} cores, and more threads than cores are slower\n"
                f"  take at most {max(cores // self.threads, 1)} workers, or leave --workers out"
            )
        if self.workers is None and self.device not in ("auto", "cpu", "openvino"):
            return 1  # processes would share the one device
        return self.workers or max(cores // self.threads, 1)
