"""How long a Dask cluster without workers is waited for, and what is said when it is given up."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from munjang.errors import MunjangError

if TYPE_CHECKING:
    from distributed import Client

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
            raise lost(self._then)
        return sum(self._client.nthreads().values())


def lost(then: str) -> MunjangError:
    """Return the error of a connection that is gone."""
    return MunjangError(f"the connection to the Dask scheduler was lost\n  {then}")
