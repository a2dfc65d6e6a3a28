"""A real server on a loopback port, in a thread of the test's process: tiny models, small limits, a folder for new libraries."""

from __future__ import annotations

import http.client
import io
import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

for package in ("starlette", "uvicorn", "httptools", "pydantic", "orjson", "prometheus_client"):
    pytest.importorskip(package, reason=f"the extra serve is not installed: {package}")

from tests.conftest import write_cross_encoder  # noqa: E402

from munjang import CrossEncoder, SentenceEncoder  # noqa: E402
from munjang.limits import SERVE_LIMITS  # noqa: E402
from munjang.serve.running import listen, make_server  # noqa: E402
from munjang.serve.service import Service  # noqa: E402
from munjang.serve.settings import ServerSettings  # noqa: E402

LIMITS = replace(SERVE_LIMITS, max_body_bytes=2**20, max_texts=64, head_seconds=1.0, body_seconds=1.0, send_seconds=1.0, max_json_depth=8)


@dataclass(frozen=True)
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass(frozen=True)
class Running:
    """A server that runs: its address and its inside."""

    service: Service
    port: int
    log: io.BytesIO

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def call(self, method: str, path: str, body: Any = None, **headers: str) -> Answer:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        data = body if isinstance(body, bytes | None) else json.dumps(body).encode()
        sent = {"content-type": "application/json"} | {name.replace("_", "-"): value for name, value in headers.items()}
        try:
            connection.request(method, path, data, sent)
            response = connection.getresponse()
            return Answer(response.status, {name.lower(): value for name, value in response.getheaders()}, response.read())
        finally:
            connection.close()

    def post(self, path: str, body: Any, **headers: str) -> Answer:
        return self.call("POST", path, body, **headers)

    def get(self, path: str, **headers: str) -> Answer:
        return self.call("GET", path, **headers)


@contextmanager
def running(settings: ServerSettings, model: SentenceEncoder, reranker: CrossEncoder | None = None, **options: Any) -> Iterator[Running]:
    service = Service(settings, model, reranker, **options)
    log = io.BytesIO()
    server = make_server(service, log=log)
    bound = listen("127.0.0.1", 0)
    port = bound.getsockname()[1]
    thread = threading.Thread(target=server.run, kwargs={"sockets": [bound]}, daemon=True)
    thread.start()
    end = time.monotonic() + 20
    while not server.started:
        assert time.monotonic() < end, "the server did not start"
        time.sleep(0.01)
    try:
        yield Running(service, port, log)
    finally:
        server.should_exit = True
        thread.join(30)
        assert not thread.is_alive()


@pytest.fixture(scope="session")
def model(tiny_bert_folder: Path) -> SentenceEncoder:
    return SentenceEncoder.load(tiny_bert_folder)


@pytest.fixture(scope="session")
def make_reranker(tmp_path_factory: pytest.TempPathFactory) -> Callable[[int], CrossEncoder]:
    def make(labels: int) -> CrossEncoder:
        folder = tmp_path_factory.mktemp(f"cross-{labels}")
        write_cross_encoder(folder, labels)
        return CrossEncoder.load(folder)

    return make


@pytest.fixture(scope="session")
def reranker(make_reranker: Callable[[int], CrossEncoder]) -> CrossEncoder:
    return make_reranker(1)


@pytest.fixture(scope="module")
def server(model: SentenceEncoder, reranker: CrossEncoder, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    settings = ServerSettings(data=tmp_path_factory.mktemp("libraries"), analyser="bigrams", limits=LIMITS)
    with running(settings, model, reranker) as started:
        yield started
