"""An address → a connected Dask client; "local" starts a cluster on this machine.

Dask's messages are pickles: whoever can speak to a scheduler can run code on it. So only a loopback address or TLS is accepted. Keys and
certificates come from Dask's own configuration (distributed.comm.tls).
"""

from __future__ import annotations

import logging
import os
import re
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from munjang.errors import MissingExtra, MunjangError, UsageError, shown

if TYPE_CHECKING:
    from distributed import Client

LOCAL = "local"
_LOOPBACK = re.compile(r"(tcp://)?(127\.\d+\.\d+\.\d+|localhost|\[::1\])(:\d+)?/?$")
_QUIET = {"logging.distributed": "critical", "distributed.scheduler.allowed-failures": 10}
_SECONDS = 20
_STARTS = 3


@contextmanager
def connected(address: str, *, workers: int, threads: int) -> Iterator[Client]:
    """Yield a client of the cluster at an address, or of a new one of so many workers on this machine."""
    try:
        import dask
        from distributed import Client, LocalCluster
    except ImportError as error:
        raise MissingExtra("--dask", "dask") from error
    if address != LOCAL:
        check_address(address)
        try:
            client = Client(address, timeout=_SECONDS, set_as_default=False)
        except (OSError, ValueError) as error:
            raise MunjangError(f"there is no Dask scheduler at {shown(address)} ({error})") from None
        with client:
            yield client
        return
    _silence()
    with (
        tempfile.TemporaryDirectory(prefix="munjang-dask-") as scratch,
        dask.config.set({**_QUIET, "temporary-directory": scratch}),
        _started(LocalCluster, workers, threads) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        yield client


def _started(local_cluster: Callable[..., Any], workers: int, threads: int) -> Any:
    """Return a cluster on this machine; a worker that dies while it starts costs a new try."""
    limits = {name: str(threads) for name in ("RAYON_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS")}
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


def check_address(address: str) -> None:
    """Refuse an address on a network without TLS.

    >>> check_address("tls://scheduler.example:8786"), check_address("tcp://127.0.0.1:8786")
    (None, None)
    """
    if address.startswith("tls://") or _LOOPBACK.match(address):
        return
    raise UsageError(
        f"{shown(address)}: is neither on this machine nor encrypted, expected tls://host:port, tcp://127.0.0.1:port or {LOCAL!r}\n"
        "  start dask scheduler and dask worker with --tls-ca-file, --tls-cert and --tls-key (docs/bulk.md)"
    )


def _silence() -> None:
    """Keep Dask's own log lines about lost workers off the terminal: we say what matters."""
    for name in ("distributed", "tornado.application"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
