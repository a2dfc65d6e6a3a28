"""Files that clients send: what may be said about them, and whose name an error holds."""

from __future__ import annotations

import gzip
from urllib.parse import quote

import pytest
from tests.serve.conftest import Running
from tests.serve.test_library_api import finished

KOREAN = "번호,본문\n1,비가 많이 온다\n2,고양이가 잔다\n"


@pytest.mark.parametrize(
    ("filename", "named"),
    [
        ("뉴스.csv", "뉴스.csv line 1"),
        ("C:\\files\\a.csv", "a.csv line 1"),
        ("a\nb.csv", "'a\\nb.csv' line 1"),
        ("a" * 300 + ".csv", "aaa…' line 1"),
    ],
    ids=["Korean", "a path", "a line feed", "very long"],
)
def test_an_error_names_the_clients_file_and_not_ours(server: Running, filename: str, named: str) -> None:
    job = finished(server, server.call("POST", f"/api/libraries/korean/upload?filename={quote(filename)}", KOREAN.encode("cp949")))
    assert job["state"] == "failed"
    assert named in job["error"]
    assert "encoding" in job["error"]
    assert "tmp" not in job["error"]


def test_a_gzip_file_that_is_none_is_named_as_the_client_names_it(server: Running) -> None:
    job = finished(server, server.call("POST", "/api/libraries/korean/upload?filename=a.txt.gz", b"no gzip"))
    assert job["error"].startswith("a.txt.gz: ")


def test_a_file_in_another_encoding_is_read_when_the_client_names_it(server: Running) -> None:
    path = "/api/libraries/cp949/upload?filename=a.csv.gz&encoding=cp949&text_column=" + quote("본문") + "&id_column=" + quote("번호")
    job = finished(server, server.call("POST", path, gzip.compress(KOREAN.encode("cp949"))))
    assert job["state"] == "done", job
    hits = server.post("/api/libraries/cp949/search", {"query": "비가 많이 온다"}).json["hits"]
    assert hits[0]["text"] == "비가 많이 온다"


def test_delimiter_header_and_quotes_are_as_the_client_says(server: Running) -> None:
    path = "/api/libraries/laid/upload?filename=a.csv&delimiter=%3B&header=false&quoting=false&text_column=1&id_column=0"
    job = finished(server, server.call("POST", path, b'id;"rain, and snow"\nb;the cat\n'))
    assert job["state"] == "done", job
    assert job["result"]["documents"] == 2
    found = server.post("/api/libraries/laid/search", {"query": "rain"}).json["hits"]
    assert {(hit["id"], hit["text"]) for hit in found} == {("id", '"rain, and snow"'), ("b", "the cat")}


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("encoding=klingon", "encoding"),
        ("encoding=utf-16", "encoding"),
        ("encoding=", "encoding"),
        ("delimiter=", "delimiter"),
        ("delimiter=%22", "delimiter"),
        ("delimiter=ab", "delimiter"),
        ("header=perhaps", "header"),
        ("quoting=7", "quoting"),
    ],
)
def test_an_option_that_cannot_be_is_refused_before_the_file_is_read(server: Running, query: str, field: str) -> None:
    answer = server.call("POST", f"/api/libraries/broken/upload?filename=a.csv&{query}", b"text\ncat\n")
    assert (answer.status, answer.json["error"]["field"]) == (422, field)
    assert server.get("/api/libraries/broken").status == 404


def test_a_first_record_without_a_text_is_named_and_no_library_is_made(server: Running) -> None:
    body = b'{"id": "x"}\n{"id": "a", "sentence": "rain"}\n{"id": "b", "sentence": "snow"}\n'
    job = finished(server, server.call("POST", "/api/libraries/textless/upload?filename=a.jsonl", body))
    assert (job["state"], job["error"]) == ("failed", "a.jsonl line 1: no column 'sentence', found 'id'")
    assert server.get("/api/libraries/textless").status == 404


def test_a_text_that_no_library_takes_is_named_before_one_is_made(server: Running) -> None:
    job = finished(server, server.call("POST", "/api/libraries/blank/upload?filename=a.jsonl", b'{"text": "rain"}\n{"text": "  "}\n'))
    assert job["state"] == "failed"
    assert "a.jsonl line 2: the text is empty" in job["error"]
    assert server.get("/api/libraries/blank").status == 404


def test_a_column_that_was_guessed_is_told(server: Running) -> None:
    path = "/api/libraries/guessed/upload?filename=a.csv"
    job = finished(server, server.call("POST", path, b"title,body\na day,it rained\n"))
    assert job["result"]["guessed_text_column"] == "body", job
    job = finished(server, server.call("POST", path + "&text_column=title", b"title,body\na day,it rained\n"))
    assert job["result"]["guessed_text_column"] is None, job
