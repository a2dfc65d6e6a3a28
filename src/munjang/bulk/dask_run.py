"""The same shards → receipts, as tasks on a Dask cluster.

Every worker gets the model once, through a plugin, also workers that join later. Only specs and receipts pass through the scheduler;
texts and vectors go between a worker and the storage. A worker that is lost costs the shards it had in hand, which others do again.
"""

from __future__ import annotations

import logging
import os
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager
from itertools import islice
from typing import Any, TypeVar

from distributed import Client, Future, KilledWorker, LocalCluster, WorkerPlugin, get_worker, wait

from munjang.bulk.cluster_address import LOCAL, check_address
from munjang.bulk.job import Receipt, ShardSpec
from munjang.bulk.shard import ShardProblem
from munjang.bulk.shard_worker import ATTEMPTS, ShardWorker, Work, make_thread_limits
from munjang.errors import MunjangError, quote

_QUIET = {"logging.distributed": "critical", "distributed.scheduler.allowed-failures": 10}
_FAST = {
    # Dask has the allocator give every freed array back to the system, which clears it anew for the next batch.
    "distributed.nanny.pre-spawn-environ.MALLOC_TRIM_THRESHOLD_": None,
    "distributed.worker.profile.enabled": False,  # nobody looks at the stacks it collects a hundred times a second
}
_SECONDS = 20
_STARTS = 3
_LOOK_SECONDS = 2.0

RETRIES = 3
"""How often a task is tried again that ends with an error nobody foresaw."""

_Result = TypeVar("_Result")


@contextmanager
def connect(address: str, *, workers: int, threads: int) -> Iterator[Client]:
    """Yield a client of the cluster at an address, or of a new one of so many workers on this machine."""
    import dask

    if address != LOCAL:
        check_address(address)
        try:
            client = Client(address, timeout=_SECONDS, set_as_default=False)
        except (OSError, ValueError) as error:
            raise MunjangError(f"there is no Dask scheduler at {quote(address)} ({error})") from None
        with client:
            yield client
        return
    _silence_logs()
    with (
        tempfile.TemporaryDirectory(prefix="munjang-dask-") as scratch,
        dask.config.set({**_QUIET, **_FAST, "temporary-directory": scratch}),
        _start_cluster(LocalCluster, workers, threads) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        yield client


def _start_cluster(local_cluster: Callable[..., Any], workers: int, threads: int) -> Any:
    """Return a cluster on this machine; a worker that dies while it starts costs a new try."""
    limits = make_thread_limits(threads)
    for _ in range(_STARTS):
        try:
            return local_cluster(
                n_workers=workers,
                threads_per_worker=threads,
                host="127.0.0.1",
                scheduler_port=0,
                dashboard_address=None,
                scheduler_kwargs={"dashboard_address": "127.0.0.1:0"},  # health and metrics; its default port may be taken
                worker_dashboard_address=None,
                silence_logs=logging.CRITICAL,
                env={**{name: value for name, value in os.environ.items() if name.startswith("MUNJANG_")}, **limits},
            )
        except RuntimeError as error:  # what Dask says when a worker was lost
            reason = error
    raise MunjangError(
        f"a worker of the local Dask cluster died while it started, {_STARTS} times ({reason})\n"
        "  if memory is short, take fewer --workers; then continue with --resume"
    )


def _silence_logs() -> None:
    """Keep Dask's own log lines about lost workers off the terminal: we say what matters."""
    for name in ("distributed", "tornado.application"):
        logging.getLogger(name).setLevel(logging.CRITICAL)


NO_WORKERS_SECONDS = 60.0
"""A cluster without workers is given up after so long."""


class Patience:
    """Gives up on a cluster that has no workers for too long, or is gone; `then` tells the user how to go on."""

    def __init__(self, client: Client, seconds: float, then: str) -> None:
        self._client, self._seconds, self._then = client, seconds, then
        self._seen = time.monotonic()

    def look(self) -> None:
        """Look whether there are workers."""
        if self.threads():
            self._seen = time.monotonic()
        elif time.monotonic() - self._seen > self._seconds:
            raise MunjangError(f"the Dask cluster has no worker since {self._seconds:.0f} seconds\n  start some, then {self._then}")

    def until_workers(self) -> None:
        """Wait for the first worker."""
        while not self.threads():
            self.look()
            time.sleep(0.1)
        self._seen = time.monotonic()

    @property
    def is_gone(self) -> bool:
        """Whether the connection was lost."""
        return self._client.status not in ("running", "connecting")

    def threads(self) -> int:
        """Return how many tasks the cluster can do at once."""
        if self.is_gone:
            raise make_lost_error(self._then)
        return sum(self._client.nthreads().values())


def make_lost_error(then: str) -> MunjangError:
    """Return the error of a connection that is gone."""
    return MunjangError(f"the connection to the Dask scheduler was lost\n  {then}")


def run_tasks(client: Client, call: Callable[..., _Result], arguments: Iterable[tuple[Any, ...]], *, then: str) -> Iterator[_Result]:
    """Call a function on the workers with each of these arguments and yield the results as they come; `then` tells the user how to go on.

    A few calls for each of the cluster's threads are in hand, so that results never pile up.
    """
    patience = Patience(client, NO_WORKERS_SECONDS, then)
    patience.until_workers()
    waiting = iter(arguments)
    in_hand: set[Future] = set()
    with client.as_current():
        while True:
            room = max(0, max(8, 4 * patience.threads()) - len(in_hand))
            in_hand |= {client.submit(call, *each, pure=False, retries=RETRIES) for each in islice(waiting, room)}
            if not in_hand:
                return
            try:
                for future in wait(in_hand, timeout=_LOOK_SECONDS, return_when="FIRST_COMPLETED").done:
                    result = future.result(timeout=_LOOK_SECONDS)
                    in_hand.remove(future)
                    yield result
            except TimeoutError:  # nothing is done yet, or it was lost with its worker and is done again, if there are workers
                patience.look()
            except (CancelledError, RuntimeError):  # Dask says the latter of a loop that was closed
                if patience.is_gone:
                    raise make_lost_error(then) from None
                raise
            except KilledWorker as error:
                raise MunjangError(f"workers died again and again ({error.last_worker})\n  give them more memory, then {then}") from None


_LEAST_WAITING = 32


class ModelPlugin(WorkerPlugin):  # type: ignore[misc] # distributed is not typed
    """Loads a job's model on a worker, once, and holds what its tasks need."""

    def __init__(self, work: Work, name: str) -> None:
        self.work, self.name = work, name

    def setup(self, worker: Any) -> None:
        """Load the model; as many threads as the worker has tasks at once, so that all tasks together use no more."""
        self.worker = ShardWorker(self.work, threads=worker.state.nthreads)


def encode_on_worker(plugin: str, spec: ShardSpec) -> Receipt | ShardProblem:
    """Try a shard on the worker that this runs on."""
    found: ModelPlugin = get_worker().plugins[plugin]
    return found.worker.run(spec)


def run_at(address: str, work: Work, specs: Sequence[ShardSpec], *, workers: int, done: Callable[[Receipt], None]) -> None:
    """Do all shards on the cluster at an address, or on a new one of so many workers on this machine."""
    with connect(address, workers=workers, threads=work.threads) as client:
        run_dask(work, specs, client=client, done=done)


def run_dask(
    work: Work,
    specs: Iterable[ShardSpec],
    *,
    client: Client,
    done: Callable[[Receipt], None],
    no_workers_seconds: float = NO_WORKERS_SECONDS,
) -> None:
    """Do all shards on a cluster and call `done` for each as it is finished; raise at the first problem."""
    plugin = f"munjang-bulk-{work.job.model.fingerprint[:12]}-{time.time_ns():x}"
    patience = Patience(client, no_workers_seconds, "continue with --resume")
    patience.until_workers()
    _register(client, ModelPlugin(work, plugin))
    tasks = _Tasks(client, plugin)
    try:
        waiting = iter(specs)
        tasks.start(islice(waiting, _count_room(patience)))
        while tasks.open:
            with client.as_current():  # what `wait` asks for
                receipts = list(tasks.take_finished(patience))
            for receipt in receipts:
                done(receipt)
            tasks.start(islice(waiting, max(_count_room(patience) - len(tasks.open), 0)))
    finally:
        tasks.cancel()
        _forget(client, plugin)


class _Tasks:
    """The shards that the cluster has in hand."""

    def __init__(self, client: Client, plugin: str) -> None:
        self._client, self._plugin = client, plugin
        self.open: dict[Future, tuple[ShardSpec, int]] = {}

    def start(self, specs: Iterable[ShardSpec], tries: int = 1) -> None:
        """Hand out shards, those with low numbers first."""
        for spec in specs:
            key = f"{self._plugin}-{spec.number}-{tries}"
            future = self._client.submit(encode_on_worker, self._plugin, spec, key=key, retries=RETRIES, priority=-spec.number, pure=False)
            self.open[future] = spec, tries

    def take_finished(self, patience: Patience) -> Iterator[Receipt]:
        """Wait for some, and yield the receipts of those that are done; a shard whose workers died is handed out again."""
        try:
            ended = wait(list(self.open), timeout=_LOOK_SECONDS, return_when="FIRST_COMPLETED").done
        except TimeoutError:
            patience.look()
            return
        except CancelledError:
            raise MunjangError("the cluster cancelled the job's tasks\n  continue with --resume") from None
        for future in ended:
            spec, tries = self.open.pop(future)
            outcome = self._outcome(future, spec, tries, patience)
            if isinstance(outcome, ShardProblem):
                raise outcome.error()
            if outcome is not None:
                yield outcome

    def cancel(self) -> None:
        """Take back what is not done."""
        if self.open and self._client.status == "running":
            self._client.cancel(list(self.open), force=True)

    def _outcome(self, future: Future, spec: ShardSpec, tries: int, patience: Patience) -> Receipt | ShardProblem | None:
        try:
            outcome: Receipt | ShardProblem = future.result(timeout=_LOOK_SECONDS)
        except TimeoutError:  # the worker was lost with the receipt it held; the scheduler has the task done again, if there are workers
            self.open[future] = spec, tries
            patience.look()
            return None
        except KilledWorker as error:
            if tries >= ATTEMPTS:
                raise MunjangError(
                    f"shard {spec.number}: its workers died again and again ({error.last_worker})\n"
                    "  if memory is short, give workers more of it or take smaller --shard-rows; then continue with --resume"
                ) from None
            self.start([spec], tries + 1)
            return None
        except CancelledError:
            raise make_lost_error("continue with --resume") from None
        except Exception as error:
            raise MunjangError(f"shard {spec.number}: {type(error).__name__}: {error}\n  continue with --resume") from error
        return outcome


def _count_room(patience: Patience) -> int:
    """Return how many shards the cluster should have in hand: enough to keep it busy, few enough to keep the scheduler light."""
    return max(_LEAST_WAITING, 4 * patience.threads())


def _register(client: Client, plugin: ModelPlugin) -> None:
    try:
        client.register_plugin(plugin)
    except OSError:  # a worker was lost while it was told; the scheduler knows the plugin and tells those that come
        pass


def _forget(client: Client, plugin: str) -> None:
    try:
        if client.status == "running":
            client.unregister_worker_plugin(plugin)
    except (OSError, ValueError, RuntimeError):  # the cluster is going away; so does the plugin
        pass
