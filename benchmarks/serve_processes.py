"""The processes that serve.py measures: Munjang's server, the plain server, and offline encode; their CPU seconds and their memory.

Each runs by itself and is idle while another one is measured. Nothing is measured here by the clock but offline encode, in its own process.
"""

from __future__ import annotations

import http.client
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
START_SECONDS = 180

OFFLINE = """
import json, sys, time
from munjang import SentenceEncoder
order = json.loads(sys.stdin.readline())
model = SentenceEncoder.load(order["model"])
texts = order["texts"]
model.encode(texts)
for line in sys.stdin:
    seconds, count = float(line), 0
    start, cpu = time.perf_counter(), time.process_time()
    while time.perf_counter() - start < seconds:
        model.encode(texts)
        count += len(texts)
    print(json.dumps([count / (time.perf_counter() - start), (time.process_time() - cpu) / count]), flush=True)
"""


@dataclass(frozen=True)
class Server:
    """A server that runs on a loopback port."""

    pid: int
    port: int

    def cpu_seconds(self) -> float:
        """Return what it has computed so far, all threads together."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def settle(self, *, most_seconds: float = 60.0) -> None:
        """Wait until it rests: ours answers before its sample collection is indexed, and that would be measured too."""
        end = time.monotonic() + most_seconds
        used = -1.0
        while self.cpu_seconds() - used > 0.02 and time.monotonic() < end:
            used = self.cpu_seconds()
            time.sleep(1.0)

    def megabytes(self) -> float:
        """Return its resident memory."""
        lines = Path(f"/proc/{self.pid}/status").read_text().splitlines()
        return int(next(line for line in lines if line.startswith("VmRSS")).split()[1]) / 1024

    def metric(self, name: str) -> float:
        """Return one number of Munjang's /metrics."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        connection.request("GET", "/metrics")
        lines = connection.getresponse().read().decode().splitlines()
        connection.close()
        return float(next(line for line in lines if line.startswith(f"{name} ")).split()[1])

    def ask(self, text: str) -> int:
        """Send one text and return the status."""
        return self.post("/v1/embeddings", {"input": text})

    def post(self, path: str, body: object) -> int:
        """Send JSON on a new connection and return the status."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.request("POST", path, json.dumps(body), {"content-type": "application/json"})
            response = connection.getresponse()
            response.read()
            return response.status
        finally:
            connection.close()


@contextmanager
def our_server(model: str | None, *options: str) -> Iterator[Server]:
    """Run `munjang serve` without an access log, as long as the block lasts."""
    with tempfile.TemporaryDirectory() as data:
        named = ["--model", model] if model else []
        port = _free_port()
        command = [sys.executable, "-m", "munjang.cli.main", "serve", *named, "--port", str(port), "--access-log", "none", "--data", data]
        with _running([*command, *options], port) as server:
            yield server


@contextmanager
def plain_server(model: str | None) -> Iterator[Server]:
    """Run the plain server with the same model, saved as sentence-transformers reads it."""
    from munjang import SentenceEncoder

    with tempfile.TemporaryDirectory() as folder:
        SentenceEncoder.load(model).save(Path(folder) / "model")
        port = _free_port()
        with _running([sys.executable, str(HERE / "serve_plain.py"), str(Path(folder) / "model"), str(port)], port) as server:
            yield server


class Offline:
    """A process that encodes the texts when it is told to; it waits for a line in between, and takes no CPU."""

    def __init__(self, model: str | None, texts: list[str]) -> None:
        self._process = subprocess.Popen([sys.executable, "-c", OFFLINE], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self._tell(json.dumps({"model": model, "texts": texts}))

    def measure(self, seconds: float) -> tuple[float, float]:
        """Return texts a second, and CPU seconds a text."""
        self._tell(str(seconds))
        assert self._process.stdout is not None
        rate, cpu = json.loads(self._process.stdout.readline())
        return float(rate), float(cpu)

    def close(self) -> None:
        """End the process."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(60)

    def _tell(self, line: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as bound:
        return int(bound.getsockname()[1])


@contextmanager
def _running(command: list[str], port: int) -> Iterator[Server]:
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    try:
        _wait_for(process, port)
        server = Server(process.pid, port)
        server.settle()
        yield server
    finally:
        process.terminate()
        try:
            process.wait(60)
        except subprocess.TimeoutExpired:
            process.kill()


def _wait_for(process: subprocess.Popen[bytes], port: int) -> None:
    end = time.monotonic() + START_SECONDS
    while time.monotonic() < end and process.poll() is None:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
        try:
            connection.request("GET", "/health")
            connection.getresponse().read()
            return
        except OSError:
            time.sleep(0.2)
        finally:
            connection.close()
    raise SystemExit(f"the server did not start: {' '.join(command_shown(process.args))}")


def command_shown(arguments: object) -> list[str]:
    """Return a command's words, the interpreter by its name alone."""
    words = [str(word) for word in arguments] if isinstance(arguments, list) else [str(arguments)]
    return [Path(words[0]).name, *words[1:]]
