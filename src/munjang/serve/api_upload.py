"""Munjang's own routes for files: send one, and ask how far it has got.

The file is the request's body, as it is; its name in the query says the format, and what else the readers can be told stands there too.
All of it is read once before anything is added, so a broken line is told at once and the number of records is known; then it is added
batch by batch, and each batch is on disk.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePath
from typing import Any

from munjang.errors import MunjangError, shown
from munjang.library.incoming import documents
from munjang.library.library import Library
from munjang.library.store import Document
from munjang.serve.call import Call, Operation, Reply
from munjang.serve.jobs import Job
from munjang.serve.library_json import added
from munjang.serve.refusals import Refusal
from munjang.serve.schemas.library import JobOut, UploadQuery
from munjang.text.column_choice import OnGuess
from munjang.text.readers import read_texts
from munjang.text.records import Record

NAME_CHARACTERS = 100
"""Of a file's name that an error shows."""


async def upload(call: Call, _body: None) -> Reply:
    """Add a file to a library, which is made where there is none; answers with a job at once."""
    service, name = call.service, call.path["name"]
    if service.settings.read_only:
        raise Refusal(403, "this server is read-only")
    path, asked = call.upload, UploadQuery.model_validate(call.query, strict=False)
    assert path is not None

    def work(job: Job) -> dict[str, Any]:
        guessed: dict[str, None] = {}

        def records() -> Iterator[Record]:
            return _records(path, asked, on_guess=lambda column: guessed.update({column: None}))

        with _named(path, asked.filename):
            job.total = _count(documents(records()), job)
            library = _library(call, name)
            report = library.add(records(), progress=job.advance)
        return {**added(library, report), "guessed_text_column": next(iter(guessed), None)}

    started = service.jobs.start("upload", name, work, clean_up=lambda: path.unlink(missing_ok=True))
    return Reply(started.as_json(), status=202)


async def job(call: Call, _body: None) -> Reply:
    """Say how far a job has got."""
    return Reply(call.service.jobs.get(call.path["id"]).as_json())


async def stop(call: Call, _body: None) -> Reply:
    """Stop a job at its next step; what is on disk stays."""
    found = call.service.jobs.get(call.path["id"])
    found.errand.drop()
    return Reply(found.as_json())


def _records(path: Path, asked: UploadQuery, *, on_guess: OnGuess) -> Iterator[Record]:
    return read_texts(
        path,
        text_column=asked.text_column,
        id_column=asked.id_column,
        encoding=asked.encoding,
        delimiter=asked.delimiter,
        header=asked.header,
        quoting=asked.quoting,
        on_guess=on_guess,
    )


@contextmanager
def _named(path: Path, filename: str) -> Iterator[None]:
    """Let an error name the client's file, not the one that holds its bytes here."""
    try:
        yield
    except MunjangError as error:
        plain = PurePath(filename.replace("\\", "/")).name
        told = plain if plain.isprintable() and len(plain) <= NAME_CHARACTERS else shown(plain, NAME_CHARACTERS)
        raise Refusal(error.http_status, str(error).replace(str(path), told).replace(path.name, told)) from error


def _count(found: Iterator[Document], job: Job) -> int:
    """Return how many documents a file holds; one that cannot be taken is told before a library is made for it."""
    count = 0
    for _ in found:
        count += 1
        job.advance(0)
    if not count:
        raise Refusal(422, "the file holds no texts")
    return count


def _library(call: Call, name: str) -> Library:
    try:
        return call.service.libraries.get(name)
    except Refusal:
        return call.service.libraries.create(name)


OPERATIONS = (
    Operation(
        "POST", "/api/libraries/{name}/upload", "munjang", "Add a file's records.", upload, None, JobOut, query=UploadQuery, uploads=True
    ),
    Operation("GET", "/api/jobs/{id}", "munjang", "How far a job has got.", job, None, JobOut),
    Operation("DELETE", "/api/jobs/{id}", "munjang", "Stop a job.", stop, None, JobOut),
)
