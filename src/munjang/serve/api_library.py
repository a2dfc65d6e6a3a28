"""Munjang's own routes for libraries: list, make, add, remove, search."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from munjang.library.hits import Hit
from munjang.library.library import Library
from munjang.serve import api_upload
from munjang.serve.call import Call, Operation, Reply
from munjang.serve.inputs import check_texts
from munjang.serve.library_json import added, facts, facts_of_all, hit_json
from munjang.serve.prepare import prepare_texts
from munjang.serve.refusals import Refusal
from munjang.serve.schemas.library import (
    AddOut,
    AddRequest,
    CreateRequest,
    LibraryList,
    LibraryOut,
    RecordIn,
    RemoveOut,
    RemoveRequest,
    SearchOut,
    SearchRequest,
)
from munjang.serve.scoring import PassageScorer

LIKED = 100
"""Documents that a search may look near or away from."""


async def listing(call: Call, _body: None) -> Reply:
    """List all libraries and what may be done with them."""
    service = call.service
    found = await service.in_thread(call.errand, lambda: facts_of_all(service.libraries))
    read_only = service.settings.read_only
    return Reply(
        {
            "libraries": found,
            "read_only": read_only,
            "can_create": service.settings.data is not None and not read_only,
            "can_rerank": service.has_reranker,
        }
    )


async def one(call: Call, _body: None) -> Reply:
    """Describe one library."""
    return Reply(await _with_library(call, lambda library: facts(call.path["name"], library)))


async def create(call: Call, body: CreateRequest) -> Reply:
    """Make a library, with documents or without; where they are refused, nothing is left."""
    _writable(call)
    _check_count(call, body.records)
    libraries = call.service.libraries

    def work() -> dict[str, Any]:
        library = libraries.create(body.name, passage_characters=body.passage_characters)
        try:
            library.add(_incoming(body.records))
        except BaseException:
            libraries.forget(body.name)
            raise
        return facts(body.name, library)

    return Reply(await call.service.in_thread(call.errand, work), status=201)


async def delete(call: Call, _body: None) -> Reply:
    """Delete a library that was made through the server."""
    _writable(call)
    name = call.path["name"]
    found = await _with_library(call, lambda library: facts(name, library))
    await call.service.in_thread(call.errand, lambda: call.service.libraries.forget(name))
    return Reply(found)


async def add(call: Call, body: AddRequest) -> Reply:
    """Add or replace documents; when this answers, they are on disk."""
    _writable(call)
    check_texts(call, body.records, field="records", limit=call.service.settings.limits.max_records)

    def work(library: Library) -> dict[str, Any]:
        return added(library, library.add(_incoming(body.records)))

    return Reply(await _with_library(call, work))


async def remove(call: Call, body: RemoveRequest) -> Reply:
    """Remove documents by their ids; unknown ids are passed over."""
    _writable(call)
    check_texts(call, body.ids, field="ids", limit=call.service.settings.limits.max_records)
    return Reply({"removed": await _with_library(call, lambda library: library.remove(body.ids))})


async def search(call: Call, body: SearchRequest) -> Reply:
    """Find documents by meaning, by words, or near others."""
    if len(body.like) + len(body.unlike) > LIKED:
        raise Refusal(422, f"like and unlike name more than {LIKED} documents, the limit", field="like")
    scorer = PassageScorer(call.service.reranker) if body.rerank else None
    start = time.perf_counter()

    notes: list[str] = []

    def work(library: Library) -> list[Hit]:
        return library.search(
            body.query,
            body.k,
            where=body.where,
            hybrid=body.hybrid,
            rerank=scorer,
            rerank_share=body.rerank_share,
            exact=body.exact,
            like=body.like,
            unlike=body.unlike,
            min_score=body.min_score,
            explain=body.explain,
            budget_seconds=body.budget_seconds,
            strict=body.strict,
            notes=notes,
        )

    hits = await _with_library(call, work)
    cut = False
    if body.query is not None:
        prepared = prepare_texts(call.service.encoder, [body.query])
        call.note(texts=1, tokens=prepared.tokens, truncated=prepared.truncated)
        cut = bool(prepared.truncated)
    took = round((time.perf_counter() - start) * 1000, 2)
    answer: dict[str, Any] = {"hits": [hit_json(hit) for hit in hits], "milliseconds": took, "query_truncated": cut, "warnings": notes}
    if scorer is not None and scorer.unfinished is not None:
        scored, candidates = scorer.unfinished
        answer["rerank_unfinished"] = {"scored": scored, "candidates": candidates}
    return Reply(answer, headers=call.truncation_headers())


async def _with_library(call: Call, work: Callable[[Library], Any]) -> Any:
    return await call.service.in_thread(call.errand, lambda: work(call.service.libraries.get(call.path["name"])))


def _writable(call: Call) -> None:
    if call.service.settings.read_only:
        raise Refusal(403, "this server is read-only")


def _check_count(call: Call, records: list[RecordIn]) -> None:
    if records:
        check_texts(call, records, field="records", limit=call.service.settings.limits.max_records)


def _incoming(records: list[RecordIn]) -> list[dict[str, Any]]:
    return [{"id": each.id, "text": each.text, "metadata": each.metadata} for each in records]


_ONE = "/api/libraries/{name}"

OPERATIONS = (
    Operation("GET", "/api/libraries", "munjang", "All libraries.", listing, None, LibraryList),
    Operation("POST", "/api/libraries", "munjang", "Make a library.", create, CreateRequest, LibraryOut),
    Operation("GET", _ONE, "munjang", "One library.", one, None, LibraryOut),
    Operation("DELETE", _ONE, "munjang", "Delete a library that was made here.", delete, None, LibraryOut),
    Operation("POST", f"{_ONE}/add", "munjang", "Add or replace documents.", add, AddRequest, AddOut),
    Operation("POST", f"{_ONE}/remove", "munjang", "Remove documents.", remove, RemoveRequest, RemoveOut),
    Operation("POST", f"{_ONE}/search", "munjang", "Search.", search, SearchRequest, SearchOut, computes=True),
    *api_upload.OPERATIONS,
)
