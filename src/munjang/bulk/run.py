"""Files → a folder of vectors: plan, do what is not done, and close the books. Whoever is interrupted continues with `resume`."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING

from munjang.bulk.cluster_address import LOCAL, check_address, check_ray_address
from munjang.bulk.find_inputs import find_inputs
from munjang.bulk.input_streams import holds_rows, inspect_input, shorten_name
from munjang.bulk.job import BulkJob, BulkSettings, InputFormat, Model, OutputFormat, Receipt, ShardSpec
from munjang.bulk.local_run import run_local
from munjang.bulk.output import MANIFEST, Manifest, begin, finish, open_receipts, read_manifest, refuse_changes
from munjang.bulk.plan import plan_shards
from munjang.bulk.shard_worker import RunShards, Work
from munjang.bulk.share import Share, has_shares, list_shares, mark_share, read_share
from munjang.bulk.storage import Storage, is_url, open_storage
from munjang.bulk.worker_config import WorkerConfig
from munjang.errors import InputError, MissingExtra, UsageError
from munjang.file_lock import hold_lock
from munjang.models.registry import resolve
from munjang.models.sentence_encoder import SentenceEncoder
from munjang.types import DEFAULT_DEVICE, DEFAULT_ENGINE, Compute, Device, EngineName, LongText, Pooling, Precision
from munjang.wording import brief_repr

if TYPE_CHECKING:
    from distributed import Client

LOCK = ".lock"

_JOIN_SECONDS = 60.0
"""How long a share waits while another one writes down the job."""


def lock_output(place: str, *, patience: float = 0.0) -> AbstractContextManager[None]:
    """Hold a folder's lock, or say that another run does; an object store has none, and two runs there only do work twice."""
    if is_url(place):
        return nullcontext()
    return hold_lock(Path(place) / LOCK, name=place, purpose="munjang bulk", patience=patience, advice="wait until it ends")


@brief_repr
@dataclass(frozen=True)
class BulkReport:
    """What came of a job, or of a share of it, over all its runs; `seconds` and `new_rows` are of this run."""

    output: str
    shards: int
    rows: int
    rejected: int
    too_long: int
    tokens: int
    bytes: int
    new_rows: int
    seconds: float
    missing: tuple[int, ...] = ()
    """The shards that are not done."""
    missing_shares: tuple[str, ...] = ()
    """The shares that these belong to, if the job was begun in shares."""


ProgressFactory = Callable[[BulkJob, Sequence[ShardSpec]], Callable[[ShardSpec, Receipt, bool], None]]
"""Called with the job and its shards, or those of the share, before work begins; returns what is called for each shard that is done, the
third argument saying whether an earlier run did it."""


def encode_bulk(
    inputs: Sequence[str | Path] | str | Path,
    output: str | Path,
    *,
    model: str | Path | None = None,
    format: OutputFormat = BulkSettings.format,
    text_column: str | None = BulkSettings.text_column,
    id_column: str | None = BulkSettings.id_column,
    input_format: InputFormat | None = BulkSettings.input_format,
    encoding: str = BulkSettings.encoding,
    quoting: bool | None = BulkSettings.quoting,
    keep_text: bool = BulkSettings.keep_text,
    precision: Precision = BulkSettings.precision,
    dimensions: int | None = BulkSettings.dimensions,
    normalize: bool = BulkSettings.normalize,
    prompt_name: str | None = BulkSettings.prompt_name,
    long_text: LongText = BulkSettings.long_text,
    compute: Compute = BulkSettings.compute,
    pooling: Pooling | None = BulkSettings.pooling,
    shard_rows: int = BulkSettings.shard_rows,
    workers: int | None = WorkerConfig.workers,
    threads: int = WorkerConfig.threads,
    dask: str | None = WorkerConfig.dask,
    ray: str | None = WorkerConfig.ray,
    spark: str | None = WorkerConfig.spark,
    share: str | None = WorkerConfig.share,
    device: Device = WorkerConfig.device,
    engine: EngineName = WorkerConfig.engine,
    resume: bool = False,
    cache: str | Path | None = None,
    watch: ProgressFactory | None = None,
) -> BulkReport:
    """Encode files into a folder of shards, and return when all of it is on disk.

    The options are those of `munjang bulk`. With `resume` the job in the folder is continued; without, a folder that contains a job is
    rejected. With a `share`, the runs of all shares take part in one job, and `finish_bulk` ends it. `cache` is a file that keeps vectors
    across runs.
    """
    given = locals()
    settings = BulkSettings(**{each.name: given[each.name] for each in fields(BulkSettings)})
    config = WorkerConfig(**{each.name: given[each.name] for each in fields(WorkerConfig)})
    listed = [inputs] if isinstance(inputs, str | Path) else inputs
    return run_job([str(each) for each in listed], output, settings, config, model=model, resume=resume, cache=cache, watch=watch)


def run_job(
    inputs: Sequence[str],
    output: str | Path,
    settings: BulkSettings,
    config: WorkerConfig,
    *,
    model: str | Path | None = None,
    resume: bool = False,
    cache: str | Path | None = None,
    watch: ProgressFactory | None = None,
) -> BulkReport:
    """Do what `encode_bulk` does, with its options in two values."""
    settings.check()
    processes = config.processes()
    _check_cluster(config)
    share = None if config.share is None else read_share(config.share)
    job = describe(inputs, model, settings, device=config.device, engine=config.engine)
    storage = open_storage(str(output), create=True)

    place = storage.place if is_url(storage.place) else str(Path(storage.place).absolute())
    kept = None if cache is None else str(Path(cache).absolute())

    def run_shards(manifest: Manifest, specs: Sequence[ShardSpec]) -> _Outcome:
        found_here = replace(manifest.job, model=job.model)  # the same model, but its folder may have moved
        work = Work(found_here, place, config.threads, kept, config.device, config.engine)
        return _run(storage, specs, work, config, processes, watch)

    if share is not None:
        manifest = _join_job(storage, job, share)
        outcome = run_shards(manifest, share.select(manifest.specs))
        refuse_changes(_read_begun(storage).job, job, where=storage.place)  # by a share that began at the same moment in an object store
        return _make_report(storage.place, outcome)
    with lock_output(storage.place):
        manifest = _open_manifest(storage, job, resume=resume)
        outcome = run_shards(manifest, manifest.specs)
        if outcome.worked or manifest.receipts is None:
            storage.clear_partial()  # of workers that were lost on the way
            finish(storage, manifest, outcome.receipts)
        return _make_report(storage.place, outcome)


def finish_bulk(output: str | Path) -> BulkReport:
    """End a job that was done in shares: gather the receipts into the manifest, or report which shards are missing.

    While shards are missing nothing is written; run their shares again, or the whole job with `resume`.
    """
    storage = open_storage(str(output))
    _read_begun(storage)
    started = time.perf_counter()
    with lock_output(storage.place):
        manifest = _read_begun(storage)
        receipts = open_receipts(storage, manifest.specs)
        missing = tuple(spec.number for spec in manifest.specs if spec.number not in receipts)
        if not missing and manifest.receipts is None:
            storage.clear_partial()  # of shares that were killed
            finish(storage, manifest, receipts)
    report = _make_report(storage.place, _Outcome(receipts, sum(each.rows for each in receipts.values()), False, started))
    return replace(report, missing=missing, missing_shares=tuple(list_shares(storage, missing)))


def connect_dask(address: str, *, workers: int, threads: int) -> AbstractContextManager[Client]:
    """Hold a client of the cluster at an address, or of a new one of so many workers on this machine."""
    try:
        from munjang.bulk.dask_run import connect
    except ImportError as error:
        raise MissingExtra("--dask", "dask") from error
    return connect(address, workers=workers, threads=threads)


def describe(
    inputs: Sequence[str],
    model: str | Path | None,
    settings: BulkSettings,
    *,
    device: Device = DEFAULT_DEVICE,
    engine: EngineName = DEFAULT_ENGINE,
) -> BulkJob:
    """Return the job: files are found and looked at, the model is loaded once to know its fingerprint."""
    files = tuple(inspect_input(path, settings) for path in find_inputs(inputs, format=settings.input_format))
    if not any(holds_rows(file, settings) for file in files):
        raise InputError(f"{', '.join(shorten_name(file.path) for file in files[:3])}: holds no text, expected at least one")
    found = resolve(model)
    encoder = SentenceEncoder.load(model, compute=settings.compute, pooling=settings.pooling, threads=1, device=device, engine=engine)
    settings = replace(settings, compute=encoder.compute)  # "auto" may mean something else on another machine
    # refuses what the model cannot do, before any worker is started
    probe = settings.encode(encoder, [])
    return BulkJob(Model(found.name, str(found.path.resolve()), encoder.fingerprint, probe.vectors.shape[1]), settings, files)


def _open_manifest(storage: Storage, job: BulkJob, *, resume: bool) -> Manifest:
    if not has_shares(storage):  # one that runs now would lose what it writes
        storage.clear_partial()
    manifest = read_manifest(storage)
    if manifest is None:
        return begin(storage, job, plan_shards(job.inputs, job.settings))
    refuse_changes(manifest.job, job, where=storage.place)
    if not resume:
        done = len(manifest.specs) if manifest.receipts is not None else len(open_receipts(storage, manifest.specs))
        raise UsageError(
            f"{storage.place}: holds this job already, {done:,} of {len(manifest.specs):,} shards are done\n"
            "  continue with --resume, or choose another folder"
        )
    return manifest


def _join_job(storage: Storage, job: BulkJob, share: Share) -> Manifest:
    """Return the job that shares do together; the first of them begins it."""
    if read_manifest(storage) is None:
        specs = tuple(plan_shards(job.inputs, job.settings))
        with lock_output(storage.place, patience=_JOIN_SECONDS):
            if read_manifest(storage) is None:
                begin(storage, job, specs)
    manifest = _read_begun(storage)
    refuse_changes(manifest.job, job, where=storage.place)
    mark_share(storage, share)
    return manifest


def _read_begun(storage: Storage) -> Manifest:
    manifest = read_manifest(storage)
    if manifest is None:
        raise InputError(f"{storage.place}: holds no {MANIFEST}, expected the folder of a job that was begun with munjang bulk")
    return manifest


@dataclass(frozen=True)
class _Outcome:
    receipts: dict[int, Receipt]
    rows_before: int
    """Of earlier runs."""
    worked: bool
    """Whether there was something to do."""
    started: float


def _run(
    storage: Storage, specs: Sequence[ShardSpec], work: Work, config: WorkerConfig, processes: int, watch: ProgressFactory | None
) -> _Outcome:
    """Do those of the shards that are not done."""
    started = time.perf_counter()
    receipts = open_receipts(storage, specs)
    before = sum(receipt.rows for receipt in receipts.values())
    done = watch(work.job, specs) if watch is not None else None
    by_number = {spec.number: spec for spec in specs}
    for number, receipt in receipts.items():
        if done is not None:
            done(by_number[number], receipt, True)

    def take(receipt: Receipt) -> None:
        receipts[receipt.shard] = receipt
        if done is not None:
            done(by_number[receipt.shard], receipt, False)

    waiting = [spec for spec in specs if spec.number not in receipts]
    cluster = config.cluster()
    if waiting and cluster is not None:
        _load_cluster(cluster[0])(cluster[1], work, waiting, workers=processes, done=take)
    elif waiting:
        run_local(work, waiting, workers=min(processes, len(waiting)), done=take)
    return _Outcome(receipts, before, bool(waiting), started)


def _check_cluster(config: WorkerConfig) -> None:
    """Refuse what cannot work, or is not safe, before the job is written down."""
    cluster = config.cluster()
    if cluster is None:
        return
    kind, address = cluster
    if kind == "dask" and address != LOCAL:
        check_address(address)
    if kind == "ray":
        check_ray_address(address)
    _load_cluster(kind)


def _load_cluster(kind: str) -> RunShards:
    """Return what does shards on a kind of cluster."""
    try:
        if kind == "dask":
            from munjang.bulk.dask_run import run_at
        elif kind == "ray":
            from munjang.bulk.ray_run import run_at
        else:
            from munjang.bulk.spark_run import run_at
    except ImportError as error:
        raise MissingExtra(f"--{kind}", kind) from error
    return run_at


def _make_report(place: str, outcome: _Outcome) -> BulkReport:
    receipts = outcome.receipts.values()
    rows = sum(each.rows for each in receipts)
    return BulkReport(
        output=place,
        shards=len(receipts),
        rows=rows,
        rejected=sum(each.rejected for each in receipts),
        too_long=sum(each.too_long for each in receipts),
        tokens=sum(each.tokens for each in receipts),
        bytes=sum(file.bytes for each in receipts for file in each.files),
        new_rows=rows - outcome.rows_before,
        seconds=round(time.perf_counter() - outcome.started, 3),
    )
