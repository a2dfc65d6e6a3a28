"""The same shards → receipts, as tasks on a Ray cluster.

Ray keeps a process for many tasks, and a process loads the model at its first. Specs and receipts are all that Ray carries. A task whose
process or machine is lost is done again by Ray, on another one; so the cluster may grow and shrink while the job runs.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import Any

import ray

from munjang.bulk.cluster_address import LOCAL, check_ray_address
from munjang.bulk.job import Receipt, ShardSpec
from munjang.bulk.shard import ShardProblem
from munjang.bulk.shard_worker import ATTEMPTS, Work, make_thread_limits, run_in_process
from munjang.errors import MunjangError, quote

_OBJECT_STORE_BYTES = 128 * 2**20
"""Of a cluster on this machine: nothing but specs and receipts is kept there."""

_LEAST_WAITING = 32


@contextmanager
def connect(address: str, *, workers: int, threads: int) -> Iterator[None]:
    """Be connected with the cluster at an address, or with a new one of so many workers on this machine, reachable from nowhere else."""
    check_ray_address(address)
    quiet = {"log_to_driver": False, "logging_level": "ERROR", "runtime_env": {"env_vars": make_thread_limits(threads)}}
    try:
        if address == LOCAL:
            _stay_on_this_machine()
            own = {"num_cpus": workers * threads, "object_store_memory": _OBJECT_STORE_BYTES, "include_dashboard": False}
            ray.init(address=LOCAL, **own, **quiet)
        else:
            ray.init(address=address, **quiet)
    except (OSError, RuntimeError, ValueError) as error:
        raise MunjangError(f"there is no Ray cluster at {quote(address)} ({quote(str(error), 200)})") from None
    try:
        yield
    finally:
        ray.shutdown()


def _stay_on_this_machine() -> None:
    """Let a cluster of our own listen on the loopback alone, as Ray does by itself on Windows and macOS; it takes no address for that.

    Its workers have the priority of this process, not Ray's niceness of 15.
    """
    from ray._private import ray_constants

    ray_constants.ENABLE_RAY_CLUSTER = False
    os.environ[ray_constants.ENABLE_RAY_CLUSTERS_ENV_VAR] = "0"
    os.environ.setdefault("RAY_worker_niceness", "0")
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")


def run_at(address: str, work: Work, specs: Sequence[ShardSpec], *, workers: int, done: Callable[[Receipt], None]) -> None:
    """Do all shards on the cluster at an address, or on a new one of so many workers on this machine."""
    with connect(address, workers=workers, threads=work.threads):
        run_ray(work, specs, done=done)


def run_ray(work: Work, specs: Sequence[ShardSpec], *, done: Callable[[Receipt], None]) -> None:
    """Do all shards on the cluster that is connected, and call `done` for each as it is finished; raise at the first problem."""
    task = ray.remote(num_cpus=work.threads, max_retries=ATTEMPTS - 1)(run_in_process)
    told = ray.put(work)
    waiting = iter(specs)
    open_tasks: dict[Any, ShardSpec] = {}
    try:
        while True:
            room = max(_LEAST_WAITING, 4 * int(ray.cluster_resources().get("CPU", 0))) - len(open_tasks)
            open_tasks |= {task.remote(told, spec): spec for spec in islice(waiting, max(room, 0))}
            if not open_tasks:
                return
            ended, _ = ray.wait(list(open_tasks), num_returns=1)
            for reference in ended:
                done(_take_receipt(reference, open_tasks.pop(reference)))
    finally:
        for reference in open_tasks:
            ray.cancel(reference, force=True)


def _take_receipt(reference: Any, spec: ShardSpec) -> Receipt:
    try:
        outcome: Receipt | ShardProblem = ray.get(reference)
    except ray.exceptions.RayError as error:
        raise MunjangError(
            f"shard {spec.number}: its workers died again and again ({type(error).__name__})\n"
            "  if memory is short, give workers more of it or take smaller --shard-rows; then continue with --resume"
        ) from None
    if isinstance(outcome, ShardProblem):
        raise outcome.error()
    return outcome
