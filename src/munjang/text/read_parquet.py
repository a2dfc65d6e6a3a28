"""A Parquet file → rows, a batch at a time. Needs the extra `parquet`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from munjang.errors import InputError, MissingExtra
from munjang.text.column_choice import missing_column
from munjang.text.rows import Row

_BATCH = 1_024


def parquet_rows(path: Path, columns: tuple[str, ...] | None, *, source: str) -> Iterator[Row]:
    """Yield a row for each row of the file, with the chosen columns or all of them; a row's line is its number from 1."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise MissingExtra("reading Parquet", "parquet") from error
    try:
        with pyarrow.parquet.ParquetFile(path) as file:
            names = file.schema_arrow.names
            for column in columns or ():
                if column not in names:
                    raise missing_column(column, dict.fromkeys(names), where=source)
            number = 0
            for batch in file.iter_batches(batch_size=_BATCH, columns=list(columns) if columns else None):
                for values in batch.to_pylist():
                    number += 1
                    yield Row(source, number, values)
    except (pyarrow.ArrowException, OSError) as error:
        raise InputError(f"{source}: not a whole Parquet file ({error})") from error
