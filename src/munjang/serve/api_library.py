"""Munjang's own routes for libraries: list, make, add, remove, search."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from munjang.library.copying import snapshot as copy_to_file
from munjang.library.library import Library
from munjang.library.results import Hit
from munjang.models.prompted_encoder import ROLE_PROMPTS, PromptedEncoder
from munjang.serve import api_upload
from munjang.serve.call import Call, Operation, Reply
from munjang.serve.errors import Refusal
from munjang.serve.inputs import check_texts
from munjang.serve.libraries import SUFFIX
from munjang.serve.library_schema import (
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
    facts,
    facts_of_all,
    hit_json,
)
from munjang.serve.prepare import Prepared, prepare_texts
from munjang.serve.schema import options_in
from munjang.serve.scoring import PassageScorer

SQLITE = "application/vnd.sqlite3"

LIKED = 100
"""Documents that a search may look near or away from."""


async def listing(call: Call, _body: None) -> Reply:
    """List all libraries and what may be done with them."""
    service = call.service

    def work() -> list[dict[str, Any]]:
        return facts_of_all((name, library) for name, library in service.libraries if call.key.may_see(name))

    found = await service.in_thread(call.request_work, work)
    read_only = service.settings.read_only
    return Reply(
        {
            "libraries": found,
            "read_only": read_only,
            "can_create": service.settings.data is not None and not read_only and call.key.right != "read",
        }
    )


async def one(call: Call, _body: None) -> Reply:
    """Describe one library."""
    return Reply(await _with_library(call, lambda library: facts(call.path["name"], library)))


async def create(call: Call, body: CreateRequest) -> Reply:
    """Make a library, with documents or without; where they are refused, nothing is left."""
    call.key.check("write", body.name)
    _writable(call)
    _check_count(call, body.records)
    libraries, model = call.service.libraries, call.encoder.name

    def work() -> dict[str, Any]:
        library = libraries.create(body.name, model=model, **options_in(body, Library.open))
        try:
            call.service.writes.add_in_turns(library, _incoming(body.records))
        except BaseException:
            libraries.forget(body.name)
            raise
        return facts(body.name, library)

    return Reply(await call.service.in_thread(call.request_work, work), status=201)


async def delete(call: Call, _body: None) -> Reply:
    """Delete a library that was made through the server."""
    _writable(call)
    name = call.path["name"]
    library = await _library(call)

    def work() -> dict[str, Any]:
        found = facts(name, library)
        call.service.libraries.forget(name)
        return found

    return Reply(await call.service.writes.change(call.request_work, library, work))


async def add(call: Call, body: AddRequest) -> Reply:
    """Add or replace documents; when this answers, they are on disk."""
    _writable(call)
    check_texts(call, body.records, field="records", limit=call.service.settings.limits.max_records)
    return Reply(await call.service.writes.add(call.request_work, await _library(call), _incoming(body.records)))


async def remove(call: Call, body: RemoveRequest) -> Reply:
    """Remove documents by their ids; unknown ids are passed over."""
    _writable(call)
    check_texts(call, body.ids, field="ids", limit=call.service.settings.limits.max_records)
    library = await _library(call)
    return Reply({"removed": await call.service.writes.change(call.request_work, library, lambda: library.remove(body.ids))})


async def snapshot(call: Call, _body: None) -> Reply:
    """Send a library as a file, as it was at one commit; what was acknowledged before the request is in it."""
    slot = call.service.take_snapshot_slot()
    folder = Path(tempfile.mkdtemp(dir=call.service.upload_folder()))
    file = folder / f"copy{SUFFIX}"

    def finish() -> None:
        shutil.rmtree(folder, ignore_errors=True)
        slot()

    try:
        await _with_library(call, lambda library: copy_to_file(library.store, file))
    except BaseException:
        finish()
        raise
    shown = "".join(letter if (letter.isascii() and letter.isalnum()) or letter in "._-" else "_" for letter in call.path["name"])
    headers = {"content-disposition": f'attachment; filename="{shown}{SUFFIX}"'}
    return Reply(None, headers=headers, media=SQLITE, file=file, finish=finish)


async def search(call: Call, body: SearchRequest) -> Reply:
    """Find documents by meaning and words, by one of them, or near others."""
    notes: list[str] = []
    options = body.search_options(notes)
    if len(options["like"]) + len(options["unlike"]) > LIKED:
        raise Refusal(422, f"like and unlike name more than {LIKED} documents, the limit", field="like")
    scorer = await _choose_scorer(call, body)
    start = time.perf_counter()

    def work(library: Library) -> tuple[list[Hit], Prepared | None]:
        hits = library.search(body.query, rerank=body.rerank if scorer is None else scorer, notes=notes, **options)
        encoder = library.query_encoder
        assert isinstance(encoder, PromptedEncoder)  # as every library of a server
        prompt_name = next((name for name in ROLE_PROMPTS["query"] if name in encoder.model.prompts), None)
        return hits, None if body.query is None else prepare_texts(encoder.model, [body.query], prompt_name=prompt_name)

    hits, prepared = await _with_library(call, work)
    if prepared is not None:
        call.note(texts=1, tokens=prepared.tokens, truncated=prepared.truncated)
    cut = bool(call.seen.truncated)
    took = round((time.perf_counter() - start) * 1000, 2)
    answer: dict[str, Any] = {"hits": [hit_json(hit) for hit in hits], "milliseconds": took, "query_truncated": cut, "warnings": notes}
    if scorer is not None and scorer.unfinished is not None:
        scored, candidates = scorer.unfinished
        answer["rerank_unfinished"] = {"scored": scored, "candidates": candidates}
    return Reply(answer, headers=call.truncation_headers())


async def _choose_scorer(call: Call, body: SearchRequest) -> PassageScorer | None:
    """Return the cross-encoder if one re-ranks: by name, or where one is served and the library keeps no token vectors."""
    if body.rerank is not True:
        return None
    if body.rerank_model is not None:
        return PassageScorer(call.service.find_cross_encoder(body.rerank_model))
    if not call.service.rerankers or await _with_library(call, lambda library: library.info().token_vectors is not None):
        return None
    return PassageScorer(call.service.find_cross_encoder(None))


async def _library(call: Call) -> Library:
    return await call.service.in_thread(call.request_work, lambda: call.service.libraries.get(call.path["name"]))


async def _with_library(call: Call, work: Callable[[Library], Any]) -> Any:
    return await call.service.in_thread(call.request_work, lambda: work(call.service.libraries.get(call.path["name"])))


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
    Operation("POST", "/api/libraries", "munjang", "Create a library.", create, CreateRequest, LibraryOut, right="write"),
    Operation("GET", _ONE, "munjang", "One library.", one, None, LibraryOut),
    Operation("DELETE", _ONE, "munjang", "Delete a library that was created here.", delete, None, LibraryOut, right="write"),
    Operation("POST", f"{_ONE}/add", "munjang", "Add or replace documents.", add, AddRequest, AddOut, right="write"),
    Operation("POST", f"{_ONE}/remove", "munjang", "Remove documents.", remove, RemoveRequest, RemoveOut, right="write"),
    Operation("POST", f"{_ONE}/search", "munjang", "Search.", search, SearchRequest, SearchOut, computes=True),
    Operation("GET", f"{_ONE}/snapshot", "munjang", "A copy of a library.", snapshot, media=SQLITE, right="write"),
    *api_upload.OPERATIONS,
)
