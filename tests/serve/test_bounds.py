"""What is too large, too many or not there is refused with the bound that was met, and what to do."""

from __future__ import annotations

import http.client
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.serve.conftest import LIMITS, Running, running
from tests.serve.test_library_api import finished

from munjang import CrossEncoder, SentenceEncoder
from munjang.errors import UsageError
from munjang.serve.settings import ServerSettings

SMALL = replace(LIMITS, max_matrix_cells=4, max_analysed_texts=2, max_upload_bytes=100, max_held_bytes=2_000)
LONG = "sleep " * 60


@pytest.fixture(scope="module")
def small(model: SentenceEncoder, reranker: CrossEncoder, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A server with very small bounds, a library of three documents and an empty one."""
    settings = ServerSettings(data=tmp_path_factory.mktemp("libraries"), analyser="bigrams", limits=SMALL)
    with running(settings, model, reranker) as started:
        assert started.post("/api/libraries", {"name": "three", "records": [{"text": text} for text in ("a", "b", "c")]}).status == 201
        assert started.post("/api/libraries", {"name": "empty"}).status == 201
        yield started


@pytest.mark.parametrize(
    ("path", "body", "status", "message", "field"),
    [
        ("/api/similarity", {"a": ["cat", "dog", "sun"]}, 413, "3 × 3 scores, the limit is 4", "a"),
        ("/api/similarity", {"a": ["cat"], "b": ["a"] * 5}, 413, "1 × 5 scores, the limit is 4", "a"),
        ("/api/pairs", {"library": "three"}, 413, "the library holds 3 documents, the limit of an analysis is 2", "library"),
        ("/api/pairs", {"library": "empty"}, 422, "the library is empty", "library"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_an_analysis_beyond_its_bound_is_refused(small: Running, path: str, body: Any, status: int, message: str, field: str) -> None:
    answer = small.post(path, body)
    assert (answer.status, answer.json["error"]["message"], answer.json["error"]["field"]) == (status, message, field)


@pytest.mark.parametrize(
    ("path", "body", "status", "message"),
    [
        ("/embed_all", {"inputs": "cat", "prompt_name": "none"}, 422, "prompt_name: the model has no such prompt"),
        ("/tokenize", {"inputs": "cat", "prompt_name": "none"}, 422, "prompt_name: the model has no such prompt"),
        ("/embed_all", {"inputs": ["cat", LONG], "truncate": False}, 422, "text 1 has 62 tokens, the model's limit is 24"),
        (
            "/predict",
            {"inputs": [["cat", "dog"], ["cat", LONG]], "truncate": False},
            422,
            "text 1 and the query have more than 48 tokens together, the model's limit",
        ),
    ],
    ids=["embed_all prompt", "tokenize prompt", "embed_all long", "predict long"],
)
def test_what_the_model_cannot_do_is_refused_in_teis_shape(small: Running, path: str, body: Any, status: int, message: str) -> None:
    answer = small.post(path, body)
    assert (answer.status, answer.json["error"]) == (status, message)


def test_a_pair_that_is_cut_is_named_in_a_header(small: Running) -> None:
    answer = small.post("/predict", {"inputs": [["cat", "dog"], ["cat", LONG]]})
    assert answer.status == 200
    assert answer.headers["x-munjang-truncated"] == "1"


def test_bodies_that_together_are_too_much_are_refused_for_now(small: Running) -> None:
    answer = small.post("/embed", {"inputs": "x" * 3_000})
    assert answer.status == 429
    assert answer.headers["retry-after"] == "1"
    assert answer.json["error"] == "bodies of 0 bytes are in memory, the limit is 2,000\n  try again in 1 s"
    assert small.post("/embed", {"inputs": "cat"}).status == 200


@pytest.mark.parametrize("told", ["content-length", "chunked", "expect"])
def test_a_file_that_is_too_large_is_refused_and_leaves_nothing(small: Running, told: str) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", small.port, timeout=30)
    body = iter([b"the cat\n"] * 20) if told == "chunked" else b"the cat\n" * 20 if told == "content-length" else None
    headers = {"expect": "100-continue", "content-length": "160"} if told == "expect" else {}
    connection.request("POST", "/api/libraries/cats/upload?filename=a.txt", body, headers, encode_chunked=told == "chunked")
    response = connection.getresponse()
    assert response.status == 413
    assert b"the file is larger than 100 bytes, the limit" in response.read()
    connection.close()
    assert not list(small.service.upload_folder().iterdir())


def test_a_file_without_texts_fails_and_says_so(small: Running) -> None:
    job = finished(small, small.call("POST", "/api/libraries/cats/upload?filename=a.txt", b"\n \n"))
    assert (job["state"], job["error"]) == ("failed", "the file holds no texts")
    assert small.get("/api/libraries/cats").status == 404


def test_a_server_without_a_cross_encoder_or_a_folder_says_how_to_start_it(model: SentenceEncoder) -> None:
    with running(ServerSettings(limits=LIMITS), model) as bare:
        labelled = bare.post("/predict", {"inputs": "cat"})
        assert labelled.status == 424
        assert labelled.json["error"] == "no cross-encoder is served\n  start the server with --reranker"
        made = bare.post("/api/libraries", {"name": "new"})
        assert made.status == 403
        assert made.json["error"]["message"] == "this server keeps no new libraries\n  start it with --data FOLDER"


def test_a_bug_of_ours_is_told_to_the_log_and_not_to_the_client(
    small: Running, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def broken(name: str) -> None:
        raise RuntimeError(f"no {name} of secret")

    monkeypatch.setattr(small.service.libraries, "get", broken)
    answer = small.get("/api/libraries/three")
    assert answer.status == 500
    assert answer.json["error"]["message"] == "internal error; the server's log says which"
    written = capfd.readouterr().err
    assert re.match(r"munjang: internal error in request [0-9a-f]{32}: RuntimeError\n", written)
    assert "in broken" in written
    assert "secret" not in written.partition("\n")[0]


def test_libraries_of_one_name_are_refused_and_odd_files_are_passed_over(model: SentenceEncoder, tmp_path: Path) -> None:
    from munjang.library.library import Library
    from munjang.serve.libraries import Libraries

    for place in ("a/news.db", "b/news.db", "b/-odd.db", "b/fine.db"):
        (tmp_path / place).parent.mkdir(exist_ok=True)
        Library.open(tmp_path / place, model, analyser="bigrams").close()
    (tmp_path / "b" / "broken.db").write_bytes(b"no SQLite file at all" * 50)
    given = str(tmp_path / "a" / "news.db")
    served = Libraries([model], [given], tmp_path / "b", scratch=tmp_path)
    assert {name: str(library.store.path) for name, library in served} == {"fine": str(tmp_path / "b" / "fine.db"), "news": given}
    assert ["broken.db" in reason for reason in served.skipped] == [True]
    served.close()
    with pytest.raises(UsageError, match=r"news\.db: there is a library named 'news' already\n  rename one of the files"):
        Libraries([model], [given, str(tmp_path / "b" / "news.db")], None, scratch=tmp_path)


def test_a_library_that_is_deleted_takes_its_prepared_files_along(server: Running) -> None:
    assert server.post("/api/libraries", {"name": "gone", "records": [{"text": "the cat"}]}).status == 201
    folder = server.service.libraries.get("gone").store.path.parent
    (folder / "gone.db.cache").mkdir(exist_ok=True)
    (folder / "gone.db.cache" / "vectors.cache").write_bytes(b"prepared")
    assert server.call("DELETE", "/api/libraries/gone").status == 200
    assert not list(folder.glob("gone*"))
