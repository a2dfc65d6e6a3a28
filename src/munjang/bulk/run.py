"""Files → a folder of vectors: plan, do what is not done, and close the books. Whoever is interrupted continues with `resume`."""

from __future__ import annotations

import glob
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from munjang.bulk.input_streams import holds_rows, inspect_input, shorten_name
from munjang.bulk.job import LOCAL, BulkJob, BulkSettings, InputFormat, Model, OutputFormat, Receipt, ShardSpec, check_address
from munjang.bulk.local_run import Work, run_local
from munjang.bulk.output import Manifest, begin, finish, open_receipts, read_manifest, refuse_changes
from munjang.bulk.plan import plan_shards
from munjang.bulk.storage import Storage, is_url, open_filesystem, open_storage
from munjang.errors import InputError, MissingExtra, UsageError
from munjang.file_lock import hold_lock
from munjang.limits import usable_cores
from munjang.models.registry import resolve
from munjang.models.sentence_encoder import SentenceEncoder
from munjang.options import DeviceOption, EngineOption, Option, check_options
from munjang.text.readers import find_format
from munjang.types import DEFAULT_DEVICE, DEFAULT_ENGINE, Compute, Device, EngineName, Format, LongText, Pooling, Precision
from munjang.wording import brief_repr

if TYPE_CHECKING:
    from distributed import Client

_WILD = "*?["


def find_inputs(names: Sequence[str], *, format: Format | None = None) -> list[str]:
    """Return the paths of all files to read, each once."""
    if not names:
        raise UsageError("there is nothing to read, expected files, folders or patterns")
    return list(dict.fromkeys(path for name in names for path in _find_files(str(name), format)))


def _find_files(name: str, format: Format | None) -> Iterator[str]:
    if name == "-":
        raise UsageError("standard input cannot be read twice, which continuing a job needs\n  write it to a file first")
    found = list(_find_remote(name, format) if is_url(name) else _find_local(name, format))
    if not found:
        raise InputError(f"{name}: no file there, expected txt, csv, tsv, jsonl or parquet files, each but parquet also with .gz")
    yield from found


def _find_local(name: str, format: Format | None) -> Iterable[str]:
    path = Path(name)
    if path.is_file():
        return [str(path.absolute())]
    if path.is_dir():
        below = (each for each in path.rglob("*") if each.is_file() and not _is_hidden(each.relative_to(path).as_posix()))
        return _keep_known(sorted(str(each.absolute()) for each in below), format)
    if any(mark in name for mark in _WILD):
        return _keep_known(sorted(str(Path(each).absolute()) for each in glob.glob(name, recursive=True) if Path(each).is_file()), format)  # noqa: PTH207
    return []


def _find_remote(url: str, format: Format | None) -> Iterable[str]:
    system, path = open_filesystem(url)
    if any(mark in path for mark in _WILD):
        found = sorted(map(str, system.glob(path)))
    elif system.isdir(path):
        root = path.rstrip("/") + "/"
        found = [each for each in sorted(map(str, system.find(path))) if not _is_hidden(each.removeprefix(root))]
    else:
        return [url] if system.exists(path) else []
    return _keep_known([str(system.unstrip_protocol(each)) for each in found], format)


def _keep_known(paths: Iterable[str], format: Format | None) -> Iterator[str]:
    for path in paths:
        try:
            if format is not None or find_format(Path(path)) != "json":
                yield path
        except UsageError:
            continue


def _is_hidden(name: str) -> bool:
    return any(part.startswith(".") for part in name.split("/"))


LOCK = ".lock"


def lock_output(place: str) -> AbstractContextManager[None]:
    """Hold a folder's lock, or say that another run does; an object store has none, and two runs there only do work twice."""
    if is_url(place):
        return nullcontext()
    return hold_lock(Path(place) / LOCK, name=place, purpose="munjang bulk", advice="wait until it ends")


@brief_repr
@dataclass(frozen=True)
class WorkerConfig:
    """Who does the work: so many processes of so many threads on this machine, or a Dask cluster."""

    workers: Annotated[int | None, Option("Number of processes. Default: one per core.", min=1)] = None
    """None: as many as there are cores for `threads` each."""
    threads: Annotated[int, Option("Threads per process.", min=1)] = 1
    dask: Annotated[str | None, Option("A Dask scheduler's address (tls://…), or local for a cluster on this machine.")] = None
    device: DeviceOption = DEFAULT_DEVICE
    """Where each worker's model computes; what the vectors are does not depend on it."""
    engine: EngineOption = DEFAULT_ENGINE

    def processes(self) -> int:
        """Return the number of worker processes; together they have no more threads than there are cores."""
        check_options(WorkerConfig, vars(self))
        cores = usable_cores()
        if self.workers is not None and self.workers * self.threads > cores and self.dask in (None, LOCAL):
            raise UsageError(
                f"{self.workers} workers of {self.threads} threads, but there are {cores} cores, and more threads than cores are slower\n"
                f"  take at most {max(cores // self.threads, 1)} workers, or leave --workers out"
            )
        if self.workers is None and self.device not in ("auto", "cpu", "openvino"):
            return 1  # processes would share the one device
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


ProgressFactory = Callable[[BulkJob, Sequence[ShardSpec]], Callable[[ShardSpec, Receipt, bool], None]]
"""Called with the job and all its shards before work begins; returns what is called for each shard that is done, the third argument saying
whether an earlier run did it."""


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
    device: Device = WorkerConfig.device,
    engine: EngineName = WorkerConfig.engine,
    resume: bool = False,
    cache: str | Path | None = None,
    watch: ProgressFactory | None = None,
) -> BulkReport:
    """Encode files into a folder of shards, and return when all of it is on disk.

    The options are those of `munjang bulk`. With `resume` the job in the folder is continued; without, a folder that contains a job is
    rejected. `cache` is a file that keeps vectors across runs.
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
    if config.dask not in (None, LOCAL):
        check_address(str(config.dask))
    job = describe(inputs, model, settings, device=config.device, engine=config.engine)
    storage = open_storage(str(output), create=True)
    with lock_output(storage.place):
        manifest = _open_manifest(storage, job, resume=resume)
        found_here = replace(manifest.job, model=job.model)  # the same model, but its folder may have moved
        place = storage.place if is_url(storage.place) else str(Path(storage.place).absolute())
        kept = None if cache is None else str(Path(cache).absolute())
        work = Work(found_here, place, config.threads, kept, config.device, config.engine)
        return _run(storage, manifest, work, config, processes, watch)


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


def _run(
    storage: Storage, manifest: Manifest, work: Work, config: WorkerConfig, processes: int, watch: ProgressFactory | None
) -> BulkReport:
    started = time.perf_counter()
    receipts = open_receipts(storage, manifest.specs)
    before = sum(receipt.rows for receipt in receipts.values())
    done = watch(manifest.job, manifest.specs) if watch is not None else None
    for spec in manifest.specs:
        if done is not None and spec.number in receipts:
            done(spec, receipts[spec.number], True)

    def take(receipt: Receipt) -> None:
        receipts[receipt.shard] = receipt
        if done is not None:
            done(manifest.specs[receipt.shard], receipt, False)

    waiting = [spec for spec in manifest.specs if spec.number not in receipts]
    if waiting and config.dask is not None:
        _run_on_cluster(work, waiting, config, processes, take)
    elif waiting:
        run_local(work, waiting, workers=min(processes, len(waiting)), done=take)
    if waiting or manifest.receipts is None:
        storage.clear_partial()  # of workers that were lost on the way
        manifest = finish(storage, manifest, receipts)
    return _make_report(storage.place, list(receipts.values()), rows_before=before, seconds=time.perf_counter() - started)


def _run_on_cluster(work: Work, specs: Sequence[ShardSpec], config: WorkerConfig, processes: int, take: Callable[[Receipt], None]) -> None:
    assert config.dask is not None
    with connect_dask(config.dask, workers=processes, threads=config.threads) as client:
        from munjang.bulk.dask_run import run_dask

        run_dask(work, specs, client=client, done=take)


def _make_report(place: str, receipts: Sequence[Receipt], *, rows_before: int, seconds: float) -> BulkReport:
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
