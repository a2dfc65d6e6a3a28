"""Files → a folder of vectors: plan, do what is not done, and close the books. Whoever is interrupted continues with `resume`."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from munjang.bulk.dask_cluster import LOCAL, check_address, connected
from munjang.bulk.inputs import find_inputs
from munjang.bulk.job import Job, Model, Receipt, ShardSpec
from munjang.bulk.local_run import Work, run_local
from munjang.bulk.lock import only_run
from munjang.bulk.look import holds_rows, look_at
from munjang.bulk.manifest import Papers, begin, finish, open_receipts, read_papers, refuse_changes
from munjang.bulk.opening import short_name
from munjang.bulk.plan import plan_shards
from munjang.bulk.settings import BulkSettings
from munjang.bulk.storage import Storage, is_url, open_storage
from munjang.errors import InputError, UsageError
from munjang.limits import usable_cores
from munjang.models.registry import resolve
from munjang.models.sentence_encoder import SentenceEncoder
from munjang.wording import brief_repr


@dataclass(frozen=True)
class Crew:
    """Who does the work: so many processes of so many threads on this machine, or a Dask cluster."""

    workers: int | None = None
    """None: as many as there are cores for `threads` each."""
    threads: int = 1
    dask: str | None = None
    """A scheduler's address, or "local" for a cluster on this machine."""

    def processes(self) -> int:
        """Return the number of worker processes; together they have no more threads than there are cores."""
        cores = usable_cores()
        if self.threads < 1 or (self.workers is not None and self.workers < 1):
            raise UsageError(f"workers is {self.workers} and threads is {self.threads}, expected at least 1 of each")
        if self.workers is not None and self.workers * self.threads > cores and self.dask in (None, LOCAL):
            raise UsageError(
                f"{self.workers} workers of {self.threads} threads, but there are {cores} cores, and more threads than cores are slower\n"
                f"  take at most {max(cores // self.threads, 1)} workers, or leave --workers out"
            )
        return self.workers or max(cores // self.threads, 1)


@brief_repr
@dataclass(frozen=True)
class BulkReport:
    """What came of a job, over all its runs; `seconds` and `new_rows` are of this run."""

    output: str
    shards: int
    rows: int
    rejected: int
    too_long: int
    tokens: int
    bytes: int
    new_rows: int
    seconds: float


Watch = Callable[[Job, Sequence[ShardSpec]], Callable[[ShardSpec, Receipt, bool], None]]
"""Called with the job and all its shards before work begins; returns what is called for each shard that is done, the third argument saying
whether an earlier run did it."""


def encode_bulk(
    inputs: Sequence[str | Path] | str | Path,
    output: str | Path,
    *,
    model: str | Path | None = None,
    settings: BulkSettings | None = None,
    crew: Crew | None = None,
    resume: bool = False,
    cache: str | Path | None = None,
    watch: Watch | None = None,
) -> BulkReport:
    """Encode files into a folder of shards, and return when all of it is on disk.

    With `resume` a job that was begun in the folder is continued; without, a folder that holds a job is refused. `cache` is a file that
    keeps vectors across runs.
    """
    settings, crew = settings or BulkSettings(), crew or Crew()
    settings.check()
    processes = crew.processes()
    if crew.dask not in (None, LOCAL):
        check_address(str(crew.dask))
    listed = [inputs] if isinstance(inputs, str | Path) else inputs
    job = describe([str(each) for each in listed], model, settings)
    storage = open_storage(str(output), create=True)
    with only_run(storage.place):
        papers = _papers(storage, job, resume=resume)
        found_here = replace(papers.job, model=job.model)  # the same model, but its folder may have moved
        place = storage.place if is_url(storage.place) else str(Path(storage.place).absolute())
        work = Work(found_here, place, crew.threads, None if cache is None else str(Path(cache).absolute()))
        return _run(storage, papers, work, crew, processes, watch)


def describe(inputs: Sequence[str], model: str | Path | None, settings: BulkSettings) -> Job:
    """Return the job: files are found and looked at, the model is loaded once to know its fingerprint."""
    files = tuple(look_at(path, settings) for path in find_inputs(inputs, format=settings.input_format))
    if not any(holds_rows(file, settings) for file in files):
        raise InputError(f"{', '.join(short_name(file.path) for file in files[:3])}: holds no text, expected at least one")
    found = resolve(model)
    encoder = SentenceEncoder.load(model, compute=settings.compute, pooling=settings.pooling, threads=1)
    # refuses what the model cannot do, before any worker is started
    probe = encoder.encode_with_report(
        [],
        prompt_name=settings.prompt_name,
        long_text="truncate" if settings.long_text == "error" else settings.long_text,
        precision=settings.precision,
        dimensions=settings.dimensions,
        normalize=settings.normalize,
    )
    return Job(Model(found.name, str(found.path.resolve()), encoder.fingerprint, probe.vectors.shape[1]), settings, files)


def _papers(storage: Storage, job: Job, *, resume: bool) -> Papers:
    storage.clear_partial()
    papers = read_papers(storage)
    if papers is None:
        return begin(storage, job, plan_shards(job.inputs, job.settings))
    refuse_changes(papers.job, job, where=storage.place)
    if not resume:
        done = len(papers.specs) if papers.receipts is not None else len(open_receipts(storage, papers.specs))
        raise UsageError(
            f"{storage.place}: holds this job already, {done:,} of {len(papers.specs):,} shards are done\n"
            "  continue with --resume, or choose another folder"
        )
    return papers


def _run(storage: Storage, papers: Papers, work: Work, crew: Crew, processes: int, watch: Watch | None) -> BulkReport:
    started = time.perf_counter()
    receipts = open_receipts(storage, papers.specs)
    before = sum(receipt.rows for receipt in receipts.values())
    done = watch(papers.job, papers.specs) if watch is not None else None
    for spec in papers.specs:
        if done is not None and spec.number in receipts:
            done(spec, receipts[spec.number], True)

    def take(receipt: Receipt) -> None:
        receipts[receipt.shard] = receipt
        if done is not None:
            done(papers.specs[receipt.shard], receipt, False)

    waiting = [spec for spec in papers.specs if spec.number not in receipts]
    if waiting and crew.dask is not None:
        _on_cluster(work, waiting, crew, processes, take)
    elif waiting:
        run_local(work, waiting, workers=min(processes, len(waiting)), done=take)
    if waiting or papers.receipts is None:
        storage.clear_partial()  # of workers that were lost on the way
        papers = finish(storage, papers, receipts)
    return _report(storage.place, list(receipts.values()), rows_before=before, seconds=time.perf_counter() - started)


def _on_cluster(work: Work, specs: Sequence[ShardSpec], crew: Crew, processes: int, take: Callable[[Receipt], None]) -> None:
    assert crew.dask is not None
    with connected(crew.dask, workers=processes, threads=crew.threads) as client:
        from munjang.bulk.dask_run import run_dask

        run_dask(work, specs, client=client, done=take)


def _report(place: str, receipts: Sequence[Receipt], *, rows_before: int, seconds: float) -> BulkReport:
    rows = sum(each.rows for each in receipts)
    return BulkReport(
        output=place,
        shards=len(receipts),
        rows=rows,
        rejected=sum(each.rejected for each in receipts),
        too_long=sum(each.too_long for each in receipts),
        tokens=sum(each.tokens for each in receipts),
        bytes=sum(file.bytes for each in receipts for file in each.files),
        new_rows=rows - rows_before,
        seconds=round(seconds, 3),
    )
