"""A job in its output folder: what it is, its plan, which shards are done, and at the end all receipts in one file.

    manifest.json     the job: model, settings, input files; when all is done also every receipt
    plan.jsonl        one shard a line
    receipts/         one file for each shard that is done
    shares/           one mark for each share that was started
    vectors/          one file for each shard that is done
    rejected.jsonl    rows that could not be used: file, line, place, reason; written when all is done

A job is continued only with the model, settings and files it was begun with. What differs is shown. A finished job's vectors are read
shard by shard, merged into one file, or checked.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from munjang.atomic import atomic_file
from munjang.bulk.job import BulkJob, Receipt, ShardSpec, parse_receipt, read_job, read_spec, to_json
from munjang.bulk.shard import RECEIPTS, REJECTED, read_receipt
from munjang.bulk.shard_files import (
    VECTORS,
    Block,
    from_json,
    make_schema,
    make_table,
    open_parquet_writer,
    read_block,
    read_checksummed,
    write_checksummed,
)
from munjang.bulk.storage import Storage, open_storage
from munjang.errors import DamagedFile, InputError, UsageError, quote
from munjang.wording import brief_repr

MANIFEST, PLAN, REJECTED_ROWS = "manifest.json", "plan.jsonl", "rejected.jsonl"
VERSION = 1
RESTORE = "restore it, or begin again in another folder"
_PLAN_SUM = "plan_sha256"
_KEYS = {"munjang_bulk", _PLAN_SUM, "model", "settings", "inputs", "receipts"}


@dataclass(frozen=True)
class Manifest:
    """A job as it was begun."""

    job: BulkJob
    specs: tuple[ShardSpec, ...]
    receipts: tuple[Receipt, ...] | None
    """All of them, once the job is done."""


def read_manifest(storage: Storage) -> Manifest | None:
    """Return the job whose output is here; None where there is none."""
    content = storage.read(MANIFEST)
    if content is None:
        return None
    where = f"{storage.place}/{MANIFEST}"
    value = read_checksummed(content, where=where, advice=RESTORE)
    if not isinstance(value, dict) or value.get("munjang_bulk") != VERSION:
        raise InputError(f"{where}: is not the manifest of a bulk job of this version\n  choose another folder")
    if not set(value) <= _KEYS:
        raise DamagedFile(f"{where}: holds other keys than munjang bulk writes\n  {RESTORE}")
    specs = tuple(_read_plan(storage, value.get(_PLAN_SUM)))
    return Manifest(read_job(value, where=where), specs, _read_receipts(value.get("receipts"), specs, where))


def begin(storage: Storage, job: BulkJob, specs: Iterable[ShardSpec]) -> Manifest:
    """Write down a new job; the manifest comes last, so a job that has one has a plan."""
    planned = tuple(specs)
    storage.write(PLAN, _list_plan_lines(planned))
    storage.write(MANIFEST, _write_manifest(job, planned, None))
    return Manifest(job, planned, None)


def refuse_changes(then: BulkJob, now: BulkJob, *, where: str) -> None:
    """Refuse to go on with another model, other settings or other files than a job was begun with."""
    changes = list(list_differences(then, now))
    if changes:
        listed = "\n".join(f"  {change}" for change in changes[:20])
        raise UsageError(f"{where}: holds a job that differs from this one\n{listed}\n  call it as it was begun, or choose another folder")


def list_differences(then: BulkJob, now: BulkJob) -> Iterator[str]:
    """Yield what differs between two jobs, one line each."""
    if then.model.fingerprint != now.model.fingerprint:
        yield (
            f"model: {quote(then.model.name)} ({then.model.fingerprint[:12]}) then, "
            f"{quote(now.model.name)} ({now.model.fingerprint[:12]}) now"
        )
    before, after = asdict(then.settings), asdict(now.settings)
    for name, value in before.items():
        if value != after[name]:
            yield f"{name}: {value!r} then, {after[name]!r} now"
    old, new = ({file.path: (file.bytes, file.modified) for file in job.inputs} for job in (then, now))
    for path in sorted(old.keys() | new.keys()):
        if path not in new:
            yield f"input: {path} then, not there now"
        elif path not in old:
            yield f"input: {path} is new"
        elif old[path] != new[path]:
            yield f"input: {path} was {old[path][0]:,} bytes then, has {new[path][0]:,} now, or was rewritten"
    if old.keys() == new.keys() and list(old) != list(new):
        yield "input: the files stand in another order"


def open_receipts(storage: Storage, specs: Sequence[ShardSpec]) -> dict[int, Receipt]:
    """Return the receipts of the shards that are done, by number; one whose files are not there in full does not count."""
    present = storage.read_all(RECEIPTS, {f"{spec.stem}.json" for spec in specs})
    sizes = storage.sizes(VECTORS)
    found: dict[int, Receipt] = {}
    for spec in specs:
        name = f"{spec.stem}.json"
        content = present.get(name)
        if content is not None:
            where = f"{storage.place}/{RECEIPTS}/{name}"
            receipt = read_receipt(content, where)
            if all(sizes.get(file.name.rpartition("/")[2]) == file.bytes for file in receipt.files):
                found[spec.number] = receipt
    return found


def finish(storage: Storage, manifest: Manifest, receipts: dict[int, Receipt]) -> Manifest:
    """Write the rejected rows with their lines, then the manifest with all receipts."""
    in_order = tuple(receipts[spec.number] for spec in manifest.specs)
    storage.write(REJECTED_ROWS, _write_rejected(storage, manifest, receipts))
    storage.write(MANIFEST, _write_manifest(manifest.job, manifest.specs, in_order))
    return Manifest(manifest.job, manifest.specs, in_order)


def _write_rejected(storage: Storage, manifest: Manifest, receipts: dict[int, Receipt]) -> Iterator[bytes]:
    """Yield the lines of `rejected.jsonl`; only now is it known how many lines of a file stand before a shard."""
    line, last = 0, -1
    for spec in manifest.specs:
        file, receipt = manifest.job.inputs[spec.file], receipts[spec.number]
        if spec.file != last:
            line, last = file.first_line, spec.file
        if receipt.rejected:
            name = f"{REJECTED}/{spec.stem}.jsonl"
            content = storage.read(name)
            if content is None:
                raise DamagedFile(
                    f"{storage.place}/{name}: is missing\n  remove {RECEIPTS}/{spec.stem}.json and continue with munjang bulk --resume"
                )
            unit = "row" if file.format == "parquet" else "byte"
            for each in (from_json(line, where=f"{storage.place}/{name}", advice=RESTORE) for line in content.split(b"\n")[:-1]):
                row = {"file": file.path, "line": line + each["line"], unit: each["place"], "reason": each["reason"]}
                yield (json.dumps(row, ensure_ascii=False) + "\n").encode("utf-8", "backslashreplace")
        line += receipt.lines


def _write_manifest(job: BulkJob, specs: Sequence[ShardSpec], receipts: Sequence[Receipt] | None) -> bytes:
    listed = None if receipts is None else [asdict(each) for each in receipts]
    checksum = hashlib.sha256(_list_plan_lines(specs)).hexdigest()
    value: dict[str, Any] = {"munjang_bulk": VERSION, _PLAN_SUM: checksum, **asdict(job), "receipts": listed}
    return write_checksummed(value, indent=1)


def _read_receipts(listed: Any, specs: Sequence[ShardSpec], where: str) -> tuple[Receipt, ...] | None:
    if listed is None:
        return None
    if not isinstance(listed, list) or len(listed) != len(specs):
        raise DamagedFile(f"{where}: does not hold one receipt for each of {len(specs):,} shards\n  restore it, or begin again elsewhere")
    receipts = tuple(parse_receipt(each, where=where) for each in listed)
    if not all(receipt.files for receipt in receipts):
        raise DamagedFile(f"{where}: holds a receipt without files\n  {RESTORE}")
    return receipts


def _list_plan_lines(specs: Iterable[ShardSpec]) -> bytes:
    return "".join(to_json(spec) + "\n" for spec in specs).encode()


def _read_plan(storage: Storage, checksum: str | None) -> Iterator[ShardSpec]:
    where = f"{storage.place}/{PLAN}"
    content = storage.read(PLAN)
    if content is None:
        raise DamagedFile(f"{where}: is missing\n  {RESTORE}")
    if checksum is not None and hashlib.sha256(content).hexdigest() != checksum:  # an older version wrote none
        raise DamagedFile(f"{where}: is not what was written (its checksum differs)\n  {RESTORE}")
    for line in content.split(b"\n")[:-1]:
        yield read_spec(from_json(line, where=where, advice=RESTORE), where=where)


MERGED = (".parquet", ".npy")


@brief_repr
@dataclass(frozen=True)
class BulkOutput:
    """The vectors of a finished job."""

    job: BulkJob
    specs: tuple[ShardSpec, ...]
    receipts: tuple[Receipt, ...]
    storage: Storage

    @property
    def rows(self) -> int:
        """How many vectors there are."""
        return sum(receipt.rows for receipt in self.receipts)

    def block(self, number: int) -> Block:
        """Return one shard's rows."""
        contents = []
        for file in self.receipts[number].files:
            content = self.storage.read(file.name)
            where = f"{self.storage.place}/{file.name}"
            if content is None:
                raise InputError(f"{where}: is missing\n  make it again with munjang bulk --resume")
            if hashlib.sha256(content).hexdigest() != file.sha256:
                raise DamagedFile(
                    f"{where}: is not what was written (its checksum differs)\n  remove it and continue with munjang bulk --resume"
                )
            contents.append(content)
        return read_block(contents, self.job, where=f"{self.storage.place}/{self.receipts[number].files[0].name}")

    def blocks(self) -> Iterator[Block]:
        """Yield the rows of every shard, in the order of the input."""
        return (self.block(number) for number in range(len(self.receipts)))

    def check(self) -> list[str]:
        """Read every file and return what differs from its receipt, one sentence each; empty when all is well."""
        wrong = []
        for file in (file for receipt in self.receipts for file in receipt.files):
            content = self.storage.read(file.name)
            if content is None:
                wrong.append(f"{file.name} is missing")
            elif hashlib.sha256(content).hexdigest() != file.sha256:
                wrong.append(f"{file.name} is not what was written: its checksum differs")
        return wrong


def open_output(place: str | Path) -> BulkOutput:
    """Open a finished job's folder."""
    storage = open_storage(str(place))
    manifest = read_manifest(storage)
    if manifest is None:
        raise InputError(f"{place}: holds no {MANIFEST}, expected the folder that munjang bulk wrote")
    if manifest.receipts is None:
        raise InputError(f"{place}: its job is not done\n  end it with munjang bulk --resume")
    return BulkOutput(manifest.job, manifest.specs, manifest.receipts, storage)


def is_output(place: str) -> bool:
    """Say whether a folder, or an address, is the output of a bulk job."""
    try:
        storage = open_storage(place)
    except UsageError:  # a file, standard input, or the address of a library
        return False
    return all(storage.size(name) is not None for name in (MANIFEST, PLAN))


def merge(output: BulkOutput, path: str | Path) -> str:
    """Write all vectors into one .parquet or .npy file, a shard at a time, and return the file's SHA-256."""
    target = Path(path)
    if target.suffix.lower() not in MERGED:
        raise UsageError(f"{target}: expected a name that ends in {' or '.join(MERGED)}")
    if not output.rows:
        raise InputError("the job has no rows to merge")
    with atomic_file(target) as handle:
        (_merge_npy if target.suffix.lower() == ".npy" else _merge_parquet)(output, handle)
        handle.seek(0)
        return hashlib.file_digest(handle, "sha256").hexdigest()


def _merge_parquet(output: BulkOutput, handle: BinaryIO) -> None:
    writer = None
    for block in output.blocks():
        if writer is None:
            schema = make_schema(output.job, block.vectors_ND.shape[1], block.vectors_ND.dtype)
            writer = open_parquet_writer(handle, schema)
        if block.ids:
            writer.write_table(make_table(block, schema), row_group_size=len(block.ids))
    if writer is not None:
        writer.close()


def _merge_npy(output: BulkOutput, handle: BinaryIO) -> None:
    start = True
    for block in output.blocks():
        if start:
            description = np.lib.format.dtype_to_descr(block.vectors_ND.dtype)
            header = {"descr": description, "fortran_order": False, "shape": (output.rows, block.vectors_ND.shape[1])}
            np.lib.format.write_array_header_1_0(handle, header)
            start = False
        handle.write(np.ascontiguousarray(block.vectors_ND).tobytes())
