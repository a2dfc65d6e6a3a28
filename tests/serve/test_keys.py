"""Keys with names and rights: who may do what, to which library, and what is never shown."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from tests.serve.command import start
from tests.serve.conftest import LIMITS, Answer, Running, running

from munjang import CrossEncoder, SentenceEncoder
from munjang.errors import InputError
from munjang.serve.app import all_operations
from munjang.serve.keys import RIGHTS, KeyRing, read_keys
from munjang.serve.settings import ServerSettings, check_settings

KEYS = {name: f"a-key-that-nobody-guesses-{name}" for name in ("reader", "writer", "boss", "news-reader", "news-writer")}
FILE = f"""
[[keys]]
name = "reader"
key = "{KEYS["reader"]}"
rights = "read"

[[keys]]
name = "writer"
sha256 = "{sha256(KEYS["writer"].encode()).hexdigest()}"
rights = "write"

[[keys]]
name = "boss"
key = "{KEYS["boss"]}"
rights = "admin"

[[keys]]
name = "news-reader"
key = "{KEYS["news-reader"]}"
libraries = ["news"]

[[keys]]
name = "news-writer"
key = "{KEYS["news-writer"]}"
rights = "write"
libraries = ["news"]
"""


@pytest.fixture(scope="module")
def guarded(model: SentenceEncoder, reranker: CrossEncoder, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    folder = tmp_path_factory.mktemp("guarded")
    file = folder / "keys.toml"
    file.write_text(FILE)
    with running(ServerSettings(keys_file=file, data=folder / "data", analyser="bigrams", limits=LIMITS), model, reranker) as started:
        for name in ("news", "mail"):
            records = [{"id": "1", "text": "the rain"}]
            assert call(started, "boss", "POST", "/api/libraries", {"name": name, "records": records}).status == 201
        yield started


def call(server: Running, key: str, method: str, path: str, body: Any = None) -> Answer:
    return server.call(method, path, body, authorization=f"Bearer {KEYS[key]}")


def test_each_right_includes_those_before_it(guarded: Running) -> None:
    add = {"records": [{"id": "2", "text": "cat"}]}
    for key, right in (("reader", "read"), ("writer", "write"), ("boss", "admin")):
        rank = RIGHTS.index(right)  # type: ignore[arg-type]
        assert call(guarded, key, "POST", "/v1/embeddings", {"input": "cat"}).status == 200
        assert call(guarded, key, "POST", "/api/libraries/mail/search", {"query": "cat"}).status == 200
        assert call(guarded, key, "POST", "/api/libraries/mail/add", add).status == (200 if rank >= 1 else 403)
        assert call(guarded, key, "GET", "/metrics").status == (200 if rank >= 2 else 403)


def test_every_operation_asks_for_its_right_before_it_reads_a_body(guarded: Running) -> None:
    asked = [each for each in all_operations() if each.right != "read"]
    assert {(each.method, each.path.rpartition("/")[2]) for each in asked} >= {
        ("POST", "libraries"), ("DELETE", "{name}"), ("POST", "add"), ("POST", "remove"), ("POST", "upload"), ("GET", "snapshot"),
        ("DELETE", "{id}"), ("GET", "metrics"),
    }  # fmt: skip
    for each in asked:
        answer = call(guarded, "reader", each.method, each.path.replace("{name}", "news").replace("{id}", "1"), b"{")
        assert (answer.status, each.right in answer.body.decode(), "'reader'" in answer.body.decode()) == (403, True, True), each.path


def test_every_path_of_a_library_wants_a_right_to_that_library(guarded: Running) -> None:
    paths = [each for each in all_operations() if each.path.startswith("/api/libraries/{name}")]
    assert len(paths) >= 7
    for each in paths:
        for name in ("mail", "nothing-of-this-name"):  # whether there is one is not told either
            answer = call(guarded, "news-writer", each.method, each.path.replace("{name}", name), b"{}")
            assert answer.status == 403, each.path
            assert f"'{name}'" in answer.json["error"]["message"]
    assert call(guarded, "news-writer", "POST", "/api/libraries", {"name": "other"}).status == 403
    for path in ("pairs", "clusters", "map", "topics"):
        assert call(guarded, "news-reader", "POST", f"/api/{path}", {"library": "mail"}).status == 403, path
    assert call(guarded, "news-reader", "POST", "/api/pairs", {"library": "news"}).status == 200
    assert call(guarded, "news-writer", "POST", "/api/libraries/news/add", {"records": [{"text": "snow"}]}).status == 200
    assert call(guarded, "news-reader", "POST", "/api/libraries/news/add", {"records": [{"text": "snow"}]}).status == 403


def test_a_key_sees_its_libraries_and_the_jobs_of_those(guarded: Running) -> None:
    def names(key: str) -> list[str]:
        return [each["name"] for each in call(guarded, key, "GET", "/api/libraries").json["libraries"]]

    assert names("news-reader") == ["news"]
    assert names("reader") == ["mail", "news"]
    path = "/api/libraries/mail/upload?filename=a.txt"
    job = call(guarded, "writer", "POST", path, b"the rain\n").json["id"]
    assert call(guarded, "news-writer", "GET", f"/api/jobs/{job}").status == 403
    assert call(guarded, "news-writer", "DELETE", f"/api/jobs/{job}").status == 403
    assert call(guarded, "reader", "GET", f"/api/jobs/{job}").status == 200


def test_log_and_metrics_name_the_key_and_never_show_it(guarded: Running) -> None:
    assert guarded.get("/info", authorization="Bearer a-wrong-key-of-some-length").status == 401
    call(guarded, "news-reader", "GET", "/info")
    time.sleep(0.6)
    written = guarded.log.getvalue().decode()
    assert {"news-reader", None} <= {json.loads(line)["key"] for line in written.splitlines()}
    numbers = call(guarded, "boss", "GET", "/metrics").body.decode()
    assert 'munjang_key_requests_total{key="news-reader"}' in numbers
    for key in KEYS.values():
        assert key not in written + numbers
        assert key not in repr(KeyRing(key, None).find(key.encode()))


def test_one_key_keeps_working_beside_others(tmp_path: Path) -> None:
    file = tmp_path / "keys.json"
    file.write_text(json.dumps({"keys": [{"name": "web", "key": "k" * 16, "libraries": []}]}))
    ring = KeyRing("o" * 16, file)
    one, web = ring.find(b"o" * 16), ring.find(b"k" * 16)
    assert one is not None
    assert web is not None
    assert (one.right, one.libraries, web.right, web.libraries) == ("admin", None, "read", frozenset())
    assert ring.find(b"") is ring.find(b"k" * 15) is None
    assert check_settings(ServerSettings(host="0.0.0.0", keys_file=file)).keys_file == file


@pytest.mark.parametrize(
    ("content", "word"),
    [
        ("", "keys"),
        ("keys = []", "keys"),
        ("[[keys]\nsecret-secret-secret", "line 1"),
        ("[[keys]]\nname='a'\nkey='secret-secret-secret'\nright='read'", "is rights meant?"),
        ("[[keys]]\nname='a'\nkey='secret-secret-secret'\nrights='all'", "read, write, admin"),
        ("[[keys]]\nname='a'\nkey='secret'", "16"),
        ("[[keys]]\nname='a b'\nkey='secret-secret-secret'", "name"),
        ("[[keys]]\nname='a'", "either key or sha256"),
        ("[[keys]]\nname='a'\nkey='secret-secret-secret'\nsha256='0'", "either key or sha256"),
        ("[[keys]]\nname='a'\nsha256='secret'", "64"),
        ("[[keys]]\nname='a'\nkey='secret-secret-secret'\nlibraries='news'", "list of names"),
        ("[[keys]]\nname='a'\nkey='secret-secret-secret'\n[[keys]]\nname='a'\nkey='secret-secret-secret2'", "same name"),
        ("[[keys]]\nname='a'\nkey='secret-secret-secret'\n[[keys]]\nname='b'\nkey='secret-secret-secret'", "same key"),
    ],
    ids=range(13),
)
def test_a_bad_file_of_keys_is_refused_without_showing_one(tmp_path: Path, content: str, word: str) -> None:
    file = tmp_path / "keys.toml"
    file.write_text(content)
    with pytest.raises(InputError) as refused:
        KeyRing(None, file)
    assert word in str(refused.value)
    assert "secret" not in str(refused.value)
    with pytest.raises(InputError, match="cannot be read"):
        read_keys(tmp_path / "nothing")


def test_a_hangup_reads_the_keys_again_and_a_bad_file_changes_nothing(tiny_bert_folder: Path, tmp_path: Path) -> None:
    import http.client

    file = tmp_path / "keys.toml"
    file.write_text(f"[[keys]]\nname='a'\nkey='{'a' * 16}'")
    process, port = start(tiny_bert_folder, tmp_path, "--keys", str(file))

    def status(key: str) -> int:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        connection.request("GET", "/info", headers={"authorization": f"Bearer {key}"})
        found = connection.getresponse().status
        connection.close()
        return found

    def becomes(key: str, wanted: int) -> bool:
        end = time.monotonic() + 20
        while status(key) != wanted and time.monotonic() < end:
            time.sleep(0.05)
        return status(key) == wanted

    try:
        assert becomes("a" * 16, 200)
        assert status("b" * 16) == 401
        file.write_text(f"[[keys]]\nname='b'\nkey='{'b' * 16}'")
        os.kill(process.pid, signal.SIGHUP)
        assert becomes("b" * 16, 200)
        assert status("a" * 16) == 401
        file.write_text("keys = 5")
        os.kill(process.pid, signal.SIGHUP)
        time.sleep(0.5)
        assert status("b" * 16) == 200
    finally:
        process.terminate()
        assert process.wait(60) == 0
