"""Munjang's own routes for libraries: the answers are those of the library itself."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
from tests.serve.conftest import LIMITS, Answer, Running, running

from munjang import CrossEncoder, SentenceEncoder
from munjang.library.library import Library
from munjang.serve.settings import ServerSettings

RECORDS = [
    {"id": "rain", "text": "the rain is in the river", "metadata": {"year": 2020, "kind": "weather"}},
    {"id": "snow", "text": "winter snow was on the train", "metadata": {"year": 2021, "kind": "weather"}},
    {"id": "cat", "text": "the cat is sleeping on the book", "metadata": {"year": 2022, "kind": "pets"}},
    {"id": "비", "text": "비가 많이 온다", "metadata": {"year": 2023, "kind": "weather"}},
]
NEWS = "/api/libraries/news"


@pytest.fixture(scope="module", autouse=True)
def news(server: Running) -> None:
    assert server.get("/api/libraries").json["libraries"][0]["sample"] is True
    made = server.post("/api/libraries", {"name": "news", "records": RECORDS})
    assert made.status == 201
    assert made.json["documents"] == 4


def finished(server: Running, answer: Answer) -> Any:
    assert answer.status == 202, answer.body
    end = time.monotonic() + 30
    while True:
        job = server.get(f"/api/jobs/{answer.json['id']}").json
        if job["state"] not in ("waiting", "running"):
            return job
        assert time.monotonic() < end
        time.sleep(0.02)


def test_libraries_are_listed_without_their_paths(server: Running) -> None:
    listed = server.get("/api/libraries")
    assert "news" in [each["name"] for each in listed.json["libraries"]]
    assert listed.json["can_create"] is True
    assert str(server.service.settings.data) not in listed.body.decode()


@pytest.mark.parametrize(
    "options",
    [
        {"query": "winter snow"},
        {"query": "winter snow", "explain": True},
        {"query": "비가", "k": 2, "where": "year >= 2021"},
        {"query": "the rain", "rerank": True},
        {"query": "the rain", "rerank": True, "rerank_share": 0.2},
        {"like": ["rain"], "unlike": ["cat"]},
        {"query": "the rain", "like": ["snow"], "exact": True, "min_score": 0.1},
    ],
    ids=str,
)
def test_search_answers_as_the_library_does(
    server: Running, model: SentenceEncoder, reranker: CrossEncoder, tmp_path: Path, options: dict[str, Any]
) -> None:
    answer = server.post(f"{NEWS}/search", options).json
    asked = dict(options)
    scorer = reranker if asked.pop("rerank", False) else None
    with Library.open(tmp_path / "same.db", model, analyser="bigrams") as same:
        same.add(RECORDS)
        expected = same.search(asked.pop("query", None), asked.pop("k", 10), rerank=scorer, **asked)
    assert [hit["id"] for hit in answer["hits"]] == [hit.id for hit in expected]
    assert [hit["score"] for hit in answer["hits"]] == pytest.approx([hit.score for hit in expected], abs=1e-5)
    assert [hit["metadata"] for hit in answer["hits"]] == [hit.metadata for hit in expected]
    assert ("explanation" in answer["hits"][0]) == bool(options.get("explain"))


def test_a_budget_that_is_up_is_said_in_the_answer(server: Running) -> None:
    asked = {"query": "the rain", "rerank": True}
    late = server.post(f"{NEWS}/search", {**asked, "budget_seconds": 0}).json
    assert late["rerank_unfinished"] == {"scored": 0, "candidates": 4}
    assert [hit["reranked"] for hit in late["hits"]] == [False] * 4
    assert [hit["id"] for hit in late["hits"]] == [hit["id"] for hit in server.post(f"{NEWS}/search", {"query": "the rain"}).json["hits"]]
    done = server.post(f"{NEWS}/search", {**asked, "budget_seconds": 60}).json
    assert "rerank_unfinished" not in done
    assert all(hit["reranked"] for hit in done["hits"])


def test_a_long_query_is_said_to_be_cut(server: Running) -> None:
    for rerank in (False, True):
        answer = server.post(f"{NEWS}/search", {"query": "sleep " * 60, "rerank": rerank})
        assert answer.json["query_truncated"] is True
        assert answer.headers["x-munjang-truncated"] == "0"


def test_a_key_that_no_document_has_is_named_not_passed_over(server: Running) -> None:
    asked = {"query": "the rain", "where": "yaer >= 2020"}
    answer = server.post(f"{NEWS}/search", asked).json
    assert (answer["hits"], answer["warnings"]) == ([], ["no document has the metadata key 'yaer'; did you mean 'year'?"])
    assert server.post(f"{NEWS}/search", {**asked, "where": "year >= 2020"}).json["warnings"] == []
    refused = server.post(f"{NEWS}/search", {**asked, "strict": True})
    assert refused.status == 400
    assert "did you mean 'year'?" in refused.body.decode()
    assert str(server.service.settings.data) not in refused.body.decode()


def test_documents_are_added_replaced_and_removed(server: Running) -> None:
    server.post("/api/libraries", {"name": "change"})
    report = server.post("/api/libraries/change/add", {"records": [{"id": "a", "text": "cat"}, {"id": 7, "text": "dog"}]}).json
    assert (report["added"], report["documents"]) == (2, 2)
    assert server.post("/api/libraries/change/add", {"records": [{"id": "a", "text": "book"}]}).json["changed"] == 1
    assert server.post("/api/libraries/change/remove", {"ids": ["a", "nobody"]}).json == {"removed": 1}
    assert [hit["id"] for hit in server.post("/api/libraries/change/search", {"query": "cat"}).json["hits"]] == ["7"]
    assert server.call("DELETE", "/api/libraries/change").status == 200
    assert server.get("/api/libraries/change").status == 404


def test_a_file_becomes_a_library_and_tells_how_far_it_is(server: Running) -> None:
    rows = "id,text,year\n" + "".join(f"{number},the cat was on train {number},20{number % 100:02d}\n" for number in range(700))
    job = finished(server, server.call("POST", "/api/libraries/trains/upload?filename=trains.csv", rows.encode()))
    assert job["state"] == "done", job
    assert (job["done"], job["total"], job["result"]["documents"]) == (700, 700, 700)
    hit = server.post("/api/libraries/trains/search", {"query": "train", "where": "year = '2003'"}).json["hits"][0]
    assert hit["metadata"] == {"year": "2003"}
    again = finished(server, server.call("POST", "/api/libraries/trains/upload?filename=more.txt", b"the dog\nthe sun\n"))
    assert again["result"]["added"] == 2
    assert not list(server.service.upload_folder().glob("*.csv"))


@pytest.mark.parametrize(
    ("query", "body", "status"),
    [
        ("filename=a.exe", b"x", 422),
        ("", b"x", 422),
        ("filename=a.csv", b"", 400),
        ("filename=a.csv&filename=b.csv", b"x", 400),
        ("filename=a.csv&colour=red", b"x", 422),
    ],
    ids=str,
)
def test_an_upload_that_cannot_be_read_is_refused(server: Running, query: str, body: bytes, status: int) -> None:
    assert server.call("POST", f"/api/libraries/broken/upload?{query}", body).status == status


@pytest.mark.parametrize(
    ("name", "body"),
    [
        ("a.jsonl", b'{"text": 1}\n'),
        ("a.csv", b"x,y\n1,2\n"),
        ("a.parquet", b"no parquet"),
        ("a.txt.gz", b"no gzip"),
        ("a.txt", b"\xff\xfe"),
    ],
    ids=str,
)
def test_a_broken_file_fails_and_leaves_no_library(server: Running, name: str, body: bytes) -> None:
    job = finished(server, server.call("POST", f"/api/libraries/broken/upload?filename={name}", body))
    assert job["state"] == "failed"
    assert job["error"]
    assert "internal" not in job["error"]
    assert server.get("/api/libraries/broken").status == 404


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("/api/libraries", {"name": "news"}, 409),
        ("/api/libraries", {"name": "../evil"}, 422),
        ("/api/libraries", {"name": "a/b"}, 422),
        ("/api/libraries", {"name": ""}, 422),
        ("/api/libraries", {"name": "𐐀" * 64}, 422),
        ("/api/libraries", {"name": "x", "records": [{"text": " "}]}, 422),
        ("/api/libraries", {"name": "x", "colour": "red"}, 422),
        (f"{NEWS}/search", {}, 400),
        (f"{NEWS}/search", {"query": " "}, 400),
        (f"{NEWS}/search", {"query": "a", "k": 0}, 422),
        (f"{NEWS}/search", {"query": "a", "k": 10**6}, 422),
        (f"{NEWS}/search", {"query": "a", "where": "year >"}, 400),
        (f"{NEWS}/search", {"query": "a", "like": ["x"] * 101}, 422),
        (f"{NEWS}/add", {"records": []}, 400),
        (f"{NEWS}/remove", {"ids": []}, 400),
        ("/api/libraries/nothing/search", {"query": "a"}, 404),
    ],
    ids=str,
)
def test_what_is_wrong_is_refused_in_our_shape(server: Running, path: str, body: Any, status: int) -> None:
    answer = server.post(path, body)
    assert answer.status == status, answer.body
    assert set(answer.json["error"]) == {"message", "code", "field"}
    assert server.get("/api/libraries/x").status == 404


def test_a_read_only_server_changes_nothing(model: SentenceEncoder, tmp_path: Path) -> None:
    with Library.open(tmp_path / "kept.db", model, analyser="bigrams") as made:
        made.add(RECORDS)
    settings = ServerSettings(data=tmp_path / "data", read_only=True, limits=LIMITS, analyser="bigrams")
    with running(settings, model, libraries=(str(tmp_path / "kept.db"),)) as server:
        assert [each["name"] for each in server.get("/api/libraries").json["libraries"]] == ["kept"]
        assert server.post("/api/libraries/kept/search", {"query": "rain"}).status == 200
        for path, body in (
            ("/api/libraries", {"name": "new"}),
            ("/api/libraries/kept/add", {"records": RECORDS}),
            ("/api/libraries/kept/remove", {"ids": ["rain"]}),
            ("/api/libraries/kept/upload?filename=a.txt", b"x"),
        ):
            assert server.post(path, body).status == 403, path
        assert server.call("DELETE", "/api/libraries/kept").status == 403


def test_a_library_that_was_not_made_here_is_not_deleted(model: SentenceEncoder, tmp_path: Path) -> None:
    with Library.open(tmp_path / "kept.db", model, analyser="bigrams") as made:
        made.add(RECORDS)
    with running(ServerSettings(data=tmp_path / "data", limits=LIMITS), model, libraries=(str(tmp_path / "kept.db"),)) as server:
        assert server.call("DELETE", "/api/libraries/kept").status == 403
    assert (tmp_path / "kept.db").is_file()


def test_libraries_that_clients_made_are_there_after_a_restart(model: SentenceEncoder, tmp_path: Path) -> None:
    settings = ServerSettings(data=tmp_path / "data", limits=LIMITS, analyser="bigrams")
    with running(settings, model) as first:
        assert first.post("/api/libraries", {"name": "lasting", "records": RECORDS}).status == 201
    with running(settings, model) as second:
        assert second.get("/api/libraries/lasting").json["documents"] == 4


def test_a_library_whose_file_is_replaced_or_gone_is_told_so(model: SentenceEncoder, tmp_path: Path) -> None:
    for name, records in (("kept", RECORDS[:2]), ("new", RECORDS[2:])):
        with Library.open(tmp_path / f"{name}.db", model, analyser="bigrams") as made:
            made.add(records)
    settings = ServerSettings(data=tmp_path / "data", limits=LIMITS, analyser="bigrams")
    with running(settings, model, libraries=(str(tmp_path / "kept.db"),)) as server:
        assert server.post("/api/libraries/kept/add", {"records": [{"id": "x", "text": "the sun"}]}).status == 200
        (tmp_path / "new.db").replace(tmp_path / "kept.db")
        for route, body in (("search", {"query": "rain"}), ("add", {"records": [{"id": "y", "text": "the sun"}]})):
            answer = server.post(f"/api/libraries/kept/{route}", body)
            assert (answer.status, "another file was put in the library's place" in answer.json["error"]["message"]) == (503, True)
        assert server.get("/api/libraries").json["libraries"] == []
        (tmp_path / "kept.db").unlink()
        gone = server.post("/api/libraries/kept/search", {"query": "rain"})
        assert (gone.status, "file is gone" in gone.json["error"]["message"]) == (404, True)


def test_the_name_of_a_library_whose_file_is_gone_is_free_again(model: SentenceEncoder, tmp_path: Path) -> None:
    with running(ServerSettings(data=tmp_path / "data", limits=LIMITS, analyser="bigrams"), model) as server:
        assert server.post("/api/libraries", {"name": "lost", "records": RECORDS}).status == 201
        (tmp_path / "data/lost.db").unlink()
        assert server.get("/api/libraries/lost").status == 404
        assert server.post("/api/libraries", {"name": "lost", "records": RECORDS[:1]}).status == 201
        assert server.get("/api/libraries/lost").json["documents"] == 1


def test_a_library_with_token_vectors_re_ranks_by_them(server: Running) -> None:
    made = server.post("/api/libraries", {"name": "late", "records": RECORDS, "token_vectors": "1bit"})
    assert made.json["token_vectors"] == "1bit"
    search = "/api/libraries/late/search"
    found = server.post(search, {"query": "winter snow", "explain": True}).json["hits"]
    assert {hit["scored_by"] for hit in found} == {"late"}
    assert [match["query"] for match in found[0]["explanation"]["matches"]] == ["winter", "snow"]
    for choice in ("late", True):
        again = server.post(search, {"query": "winter snow", "rerank": choice}).json["hits"]
        assert [hit["id"] for hit in again] == [hit["id"] for hit in found]
    assert server.post(search, {"query": "winter snow", "rerank": False}).json["hits"][0]["scored_by"] == "meaning and words"
    assert server.post(search, {"query": "winter snow", "rerank": False, "by": "meaning"}).json["hits"][0]["scored_by"] == "meaning"
    old = server.post(search, {"query": "winter snow", "hybrid": False}).json
    assert "deprecated" in old["warnings"][0]
    made_now = server.post(f"{NEWS}/search", {"query": "winter snow", "rerank": "late"})
    assert {hit["scored_by"] for hit in made_now.json["hits"]} == {"late"}
