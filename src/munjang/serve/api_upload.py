"""Munjang's own routes for files: send one, and ask how far it has got.

The file is the request's body, as it is; its name in the query says the format. All of it is read once before anything is added, so a
broken line is told at once and the number of records is known; then it is added batch by batch, and each batch is on disk.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from munjang.library.library import Library
from munjang.serve.call import Call, Operation, Reply
from munjang.serve.jobs import Job
from munjang.serve.library_json import added
from munjang.serve.refusals import Refusal
from munjang.serve.schemas.library import JobOut, UploadQuery
from munjang.text.readers import read_texts


async def upload(call: Call, _body: None) -> Reply:
    """Add a file to a library, which is made where there is none; answers with a job at once."""
    service, name = call.service, call.path["name"]
    if service.settings.read_only:
        raise Refusal(403, "this server is read-only")
    path, text_column, id_column = call.upload, call.query.get("text_column"), call.query.get("id_column")
    assert path is not None

    def work(job: Job) -> dict[str, Any]:
        job.total = _count(path, text_column, id_column, job)
        library = _library(call, name)
        report = library.add(read_texts(path, text_column=text_column, id_column=id_column), progress=job.advance)
        return added(library, report)

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


def _count(path: Path, text_column: str | None, id_column: str | None, job: Job) -> int:
    count = 0
    for _ in read_texts(path, text_column=text_column, id_column=id_column):
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
