"""A shard's spec → its rows: ids, clean texts, and the rows that cannot be used, each with its line and the reason."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from munjang.bulk.input_streams import find_layout, open_lines, open_parquet, open_raw, shorten_name, translate_read_errors
from munjang.bulk.job import BulkSettings, InputFile, ShardSpec
from munjang.errors import InputError, TextError, quote
from munjang.limits import LIMITS
from munjang.text.readers import read_line_rows
from munjang.text.records import Row, describe_place, find_id, find_text
from munjang.text.unicode import clean
from munjang.wording import brief_repr

_BATCH = 1_024


@brief_repr
@dataclass(frozen=True)
class Rejected:
    """A row that cannot be used."""

    line: int
    """Lines of the shard before it; for Parquet, rows."""
    place: int
    """The byte at which it starts; for Parquet, its row."""
    reason: str


@brief_repr
@dataclass
class ShardRows:
    """What a shard holds."""

    ids: list[str] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    lines: list[int] = field(default_factory=list)
    """Lines of the shard before each row."""
    places: list[int] = field(default_factory=list)
    """The byte at which each row starts; for Parquet, its row."""
    rejected: list[Rejected] = field(default_factory=list)
    line_count: int = 0


def read_shard(file: InputFile, spec: ShardSpec, settings: BulkSettings) -> ShardRows:
    """Read all rows of a shard. A row without an id gets one: the file's number and the place where the row starts."""
    found = ShardRows()
    with translate_read_errors(file.path):
        if file.format == "parquet":
            _read_parquet(file, spec, found)
        else:
            _read_lines(file, spec, settings, found)
    found.rejected.sort(key=lambda each: each.line)
    return found


def _read_lines(file: InputFile, spec: ShardSpec, settings: BulkSettings, found: ShardRows) -> None:
    source = shorten_name(file.path)
    with open_lines(file.path, spec.start, spec.stop, keep=True) as lines:

        def reject(number: int, error: InputError) -> None:
            line = lines.index(number)
            found.rejected.append(Rejected(line, lines.starts[line], _find_reason(error, describe_place(source, number))))

        layout = find_layout(file.format, settings, file.columns, header=False)
        for row in read_line_rows(lines, layout, source=source, reject=reject):
            line = lines.index(row.line)
            _take(row, file, spec, found, line=line, at=lines.starts[line], id_named=settings.id_column is not None)
        found.line_count = len(lines.starts)


def _read_parquet(file: InputFile, spec: ShardSpec, found: ShardRows) -> None:
    source = shorten_name(file.path)
    wanted = [file.text_column] if file.id_column is None else list(dict.fromkeys([file.text_column, file.id_column]))
    with open_raw(file.path) as handle:
        try:
            table = open_parquet(handle)
            at = 0
            for group in range(table.metadata.num_row_groups):
                rows = table.metadata.row_group(group).num_rows
                if at < spec.stop and at + rows > spec.start:
                    _read_group(table, group, at, wanted, file, spec, found, source)
                at += rows
        except (ValueError, NotImplementedError) as error:  # pyarrow's errors about content
            raise InputError(f"{source}: not a whole Parquet file ({error})") from error
    found.line_count = spec.stop - spec.start


def _read_group(
    table: Any, group: int, at: int, wanted: list[str], file: InputFile, spec: ShardSpec, found: ShardRows, source: str
) -> None:
    batches = table.iter_batches(batch_size=_BATCH, row_groups=[group], columns=wanted, use_threads=False)
    for batch in batches:
        first, last = max(spec.start - at, 0), min(spec.stop - at, len(batch))
        if first < last:
            for number, values in enumerate(batch.slice(first, last - first).to_pylist(), start=at + first):
                row = Row(source, number + 1, values)
                _take(row, file, spec, found, line=number - spec.start, at=number, id_named=True)
        at += len(batch)
        if at >= spec.stop:
            return


def _take(row: Row, file: InputFile, spec: ShardSpec, found: ShardRows, *, line: int, at: int, id_named: bool) -> None:
    try:
        id, text = _check_row(row, file, spec, at, id_named=id_named)
    except InputError as error:
        found.rejected.append(Rejected(line, at, _find_reason(error, row.where)))
        return
    found.ids.append(id)
    found.texts.append(text)
    found.lines.append(line)
    found.places.append(at)


def _check_row(row: Row, file: InputFile, spec: ShardSpec, at: int, *, id_named: bool) -> tuple[str, str]:
    text = clean(find_text(row, file.text_column))
    id = find_id(row, file.id_column, named=id_named)
    id = f"{spec.file}:{at}" if id is None else id
    try:
        size = len(id.encode())
    except UnicodeEncodeError:
        raise TextError(f"the id {quote(id)} holds a lone surrogate, expected Unicode text") from None
    if size > LIMITS.max_id_bytes:
        raise TextError(f"the id {quote(id)} has {size:,} bytes, the limit is {LIMITS.max_id_bytes:,}")
    return id, text


def _find_reason(error: InputError, where: str) -> str:
    """Return an error's first line without the place, which is told in the whole file's own lines."""
    return str(error).removeprefix(f"{where}: ").partition("\n")[0]
