"""Munjang's own routes for files: send one, and ask how far it has got.

The file is the request's body, as it is; its name in the query says the format, and what else the readers can be told stands there too.
A process of its own reads it (`upload_reader`), once to its end before anything is added, so a broken line is told at once and the number
of records is known; then it is added batch by batch, and each batch is on disk.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePath
from typing import Any

from munjang.errors import MunjangError, quote
from munjang.library.library import Library
from munjang.serve.call import Call, Operation, Reply
from munjang.serve.errors import Refusal
from munjang.serve.jobs import Job
from munjang.serve.library_schema import JobOut, UploadQuery, describe_added
from munjang.serve.upload_reader import ReadOrder, UploadReader

NAME_CHARACTERS = 100
"""Of a file's name that an error shows."""


async def upload(call: Call, _body: None) -> Reply:
    """Add a file to a library, which is made where there is none; answers with a job at once."""
    service, name = call.service, call.path["name"]
    if service.settings.read_only:
        raise Refusal(403, "this server is read-only")
    path, asked = call.upload, UploadQuery.model_validate(call.query, strict=False)
    assert path is not None
    model = service.find_encoder(asked.model).name

    limits = service.settings.limits
    order = ReadOrder(
        str(path),
        **asked.model_dump(exclude={"filename", "model"}),
        memory_bytes=limits.upload_memory_bytes,
        cpu_seconds=limits.upload_cpu_seconds,
        unpacked_bytes=limits.max_unpacked_bytes,
    )

    def work(job: Job) -> dict[str, Any]:
        job.request_work.client = call.request_work.client
        with _name_clients_file(path, asked.filename), UploadReader(order) as reader:
            job.interrupt = reader.kill
            job.advance(0)  # whoever stopped it before could not interrupt it
            job.total = reader.count()
            library = _library(call, name, model)
            report = service.writes.add_in_turns(library, reader.records(), progress=job.advance)
        return {**describe_added(library, report), "guessed_text_column": reader.guessed}

    started = service.jobs.start("upload", name, work, clean_up=call.discard_upload)
    return Reply(started.as_json(), status=202)


async def job(call: Call, _body: None) -> Reply:
    """Say how far a job has got."""
    return Reply(_job(call).as_json())


async def stop(call: Call, _body: None) -> Reply:
    """Stop a job within a second; what is on disk stays."""
    found = _job(call)
    found.stop()
    return Reply(found.as_json())


def _job(call: Call) -> Job:
    found = call.service.jobs.get(call.path["id"])
    call.key.check("read", found.library)
    return found


@contextmanager
def _name_clients_file(path: Path, filename: str) -> Iterator[None]:
    """Let an error name the client's file, not the one that holds its bytes here."""
    try:
        yield
    except MunjangError as error:
        plain = PurePath(filename.replace("\\", "/")).name
        told = plain if plain.isprintable() and len(plain) <= NAME_CHARACTERS else quote(plain, NAME_CHARACTERS)
        raise Refusal(error.http_status, str(error).replace(str(path), told).replace(path.name, told)) from error


def _library(call: Call, name: str, model: str) -> Library:
    try:
        return call.service.libraries.get(name)
    except Refusal:
        return call.service.libraries.create(name, model=model)


OPERATIONS = (
    Operation(
        "POST",
        "/api/libraries/{name}/upload",
        "munjang",
        "Add a file's records.",
        upload,
        None,
        JobOut,
        query=UploadQuery,
        uploads=True,
        right="write",
    ),
    Operation("GET", "/api/jobs/{id}", "munjang", "The progress of a job.", job, None, JobOut),
    Operation("DELETE", "/api/jobs/{id}", "munjang", "Stop a job.", stop, None, JobOut, right="write"),
)
