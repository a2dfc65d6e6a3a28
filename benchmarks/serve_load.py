"""Load for serve.py: wrk as fast as so many connections go, or at a rate; and a few probes that clock each answer by its status.

wrk is one process with one thread. Its own CPU seconds are reported, because it shares the machine's cores with what it measures.
"""

from __future__ import annotations

import http.client
import json
import resource
import shutil
import subprocess
import tempfile
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass

PATH = "/v1/embeddings"
NEED_WRK = "serve.py measures with wrk, which is not installed\n  on Debian and Ubuntu: apt-get install wrk"

SCRIPT = """
local bodies = { %(bodies)s }
local at = 0
wrk.method = "POST"
wrk.headers["Content-Type"] = "application/json"
request = function()
  at = at %% #bodies + 1
  return wrk.format(nil, "%(path)s", nil, bodies[at])
end
done = function(summary, latency)
  local errors = summary.errors
  local lost = errors.connect + errors.read + errors.write + errors.timeout
  io.write(string.format("FOUND %%d %%d %%d %%d %%d %%d\\n", summary.requests, summary.duration, errors.status, lost,
    latency:percentile(50), latency:percentile(99)))
end
"""

PACE = """
local ffi = require("ffi")
ffi.cdef("typedef struct { long s; long ns; } moment; int clock_gettime(int clock, moment *found);")
local moment = ffi.new("moment")
local due
math.randomseed(1)
delay = function()
  ffi.C.clock_gettime(1, moment)
  local now = tonumber(moment.s) * 1e3 + tonumber(moment.ns) / 1e6
  due = math.max((due or now) - %(gap)f * math.log(1 - math.random()), now - 100)
  return math.max(0, math.floor(due - now))
end
"""
"""Requests are due at random, as those of many people are: gaps between them are exponential. Up to 100 ms of lost time are made up for."""


@dataclass(frozen=True)
class Load:
    """What wrk saw."""

    requests: int
    seconds: float
    refused: int
    """Answers with another status than 200."""
    lost: int
    """Requests without an answer within 30 s, and broken connections."""
    p50_ms: float
    p99_ms: float
    cpu_seconds: float
    """Of wrk itself."""

    @property
    def rate(self) -> float:
        """Good answers a second."""
        return (self.requests - self.refused) / self.seconds


@dataclass(frozen=True)
class Probe:
    """One answer to a probe."""

    status: int
    milliseconds: float


def require_wrk() -> None:
    """Leave, and say what to install, where there is no wrk."""
    if shutil.which("wrk") is None:
        raise SystemExit(NEED_WRK)


def run_wrk(port: int, inputs: Sequence[str | list[str]], *, connections: int, seconds: float, rate: float | None = None) -> Load:
    """Send the inputs round and round, one a request; without a rate, as fast as answers come."""
    bodies = ",\n".join(json.dumps(json.dumps({"input": each})) for each in inputs)
    script = SCRIPT % {"bodies": bodies, "path": PATH} + (PACE % {"gap": 1000 / rate} if rate else "")
    with tempfile.NamedTemporaryFile("w", suffix=".lua") as file:
        file.write(script)
        file.flush()
        address = f"http://127.0.0.1:{port}"
        command = ["wrk", "-t1", f"-c{connections}", f"-d{max(1, round(seconds))}s", "--timeout", "30s", "-s", file.name, address]
        before = _cpu_of_children()
        out = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        cpu = _cpu_of_children() - before
    found = next(line for line in out.splitlines() if line.startswith("FOUND")).split()[1:]
    requests, micros, refused, lost, p50, p99 = map(int, found)
    return Load(requests, micros / 1e6, refused, lost, p50 / 1000, p99 / 1000, cpu)


class Probes:
    """A few connections that ask now and then, each after its last answer, while something else makes the load; used as a context."""

    def __init__(self, port: int, given: str | list[str] | None, *, connections: int = 8, pause: float = 0.05) -> None:
        self.answers: list[Probe] = []
        self._body = None if given is None else json.dumps({"input": given})
        """None: they ask for the server's health."""
        self._port, self._pause = port, pause
        self._over = threading.Event()
        self._threads = [threading.Thread(target=self._ask, daemon=True) for _ in range(connections)]

    def __enter__(self) -> Probes:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join()

    def _ask(self) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=60)
        while not self._over.wait(self._pause):
            start = time.perf_counter()
            if self._body is None:
                connection.request("GET", "/health")
            else:
                connection.request("POST", PATH, self._body, {"content-type": "application/json"})
            response = connection.getresponse()
            response.read()
            self.answers.append(Probe(response.status, 1000 * (time.perf_counter() - start)))
        connection.close()


def milliseconds(probes: Probes, status: int) -> list[float]:
    """Return how long the answers with this status took."""
    return [probe.milliseconds for probe in probes.answers if probe.status == status]


def quantile(values: Sequence[float], share: float) -> float:
    """Return the value below which such a share lies; NaN of nothing."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else float("nan")


def _cpu_of_children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
