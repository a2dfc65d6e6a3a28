"""The server under load: against offline encode, against a plain server around sentence-transformers, overloaded, and for long.

    ./run bench serve [--parts throughput,plain,latency,overload,fairness,writers,memory] [--model M] [--seconds 10] [--rounds 3]

Requests are POST /v1/embeddings with one short text, on loopback, made by wrk (on Debian: apt-get install wrk) except in the parts fairness
and writers. Parts:

    throughput   requests/s at 32 connections beside texts/s of SentenceEncoder.encode on the same texts, in turns
    plain        requests/s beside those of serve_plain.py with the same model, in turns
    latency      p50 and p99 at 80 % of the rate that 32 connections reach; requests are due at random moments
    overload     four times that rate, with a queue of 2,048 tokens: how fast refusals, good answers and /health come, how many good answers
                 remain, memory, recovery
    fairness     ten clients that ask for one text now and then, alone and beside one that sends 100 passages again and again
    writers      eight clients that add documents to one library, one after the other
    memory       resident memory over 10 minutes of moderate load; needs no quiet machine

wrk and the server share the machine's cores, which offline encode has for itself. So beside the share by the clock there is one of CPU
seconds (offline CPU a text / CPU of the server a request), and one by the clock that leaves out the cores' time that wrk took.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from bench_texts import passages, short_sentences
from serve_load import Load, Probes, milliseconds, quantile, require_wrk, run_wrk
from serve_processes import Offline, Server, our_server, plain_server

CORES = os.cpu_count() or 1
QUEUE_TOKENS = 2_048
MANY_CONNECTIONS = 512

Result = dict[str, Any]


def throughput(options: argparse.Namespace, texts: list[str]) -> Result:
    """Compare with offline encode."""
    offline = Offline(options.model, texts)
    rows = []
    with our_server(options.model) as server:
        _warm(server, texts, options)
        for _ in range(options.rounds):
            rate, cpu = offline.measure(options.seconds)
            load, server_cpu = _fast(server, texts, options)
            free = CORES - load.cpu_seconds / load.seconds
            rows.append(
                (rate, load.rate, load.rate / rate, load.rate / rate * CORES / free, cpu, server_cpu, load.cpu_seconds / load.requests)
            )
        batch = server.metric("munjang_batch_texts_sum") / server.metric("munjang_batch_texts_count")
    offline.close()
    columns = [statistics.median(column) for column in zip(*rows, strict=True)]
    return {
        "offline_texts_per_second": columns[0],
        "served_requests_per_second": columns[1],
        "share_of_offline": columns[2],
        "share_of_offline_least_and_most": [min(row[2] for row in rows), max(row[2] for row in rows)],
        "share_of_offline_without_wrk": columns[3],
        "offline_cpu_us_per_text": 1e6 * columns[4],
        "server_cpu_us_per_request": 1e6 * columns[5],
        "wrk_cpu_us_per_request": 1e6 * columns[6],
        "share_in_cpu": columns[4] / columns[5],
        "texts_per_batch": batch,
    }


def plain(options: argparse.Namespace, texts: list[str]) -> Result:
    """Compare with a plain server."""
    rows = []
    with our_server(options.model) as ours, plain_server(options.model) as theirs:
        _warm(ours, texts, options)
        _warm(theirs, texts, options)
        for _ in range(options.rounds):
            mine, my_cpu = _fast(ours, texts, options)
            other, other_cpu = _fast(theirs, texts, options)
            rows.append((mine.rate, other.rate, mine.rate / other.rate, other_cpu / my_cpu))
    columns = [statistics.median(column) for column in zip(*rows, strict=True)]
    return {
        "served_requests_per_second": columns[0],
        "plain_requests_per_second": columns[1],
        "times_plain": columns[2],
        "times_plain_least_and_most": [min(row[2] for row in rows), max(row[2] for row in rows)],
        "times_plain_in_cpu": columns[3],
    }


def latency(options: argparse.Namespace, texts: list[str]) -> Result:
    """Look at the slowest answers of a server that has some room left."""
    with our_server(options.model) as server:
        _warm(server, texts, options)
        full, _ = _fast(server, texts, options)
        calm = run_wrk(server.port, texts, connections=MANY_CONNECTIONS, seconds=2 * options.seconds, rate=0.8 * full.rate)
    return {
        "served_requests_per_second": full.rate,
        "offered_share": calm.requests / calm.seconds / full.rate,
        "p50_ms": calm.p50_ms,
        "p99_ms": calm.p99_ms,
        "p99_to_p50": calm.p99_ms / calm.p50_ms,
        "refused": calm.refused,
        "lost": calm.lost,
    }


def overload(options: argparse.Namespace, texts: list[str]) -> Result:
    """Offer four times what can be served, with a queue short enough to fill."""
    with our_server(options.model, "--queue-tokens", str(QUEUE_TOKENS)) as server:
        _warm(server, texts, options)
        full, _ = _fast(server, texts, options)
        before = server.megabytes()
        health = Probes(server.port, None, connections=1)
        with _Watch(server, every=0.25) as watch, Probes(server.port, texts[0]) as probes, health:
            cpu = server.cpu_seconds()
            flood = run_wrk(server.port, texts, connections=MANY_CONNECTIONS, seconds=options.seconds, rate=4 * full.rate)
            cpu = server.cpu_seconds() - cpu
        first, answers = _after(server, texts[0])
    refused = milliseconds(probes, 429)
    return {
        "served_requests_per_second": full.rate,
        "offered_times_served": flood.requests / flood.seconds / full.rate,
        "refused_share": flood.refused / flood.requests,
        "lost": flood.lost,
        "statuses_of_probes": sorted({probe.status for probe in probes.answers}),
        "refusals_clocked": len(refused),
        "refusal_p50_ms": quantile(refused, 0.5),
        "refusal_p99_ms": quantile(refused, 0.99),
        "accepted_p99_ms": quantile(milliseconds(probes, 200), 0.99),
        "health_most_ms": max(milliseconds(health, 200)),
        "goodput_share": flood.rate / full.rate,
        "goodput_share_without_wrk": flood.rate / full.rate * _free_cores(full) / _free_cores(flood),
        "server_cores_used": cpu / flood.seconds,
        "wrk_cores_used": flood.cpu_seconds / flood.seconds,
        "memory_before_mb": before,
        "memory_most_mb": max(watch.megabytes),
        "recovered_after_ms": first,
        "good_answers_in_the_second_after": sum(status == 200 for status in answers) / len(answers),
    }


def fairness(options: argparse.Namespace, texts: list[str]) -> Result:
    """Put a client that sends large batches beside ten that ask now and then; all of them come from one address."""
    batch = passages(100)
    with our_server(options.model) as server:
        for given in (texts[0], batch):
            with Probes(server.port, given, connections=2, pause=0):
                time.sleep(min(3, options.seconds))
        with _interactive(server, texts[0]) as quiet:
            time.sleep(options.fair_seconds)
        large, health = Probes(server.port, batch, connections=1, pause=0), Probes(server.port, None, connections=1)
        with _interactive(server, texts[0]) as beside, large, health:
            time.sleep(options.fair_seconds)
    calm, busy = milliseconds(quiet, 200), milliseconds(beside, 200)
    return {
        "quiet_answers": len(calm),
        "quiet_p50_ms": quantile(calm, 0.5),
        "quiet_p99_ms": quantile(calm, 0.99),
        "beside_answers": len(busy),
        "beside_p50_ms": quantile(busy, 0.5),
        "beside_p99_ms": quantile(busy, 0.99),
        "p99_to_quiet_p99": quantile(busy, 0.99) / quantile(calm, 0.99),
        "refused": len(beside.answers) - len(busy),
        "passages_per_second": len(milliseconds(large, 200)) * len(batch) / options.fair_seconds,
        "statuses_of_batches": sorted({probe.status for probe in large.answers}),
        "health_most_ms": max(milliseconds(health, 200)),
    }


def writers(options: argparse.Namespace, texts: list[str]) -> Result:
    """Let eight clients add to one library at once."""

    def add(client: int) -> list[int]:
        records = ([{"id": f"{client}-{number}", "text": texts[number % len(texts)]}] for number in range(options.adds))
        return [server.post("/api/libraries/bench/add", {"records": each}) for each in records]

    with our_server(options.model) as server, ThreadPoolExecutor(8) as pool:
        server.post("/api/libraries", {"name": "bench", "records": []})
        start = time.perf_counter()
        statuses = [status for each in pool.map(add, range(8)) for status in each]
        seconds = time.perf_counter() - start
    return {"adds": len(statuses), "acknowledged": statuses.count(200), "adds_per_second": len(statuses) / seconds}


def memory(options: argparse.Namespace, texts: list[str]) -> Result:
    """Watch memory; among single texts there are lists of them and passages that are cut."""
    many: list[str | list[str]] = [*texts, *passages(40), *(texts[start : start + 32] for start in range(0, 640, 16))]
    inputs = [many[(number * 7919) % len(many)] for number in range(len(many))]
    with our_server(options.model) as server:
        _warm(server, texts, options)
        with _Watch(server, every=1.0) as watch:
            load = run_wrk(server.port, inputs, connections=options.connections, seconds=60 * options.minutes, rate=options.memory_rate)
    tenth = max(1, len(watch.megabytes) // 10)
    early, late = (statistics.median(part) for part in (watch.megabytes[tenth : 2 * tenth], watch.megabytes[-tenth:]))
    return {
        "minutes": load.seconds / 60,
        "requests": load.requests,
        "requests_per_second": load.requests / load.seconds,
        "refused": load.refused,
        "lost": load.lost,
        "memory_second_tenth_mb": early,
        "memory_last_tenth_mb": late,
        "memory_drift": late / early - 1,
    }


PARTS: dict[str, Callable[[argparse.Namespace, list[str]], Result]] = {
    "throughput": throughput,
    "plain": plain,
    "latency": latency,
    "overload": overload,
    "fairness": fairness,
    "writers": writers,
    "memory": memory,
}


class _Watch:
    """Notes a server's memory again and again; used as a context."""

    def __init__(self, server: Server, *, every: float) -> None:
        self.megabytes = [server.megabytes()]
        self._server, self._every = server, every
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)

    def __enter__(self) -> _Watch:
        self._thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._over.set()
        self._thread.join()

    def _look(self) -> None:
        while not self._over.wait(self._every):
            self.megabytes.append(self._server.megabytes())


def _interactive(server: Server, text: str) -> Probes:
    return Probes(server.port, text, connections=10, pause=0.1)


def _warm(server: Server, texts: list[str], options: argparse.Namespace) -> None:
    run_wrk(server.port, texts, connections=options.connections, seconds=min(3, options.seconds))


def _fast(server: Server, texts: list[str], options: argparse.Namespace) -> tuple[Load, float]:
    """Return what the connections reach, and the server's CPU seconds a request."""
    before = server.cpu_seconds()
    load = run_wrk(server.port, texts, connections=options.connections, seconds=options.seconds)
    if not load.requests or load.refused or load.lost:
        raise SystemExit(
            f"of {load.requests:,} requests {load.refused:,} were refused and {load.lost:,} lost; expected some, and none of these"
        )
    return load, (server.cpu_seconds() - before) / load.requests


def _after(server: Server, text: str) -> tuple[float, list[int]]:
    """Ask for a second, one request after the other; return the milliseconds to the first good answer, and all statuses."""
    start, first, statuses = time.perf_counter(), float("nan"), []
    while time.perf_counter() - start < 1:
        statuses.append(server.ask(text))
        if statuses[-1] == 200 and first != first:
            first = 1000 * (time.perf_counter() - start)
    return first, statuses


def _free_cores(load: Load) -> float:
    return CORES - load.cpu_seconds / load.seconds


def main() -> None:
    """Measure the parts that are asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--parts", default=",".join(PARTS), help="some of: " + ", ".join(PARTS))
    parser.add_argument("--model", help="a model's name or folder; without it, the bundled one")
    parser.add_argument("--seconds", type=float, default=10, help="for each measurement")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--connections", type=int, default=32)
    parser.add_argument("--texts", type=int, default=2_000, help="different texts; offline encode gets them all at once")
    parser.add_argument("--fair-seconds", type=float, default=60, help="of part fairness, alone and beside")
    parser.add_argument("--adds", type=int, default=100, help="of each client of part writers")
    parser.add_argument("--minutes", type=float, default=10, help="of part memory")
    parser.add_argument("--memory-rate", type=float, default=200, help="requests a second of part memory")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    names = options.parts.split(",")
    if unknown := [name for name in names if name not in PARTS]:
        parser.error(f"unknown parts: {', '.join(unknown)}; there are {', '.join(PARTS)}")
    if set(names) - {"fairness", "writers"}:
        require_wrk()
    texts = short_sentences(options.texts)
    found: dict[str, Result] = {}
    for name in names:
        found[name] = PARTS[name](options, texts)
        print(f"{name} ({CORES} cores, load average {os.getloadavg()[0]:.1f} at the end)")
        for key, value in found[name].items():
            print(f"  {key:36} {value:12.3f}" if isinstance(value, float) else f"  {key:36} {value!s:>12}", flush=True)
    if options.json:
        options.json.write_text(json.dumps(found, indent=2) + "\n")


if __name__ == "__main__":
    main()
