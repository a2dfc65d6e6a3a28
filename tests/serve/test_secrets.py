"""No answer tells a client where a library lies, how to reach its database, or anything of the server's process and environment."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.postgres import postgres_url
from tests.serve.conftest import LIMITS, Answer, Running, running

from munjang import Library, SentenceEncoder
from munjang.library.sqlite_store import SqliteStore
from munjang.serve.settings import ServerSettings

SECRET = "hunter2"


@pytest.fixture(scope="module")
def postgres() -> str:
    """The address of a real PostgreSQL, with a password that it does not ask for and without a database's name."""
    return postgres_url().replace("postgres:@/postgres", f"postgres:{SECRET}@")


@pytest.fixture
def server(postgres: str, model: SentenceEncoder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Running]:
    monkeypatch.setenv("PGPASSWORD", SECRET)
    news = tmp_path / "private" / "news.db"
    news.parent.mkdir()
    for place in (str(news), postgres, f"{postgres}#second"):
        with Library.open(place, model, analyser="bigrams") as library:
            library.add([{"id": "a", "text": "rain", "metadata": {"year": 1}}])
    settings = ServerSettings(data=tmp_path / "data", analyser="bigrams", limits=LIMITS)
    with running(settings, model, libraries=(str(news), postgres, f"{postgres}#second", postgres)) as started:
        for _, library in started.service.libraries:
            library.turns.patience = 0.05
        yield started


def calls(server: Running, name: str) -> list[Answer]:
    """Ask a library for everything that a client can ask it for."""
    route = f"/api/libraries/{name}"
    found = [
        server.get("/api/libraries"),
        server.get(route),
        server.post(f"{route}/search", {"query": "rain", "where": "year = 1"}),
        server.post(f"{route}/search", {"query": "rain", "like": ["unknown"]}),
        server.post(f"{route}/search", {"query": "rain", "where": "year ="}),
        server.post(f"{route}/add", {"records": [{"id": "b", "text": "snow"}]}),
        server.post(f"{route}/remove", {"ids": ["b"]}),
        server.post("/api/libraries", {"name": name, "records": []}),
        server.post("/api/libraries", {"name": f"new-{name}", "records": [{"text": "rain"}]}),
        server.call("DELETE", f"/api/libraries/new-{name}"),
        server.post("/api/keywords", {"library": name}),
        server.call("DELETE", route) if name != "news" else server.get(route),
    ]
    upload = server.call("POST", f"{route}/upload?filename=a.txt", b"rain\nsnow\n")
    return [*found, upload, *finished(server, upload)]


def finished(server: Running, upload: Answer) -> list[Answer]:
    """Wait for the job of an upload, and return what is told of it."""
    if upload.status != 202:
        return []
    end = time.monotonic() + 20
    while True:
        found = server.get(f"/api/jobs/{upload.json['id']}")
        if found.json["state"] not in ("waiting", "running") or time.monotonic() > end:
            return [found]
        time.sleep(0.02)


@contextmanager
def busy(library: Library) -> Iterator[None]:
    with library.store.writer("copy from /private/place"):
        yield


@contextmanager
def unreachable(library: Library) -> Iterator[None]:
    """Take the file away, or point the connections to a port where nobody listens."""
    store: Any = library.store
    if isinstance(store, SqliteStore):
        hidden = store.path.with_name("hidden")
        store.path.rename(hidden)
        yield
        hidden.rename(store.path)
        return
    connections, address = store._connections, store._connections.address
    connections.close()
    connections.address = replace(address, url=f"postgresql://postgres:{SECRET}@127.0.0.1:1/{SECRET}")
    yield
    connections.address = address


@contextmanager
def unwritable(library: Library) -> Iterator[None]:
    """Put a folder where the lock file is; in PostgreSQL, take a table away."""
    store: Any = library.store
    if isinstance(store, SqliteStore):
        lock = store.path.with_name(store.path.name + ".lock")
        lock.unlink(missing_ok=True)
        lock.mkdir()
        yield
        lock.rmdir()
        return
    with store._connections.reader() as connection:
        connection.execute("ALTER TABLE words RENAME TO gone")
    yield
    with store._connections.reader() as connection:
        connection.execute("ALTER TABLE gone RENAME TO words")


@contextmanager
def damaged(library: Library) -> Iterator[None]:
    store: Any = library.store
    if not isinstance(store, SqliteStore):
        with store._connections.reader() as connection:
            connection.execute("UPDATE documents SET checksum = 1")
        yield
        return
    library.compact()
    store._verifier._due = store._verifier._whole_due = 0.0
    content = store.path.read_bytes()
    with store.path.open("r+b") as file:
        file.seek(8_192)
        file.write(b"\xff" * 20_000)
    yield
    with store.path.open("r+b") as file:
        file.write(content)


def test_no_answer_tells_where_a_library_lies_or_who_writes_to_it(server: Running, tmp_path: Path, postgres: str) -> None:
    everywhere = ["/", "/health", "/info", "/metrics", "/openapi.json", "/docs", "/v1/models", "/api/info", "/nothing", "/api/jobs/x"]
    answers = [server.get(path) for path in everywhere]
    libraries = dict(server.service.libraries)
    assert sorted(libraries) == ["munjang", "munjang-2", "news", "second"]
    statuses = set()
    for name in ("news", "second"):
        answers += calls(server, name)
        for trouble in (busy, unreachable, unwritable, damaged):
            with trouble(libraries[name]):
                found = calls(server, name)
            answers += found
            statuses |= {answer.status for answer in found}
    with suppress(FileNotFoundError):
        (tmp_path / "data").rename(tmp_path / "moved")
    (tmp_path / "data").write_text("a file in the place of the folder")
    answers.append(server.post("/api/libraries", {"name": "fresh", "records": []}))
    assert {404, 422, 429, 500, 503} <= statuses
    socket = re.search(r"host=([^&]+)", postgres)
    assert socket is not None
    places = (str(tmp_path), str(tmp_path.parent.parent), str(Path.cwd()), socket[1], "127.0.0.1:1", "/private/place", "postgresql:")
    for secret in (SECRET, *places):
        told = [answer.body for answer in answers if secret in answer.body.decode() or secret in str(answer.headers)]
        assert told == [], f"{secret!r} is told"
    refused = [answer.body.decode() for answer in answers if answer.status >= 400]
    refused += [answer.body.decode() for answer in answers if b'"error": "' in answer.body or b'"error":"' in answer.body]
    assert [body for body in refused if re.search(rf"\b{os.getpid()}\b|\bprocess \d", body)] == []
