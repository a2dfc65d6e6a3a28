"""A shard's ids, vectors and texts ↔ the bytes of its files.

Parquet: one row group with the columns id, text (if wanted) and vector, a list of fixed size. npy: an array, and beside it one JSON
object a line with id and text. The same rows always give the same bytes: no dates, no writer settings left to defaults, no threads.
"""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from munjang.bulk.job import BulkJob
from munjang.errors import DamagedFile, MissingExtra
from munjang.types import Floats
from munjang.wording import brief_repr

CHECKSUM = "checksum"


def write_checksummed(value: dict[str, Any], *, indent: int | None = None) -> bytes:
    """Return an object as JSON, with its checksum."""
    return json.dumps({**value, CHECKSUM: _compute_checksum(value)}, ensure_ascii=False, indent=indent).encode("utf-8", "backslashreplace")


def read_checksummed(content: bytes, *, where: str, advice: str) -> Any:
    """Read JSON back, without the checksum; what an older version wrote has none. Refuse what is not what was written."""
    value = from_json(content, where=where, advice=advice)
    if isinstance(value, dict) and CHECKSUM in value and not _is_intact(value.pop(CHECKSUM), value):
        raise DamagedFile(f"{where}: is not what was written (its checksum differs)\n  {advice}")
    return value


def from_json(content: bytes, *, where: str, advice: str) -> Any:
    """Read JSON back."""
    try:
        return json.loads(content)
    except (ValueError, RecursionError) as error:
        raise DamagedFile(f"{where}: is not JSON ({error})\n  {advice}") from None


def _is_intact(checksum: Any, value: dict[str, Any]) -> bool:
    try:
        return bool(checksum == _compute_checksum(value))
    except RecursionError:  # nested just deep enough to be read
        return False


def _compute_checksum(value: dict[str, Any]) -> str:
    """Return the SHA-256 of a value, however its JSON is set out; text that cannot be UTF-8 counts as it is escaped."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


VECTORS = "vectors"
"""The folder of the output that holds nothing but vectors."""


@brief_repr
@dataclass(frozen=True)
class Block:
    """Rows of an output: ids, vectors, and texts if they were kept."""

    ids: list[str]
    vectors_ND: Floats
    texts: list[str] | None


def make_files(stem: str, block: Block, job: BulkJob) -> dict[str, bytes]:
    """Return the content of a shard's files by their names."""
    if job.settings.format == "npy":
        return {f"{VECTORS}/{stem}.npy": _write_npy(block.vectors_ND), f"{VECTORS}/{stem}.jsonl": _write_lines(block)}
    return {f"{VECTORS}/{stem}.parquet": _write_parquet(block, job)}


def read_block(contents: Sequence[bytes], job: BulkJob, *, where: str) -> Block:
    """Read a shard's files back."""
    try:
        return _read_npy(contents) if job.settings.format == "npy" else _read_parquet(contents[0])
    except (ValueError, KeyError, OSError) as error:
        raise DamagedFile(
            f"{where}: cannot be read ({error})\n  remove the shard's receipt and continue with munjang bulk --resume"
        ) from None


def make_schema(job: BulkJob, dimension: int, dtype: np.dtype[Any]) -> Any:
    """Return the table's columns, with the model's name and fingerprint for whoever finds the file alone."""
    arrow = _import_arrow()
    columns = [arrow.field("id", arrow.string(), nullable=False)]
    if job.settings.keep_text:
        columns.append(arrow.field("text", arrow.string(), nullable=False))
    columns.append(arrow.field("vector", arrow.list_(arrow.from_numpy_dtype(dtype), dimension), nullable=False))
    facts = {"munjang.model": job.model.name, "munjang.fingerprint": job.model.fingerprint, "munjang.precision": job.settings.precision}
    return arrow.schema(columns, metadata=facts)


def make_table(block: Block, schema: Any) -> Any:
    """Return rows as a table."""
    arrow = _import_arrow()
    numbers = arrow.array(np.ascontiguousarray(block.vectors_ND).reshape(-1))
    columns = [arrow.array(block.ids, arrow.string())]
    if block.texts is not None:
        columns.append(arrow.array(block.texts, arrow.string()))
    columns.append(arrow.FixedSizeListArray.from_arrays(numbers, block.vectors_ND.shape[1]))
    return arrow.Table.from_arrays(columns, schema=schema)


def open_parquet_writer(handle: Any, schema: Any) -> Any:
    """Return a writer whose settings are all fixed: vectors hardly shrink and stay plain, ids and texts are compressed."""
    import pyarrow.parquet

    vector = "vector.list.element"
    compression = {name: "zstd" for name in schema.names if name != "vector"} | {vector: "none"}
    return pyarrow.parquet.ParquetWriter(
        handle,
        schema,
        version="2.6",
        data_page_version="1.0",
        compression=compression,
        use_dictionary=False,
        write_statistics=False,
        store_schema=True,
    )


def _write_parquet(block: Block, job: BulkJob) -> bytes:
    schema = make_schema(job, block.vectors_ND.shape[1], block.vectors_ND.dtype)
    out = io.BytesIO()
    with open_parquet_writer(out, schema) as writer:
        writer.write_table(make_table(block, schema), row_group_size=max(len(block.ids), 1))
    return out.getvalue()


def _read_parquet(content: bytes) -> Block:
    import pyarrow.parquet

    table = pyarrow.parquet.read_table(io.BytesIO(content), use_threads=False)
    width = table.schema.field("vector").type.list_size
    column = table.column("vector").combine_chunks()
    vectors_ND: Floats = column.flatten().to_numpy(zero_copy_only=False).reshape(len(column), width)
    texts = table.column("text").to_pylist() if "text" in table.column_names else None
    return Block(table.column("id").to_pylist(), vectors_ND, texts)


def _write_npy(vectors_ND: Floats) -> bytes:
    out = io.BytesIO()
    np.lib.format.write_array(out, np.ascontiguousarray(vectors_ND), version=(1, 0), allow_pickle=False)
    return out.getvalue()


def _write_lines(block: Block) -> bytes:
    texts = block.texts
    rows = ({"id": id} if texts is None else {"id": id, "text": texts[place]} for place, id in enumerate(block.ids))
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode()


def _read_npy(contents: Sequence[bytes]) -> Block:
    vectors_ND: Floats = np.lib.format.read_array(io.BytesIO(contents[0]), allow_pickle=False)
    rows = [json.loads(line) for line in contents[1].decode().split("\n")[:-1]]
    texts = [row["text"] for row in rows] if rows and "text" in rows[0] else None
    return Block([row["id"] for row in rows], vectors_ND, texts)


def _import_arrow() -> Any:
    try:
        import pyarrow
    except ImportError as error:
        raise MissingExtra("writing Parquet", "parquet") from error
    return pyarrow
