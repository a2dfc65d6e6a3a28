"""The same shards → receipts, as tasks on a Dask cluster.

Every worker gets the model once, through a plugin, also workers that join later. Only specs and receipts pass through the scheduler;
texts and vectors go between a worker and the storage. A worker that is lost costs the shards it had in hand, which others do again.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import CancelledError
from itertools import islice
from typing import Any

from distributed import Client, Future, KilledWorker, WorkerPlugin, get_worker, wait

from munjang.bulk.attempt import Problem, attempt, load_model
from munjang.bulk.cache import EmbeddingCache
from munjang.bulk.dask_patience import NO_WORKERS_SECONDS, Patience, lost
from munjang.bulk.job import Receipt, ShardSpec
from munjang.bulk.local_run import ATTEMPTS, Work
from munjang.bulk.storage import open_storage
from munjang.errors import MunjangError

RETRIES = 3
"""How often a task is tried again that ends with an error nobody foresaw."""

_LOOK_SECONDS = 2.0
_LEAST_WAITING = 32


class ModelPlugin(WorkerPlugin):  # type: ignore[misc] # distributed is not typed
    """Loads a job's model on a worker, once, and holds what its tasks need."""

    def __init__(self, work: Work, name: str) -> None:
        self.work, self.name = work, name

    def setup(self, worker: Any) -> None:
        """Load the model; as many threads as the worker has tasks at once, so that all tasks together use no more."""
        self.encoder = load_model(self.work.job.model, self.work.job.settings, threads=worker.state.nthreads)
        self.storage = open_storage(self.work.output)

    def attempt(self, spec: ShardSpec) -> Receipt | Problem:
        """Try a shard."""
        cache = EmbeddingCache(self.work.cache, self.work.job) if self.work.cache else None
        try:
            return attempt(self.work.job, spec, self.encoder, self.storage, cache=cache)
        finally:
            if cache is not None:
                cache.close()


def encode_on_worker(plugin: str, spec: ShardSpec) -> Receipt | Problem:
    """Try a shard on the worker that this runs on."""
    found: ModelPlugin = get_worker().plugins[plugin]
    return found.attempt(spec)


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
        tasks.start(islice(waiting, _room(patience)))
        while tasks.open:
            with client.as_current():  # what `wait` asks for
                receipts = list(tasks.finished(patience))
            for receipt in receipts:
                done(receipt)
            tasks.start(islice(waiting, max(_room(patience) - len(tasks.open), 0)))
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

    def finished(self, patience: Patience) -> Iterator[Receipt]:
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
            if isinstance(outcome, Problem):
                raise outcome.error()
            if outcome is not None:
                yield outcome

    def cancel(self) -> None:
        """Take back what is not done."""
        if self.open and self._client.status == "running":
            self._client.cancel(list(self.open), force=True)

    def _outcome(self, future: Future, spec: ShardSpec, tries: int, patience: Patience) -> Receipt | Problem | None:
        try:
            outcome: Receipt | Problem = future.result(timeout=_LOOK_SECONDS)
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
            raise lost("continue with --resume") from None
        except Exception as error:
            raise MunjangError(f"shard {spec.number}: {type(error).__name__}: {error}\n  continue with --resume") from error
        return outcome


def _room(patience: Patience) -> int:
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
