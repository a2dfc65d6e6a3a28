"""The command itself: it refuses to be open to all, says where it listens, and stops without losing a request."""

from __future__ import annotations

import http.client
import json
import signal
import threading
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests.serve.command import start

from munjang.cli.main import run


class Client(threading.Thread):
    """Asks again and again on one connection until the server says that it stops."""

    def __init__(self, port: int) -> None:
        super().__init__(daemon=True)
        self.port, self.answered, self.lost = port, 0, 0

    def run(self) -> None:
        with closing(http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)) as connection:
            self.ask_until_it_stops(connection)

    def ask_until_it_stops(self, connection: http.client.HTTPConnection) -> None:
        body = json.dumps({"input": ["the rain is in the river"] * 8})
        try:
            connection.connect()
        except OSError:
            return
        while True:
            try:
                connection.request("POST", "/v1/embeddings", body, {"content-type": "application/json"})
                response = connection.getresponse()
                found = json.loads(response.read())
                assert len(found["data"]) == 8
            except (OSError, http.client.HTTPException):
                self.lost += 1
                return
            self.answered += 1
            if response.will_close:
                return


def stop_under_load(folder: Path, tmp_path: Path, library: str, after: float) -> None:
    process, port = start(folder, tmp_path, "--library", library)
    clients = [Client(port) for _ in range(6)]
    for client in clients:
        client.start()
    end = time.monotonic() + 60
    while sum(client.answered for client in clients) < 6 and time.monotonic() < end:
        time.sleep(0.01)
    time.sleep(after)
    process.send_signal(signal.SIGTERM)
    for client in clients:
        client.join(60)
    assert process.wait(60) == 0
    assert sum(client.lost for client in clients) == 0
    assert all(client.answered for client in clients)


@pytest.fixture(scope="module")
def library(tiny_bert_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    from munjang import SentenceEncoder
    from munjang.library.library import Library

    path = tmp_path_factory.mktemp("served") / "small.db"
    with Library.open(path, SentenceEncoder.load(tiny_bert_folder), analyser="bigrams") as made:
        made.add(["the rain", "the cat"])
    return str(path)


@pytest.mark.parametrize("after", [0.0, 0.137], ids=str)
def test_accepted_requests_finish_and_the_exit_code_is_0(tiny_bert_folder: Path, tmp_path: Path, library: str, after: float) -> None:
    stop_under_load(tiny_bert_folder, tmp_path, library, after)


@pytest.mark.slow
def test_twenty_stops_lose_nothing(tiny_bert_folder: Path, tmp_path: Path, library: str) -> None:
    for number in range(20):
        stop_under_load(tiny_bert_folder, tmp_path, library, 0.037 * number)


def test_it_refuses_to_be_open_to_all(tiny_bert_folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["serve", "--model", str(tiny_bert_folder), "--host", "0.0.0.0"]) == 2
    assert "--api-key-file" in capsys.readouterr().err


def test_check_says_what_would_be_served(tiny_bert_folder: Path, tmp_path: Path, library: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["serve", "--model", str(tiny_bert_folder), "--library", library, "--data", str(tmp_path), "--check"]) == 0
    assert json.loads(capsys.readouterr().out)["libraries"] == ["small"]


def test_a_port_that_is_taken_is_named(
    tiny_bert_folder: Path, tmp_path: Path, library: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    import socket

    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        code = run(["serve", "--model", str(tiny_bert_folder), "--library", library, "--data", str(tmp_path), "--port", port])
    assert code == 2
    assert port in capsys.readouterr().err


def test_without_the_extra_the_pip_line_is_named(
    tiny_bert_folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    import importlib.util

    real: Callable[..., Any] = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *more: None if name == "httptools" else real(name, *more))
    assert run(["serve", "--model", str(tiny_bert_folder)]) == 2
    assert "munjang[serve]" in capsys.readouterr().err
