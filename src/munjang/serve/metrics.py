"""Counts and clocks for Prometheus, at /metrics: requests by route, what waits, batches, tokens, and what was cut."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST

from munjang.serve.call import Call, Operation, Reply, Seen

if TYPE_CHECKING:
    from munjang.serve.batcher import Batcher

SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
TEXTS = (1, 2, 4, 8, 16, 32, 64, 128, 256)
TOKENS = (16, 32, 64, 128, 256, 512, 1024, 2048)


class Metrics:
    """All numbers of one server; safe from many threads."""

    def __init__(self) -> None:
        self.registry = registry = CollectorRegistry()
        self._requests = Counter("munjang_requests", "Requests by route and status", ["route", "status"], registry=registry)
        self._seconds = Histogram("munjang_request_seconds", "Time from headers to answer", ["route"], buckets=SECONDS, registry=registry)
        self._by_key = Counter("munjang_key_requests", "Requests by the name of the client's key", ["key"], registry=registry)
        self._known: dict[tuple[str, int], tuple[Counter, Histogram]] = {}
        self._texts = Counter("munjang_texts", "Texts in requests", registry=registry)
        self._tokens = Counter("munjang_tokens", "Tokens in requests, before any cut", registry=registry)
        self._truncated = Counter("munjang_truncated_texts", "Texts that were longer than the model reads", registry=registry)
        self._waiting_texts = Gauge("munjang_waiting_texts", "Texts in the queue", registry=registry)
        self._waiting_tokens = Gauge("munjang_waiting_tokens", "Tokens in the queue", registry=registry)
        self._batch_texts = Histogram("munjang_batch_texts", "Texts in a batch", buckets=TEXTS, registry=registry)
        self._batch_tokens = Histogram("munjang_batch_tokens", "Tokens in a batch", buckets=TOKENS, registry=registry)
        self._compute = Counter("munjang_compute_seconds", "Seconds of all compute threads together", registry=registry)

    def watch(self, batcher: Batcher) -> None:
        """Read the queue whenever someone looks."""
        self._waiting_texts.set_function(lambda: batcher.waiting_texts)
        self._waiting_tokens.set_function(lambda: batcher.waiting_tokens)

    def batch(self, texts: int, tokens: int, seconds: float, /) -> None:
        """Take note of one batch."""
        self._batch_texts.observe(texts)
        self._batch_tokens.observe(tokens)
        self._compute.inc(seconds)

    def request(self, seen: Seen, status: int, seconds: float) -> None:
        """Take note of one request."""
        counter, clock = self._known.get((seen.route, status)) or self._remember(seen.route, status)
        counter.inc()
        clock.observe(seconds)
        if seen.key is not None:
            self._by_key.labels(seen.key).inc()
        if seen.texts:
            self._texts.inc(seen.texts)
            self._tokens.inc(seen.tokens)
        if seen.truncated:
            self._truncated.inc(len(seen.truncated))

    def _remember(self, route: str, status: int) -> tuple[Counter, Histogram]:
        """Look a route's numbers up once: that takes longer than counting."""
        found = self._known[route, status] = self._requests.labels(route, str(status)), self._seconds.labels(route)
        return found


async def show(call: Call, _body: None) -> Reply:
    """Return all numbers as Prometheus reads them."""
    return Reply(generate_latest(call.service.metrics.registry), media=CONTENT_TYPE_LATEST)


OPERATIONS = (Operation("GET", "/metrics", "tei", "Metrics for Prometheus.", show, right="admin"),)
