"""A bulk job as a writer for the fault tests: planned, encoded shard by shard, and closed, all in one process; and its merged file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.bulk.conftest import digest as digests
from tests.bulk.conftest import write_jsonl
from tests.trust.looks import digest
from tests.trust.writers import Writer

ROWS, SHARD_ROWS = 10, 5


def described(source: Path, model: Any) -> Any:
    """Return the job of encoding a file in small shards."""
    from munjang.bulk.job import BulkSettings
    from munjang.bulk.run import describe

    return describe([str(source)], model.folder.path, BulkSettings(shard_rows=SHARD_ROWS))


def do_job(job: Any, output: Path, model: Any) -> None:
    """Do what `munjang bulk --resume` does, without processes of its own."""
    from munjang.bulk.output import begin, finish, open_receipts, read_manifest, refuse_changes
    from munjang.bulk.plan import plan_shards
    from munjang.bulk.shard import encode_shard
    from munjang.bulk.storage import open_storage

    storage = open_storage(str(output), create=True)
    storage.clear_partial()
    papers = read_manifest(storage)
    if papers is None:
        papers = begin(storage, job, plan_shards(job.inputs, job.settings))
    refuse_changes(papers.job, job, where=storage.place)
    receipts = open_receipts(storage, papers.specs)
    for spec in papers.specs:
        if spec.number not in receipts:
            receipts[spec.number] = encode_shard(papers.job, spec, model, storage)
    if papers.receipts is None:
        finish(storage, papers, receipts)


def job_writer(source: Path, model: Any) -> Writer:
    """The writer of a whole job. Its reader ends the job first: whatever a crash left, the end must be that of an undisturbed run."""
    write_jsonl(source, ROWS)
    lines = source.read_text(encoding="utf-8").splitlines()
    source.write_text("\n".join([*lines[:5], "{broken", *lines[5:]]) + "\n", encoding="utf-8")
    job = described(source, model)

    def look(folder: Path) -> str:
        from munjang.bulk.output import open_output

        do_job(job, folder / "out", model)
        wrong = open_output(folder / "out").check()
        return digest(sorted(digests(folder / "out").items()), wrong)

    return Writer(lambda folder: None, lambda folder: do_job(job, folder / "out", model), look)


def merge_writer(source: Path, output: Path, model: Any) -> Writer:
    """The writer of a merged file."""
    from munjang.bulk.output import merge, open_output

    write_jsonl(source, ROWS)
    do_job(described(source, model), output, model)

    def look(folder: Path) -> str:
        return digest((folder / "all.npy").read_bytes())

    return Writer(lambda folder: _old(folder / "all.npy"), lambda folder: merge(open_output(output), folder / "all.npy"), look)


def _old(path: Path) -> None:
    path.write_bytes(b"what was there before" * 9)
