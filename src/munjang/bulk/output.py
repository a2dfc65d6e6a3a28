"""A finished job's folder → its vectors again: shard by shard, all at once, merged into one file, or checked."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import numpy as np

from munjang.atomic import atomic_file
from munjang.bulk.job import BulkJob, Receipt, ShardSpec
from munjang.bulk.manifest import MANIFEST, read_manifest
from munjang.bulk.shard_files import Block, make_schema, make_table, open_parquet_writer, read_block
from munjang.bulk.storage import Storage, is_url, open_storage
from munjang.errors import DamagedFile, InputError, UsageError
from munjang.wording import brief_repr

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
    """Say whether a folder is the output of a bulk job."""
    return not is_url(place) and (Path(place) / MANIFEST).is_file() and (Path(place) / "plan.jsonl").is_file()


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
