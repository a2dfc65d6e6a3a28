"""The same shards → receipts, as one Spark job with a task for each shard.

Spark keeps a Python process for many tasks, and a process loads the model at its first. A task whose process or machine is lost is done
again by Spark. While the job runs, receipts are read from the storage, where they are as soon as a shard is done.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as NotYet
from contextlib import contextmanager
from functools import partial
from typing import Any

from pyspark import SparkConf, SparkContext

from munjang.bulk.cluster_address import LOCAL, is_loopback
from munjang.bulk.job import Receipt, ShardSpec
from munjang.bulk.shard import RECEIPTS, ShardProblem, find_receipt
from munjang.bulk.shard_worker import ATTEMPTS, Work, make_thread_limits, run_in_process
from munjang.bulk.storage import Storage, open_storage
from munjang.errors import MunjangError, quote

_HERE = re.compile(r"local(\[(?P<cores>\d+|\*)\])?$")
_LOOK_SECONDS = 2.0


def run_at(address: str, work: Work, specs: Sequence[ShardSpec], *, workers: int, done: Callable[[Receipt], None]) -> None:
    """Do all shards with a Spark master, or with so many workers on this machine."""
    with connect(address, workers=workers, threads=work.threads) as context:
        run_spark(work, specs, context=context, done=done)


def run_spark(work: Work, specs: Sequence[ShardSpec], *, context: SparkContext, done: Callable[[Receipt], None]) -> None:
    """Do all shards, and call `done` for each soon after it is finished; a problem is raised when all others are done."""
    outcomes = context.parallelize(specs, len(specs)).map(partial(run_in_process, work)).filter(_is_problem)
    receipts = _NewReceipts(open_storage(work.output), specs)
    with ThreadPoolExecutor(1) as pool:
        job = pool.submit(outcomes.collect)
        try:
            while not _has_ended(job):
                for receipt in receipts.take():
                    done(receipt)
        except BaseException:
            context.stop()  # ends the job, for which the pool waits
            raise
        try:
            problems: list[ShardProblem] = job.result()
        except Exception as error:  # Java's errors, whatever they are
            raise MunjangError(f"the Spark job failed ({_describe(error)})\n  continue with --resume") from None
    for receipt in receipts.take():
        done(receipt)
    if problems:
        raise problems[0].error()


def _is_problem(outcome: Receipt | ShardProblem) -> bool:
    return isinstance(outcome, ShardProblem)


class _NewReceipts:
    """The receipts that have come to a storage since it was looked at last."""

    def __init__(self, storage: Storage, specs: Iterable[ShardSpec]) -> None:
        self._storage, self._waiting = storage, {f"{spec.stem}.json": spec for spec in specs}

    def take(self) -> Iterator[Receipt]:
        """Yield those that are new."""
        for name in sorted(self._storage.sizes(RECEIPTS).keys() & self._waiting.keys()):
            receipt = find_receipt(self._storage, self._waiting[name])
            if receipt is not None:
                del self._waiting[name]
                yield receipt


def _has_ended(job: Future[Any]) -> bool:
    """Wait a moment, and say whether a job has ended, be it well or not."""
    try:
        job.exception(timeout=_LOOK_SECONDS)
    except NotYet:
        return False
    return True


@contextmanager
def connect(address: str, *, workers: int, threads: int) -> Iterator[SparkContext]:
    """Yield a connection to a Spark master; one on this machine has so many workers and is reachable from nowhere else."""
    conf = SparkConf().setAppName("munjang bulk").set("spark.log.level", "FATAL").set("spark.ui.showConsoleProgress", "false")
    here = _HERE.match(address)
    if here:
        conf.setMaster(f"local[{workers if address == LOCAL else here['cores']},{ATTEMPTS}]").set("spark.ui.enabled", "false")
        conf.set("spark.driver.bindAddress", "127.0.0.1").set("spark.driver.host", "127.0.0.1")
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # workers are started with python3 otherwise, whatever that is
    else:
        conf.setMaster(address).set("spark.task.maxFailures", str(ATTEMPTS)).set("spark.task.cpus", str(threads))
    if address.startswith("spark://") and not is_loopback(address):  # Spark then refuses a master that does neither
        conf.set("spark.authenticate", "true").set("spark.network.crypto.enabled", "true")
    conf.setAll((f"spark.executorEnv.{name}", value) for name, value in make_thread_limits(threads).items())
    try:
        context = SparkContext(conf=conf)
    except Exception as error:  # Java's errors, whatever they are
        raise MunjangError(f"there is no Spark at {quote(address)} ({_describe(error)})") from None
    try:
        yield context
    finally:
        context.stop()


def _describe(error: Exception) -> str:
    """Return the line of Java's message that says what went wrong."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()] or [type(error).__name__]
    return quote(next((line for line in lines if "Exception:" in line or "Error:" in line), lines[0]), 300)
