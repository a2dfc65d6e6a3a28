"""Input files → numbered shards, in the order of the files; and a shard's spec → its rows.

Where a row can be found from any byte of a file (text, JSON Lines, tables without quotes), the file is cut by arithmetic: its size, and how
long its first rows are. Parquet says how many rows it has. Two kinds of files have to be read once, quickly and a line at a time, to find
where rows begin: gzip files, and CSV with quotes, where a line feed may stand inside a field.

Rows of a shard are ids, clean texts, and the rows that cannot be used, each with its line and the reason.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from munjang.bulk.input_streams import find_layout, open_at, open_lines, open_parquet, open_raw, shorten_name, translate_read_errors
from munjang.bulk.job import BulkSettings, InputFile, ShardSpec
from munjang.errors import InputError, TextError, quote
from munjang.limits import LIMITS
from munjang.text.read_csv import read_csv_rows
from munjang.text.read_lines import decode_lines
from munjang.text.readers import read_line_rows
from munjang.text.records import Row, describe_place, find_id, find_text
from munjang.text.unicode import clean
from munjang.wording import brief_repr

SAMPLE_BYTES = 2**18
"""How much of a file is read to tell how long its rows are."""


def plan_shards(inputs: Sequence[InputFile], settings: BulkSettings) -> Iterator[ShardSpec]:
    """Yield every shard of a job; the same files and settings always give the same shards."""
    number = 0
    for index, file in enumerate(inputs):
        cuts = _find_cuts(file, settings)
        for start, stop in pairwise(cuts):
            yield ShardSpec(number, index, start, stop)
            number += 1


def guess_rows(file: InputFile) -> int:
    """Guess how many rows a file has from its size and its first rows; exact for Parquet."""
    with translate_read_errors(file.path):
        if file.format == "parquet":
            return parquet_rows(file)
        size = count_text_bytes(file)
        return round(size / _measure_line(file)) if size > 0 else 0


def count_text_bytes(file: InputFile) -> int:
    """Return how many bytes of text a file has behind its head; of a packed one, a guess."""
    return file.bytes * _UNPACKED if file.packed else file.bytes - file.begin


def can_enter_anywhere(file: InputFile, settings: BulkSettings) -> bool:
    """Return whether a row can be found from any place of a file, so that not all before it has to be read."""
    return file.format == "parquet" or not (file.packed or _is_quoted(file, settings))


_UNPACKED = 3
"""How many times larger a gzip file's text is, roughly; for estimates only."""


def parquet_rows(file: InputFile) -> int:
    """Return the number of rows that a Parquet file says it has."""
    with open_raw(file.path) as handle:
        return int(open_parquet(handle).metadata.num_rows)


def _find_cuts(file: InputFile, settings: BulkSettings) -> list[int]:
    """Return where shards begin, and where the last one ends."""
    with translate_read_errors(file.path):
        if file.format == "parquet":
            return _cut_evenly(0, parquet_rows(file), settings.shard_rows)
        if file.packed:
            return _scan_records(file, settings) if _is_quoted(file, settings) else _scan_lines(file, settings)
        if file.begin >= file.bytes:
            return []
        step = max(1, round(_measure_line(file) * settings.shard_rows))
        if _is_quoted(file, settings) and file.bytes - file.begin > step:
            return _scan_records(file, settings)
        return _cut_evenly(file.begin, file.bytes, step)


def _cut_evenly(begin: int, end: int, step: int) -> list[int]:
    """Return cuts that are `step` apart; a rest that is shorter than half a step joins the shard before it.

    >>> _cut_evenly(0, 25, 10), _cut_evenly(0, 24, 10), _cut_evenly(0, 0, 10)
    ([0, 10, 20, 25], [0, 10, 24], [])
    """
    if end <= begin:
        return []
    parts = max(1, (end - begin + step // 2) // step)
    return [*(begin + part * step for part in range(parts)), end]


def _measure_line(file: InputFile) -> float:
    with open_at(file.path, file.begin) as stream:
        sample = stream.read(SAMPLE_BYTES)
    return len(sample) / max(sample.count(b"\n"), 1)


def _is_quoted(file: InputFile, settings: BulkSettings) -> bool:
    return find_layout(file.format, settings, file.columns, header=False).quoting


def _scan_lines(file: InputFile, settings: BulkSettings) -> list[int]:
    """Walk through the lines and cut after every `shard_rows` of them."""
    cuts = [file.begin]
    with open_at(file.path, file.begin) as stream:
        at, count = file.begin, 0
        while data := stream.readline(LIMITS.max_line_bytes):
            if count >= settings.shard_rows:
                cuts.append(at)
                count = 0
            at += len(data)
            count += data.endswith(b"\n")  # a line beyond the limit comes in pieces
    return [*cuts, at] if at > file.begin else []


def _scan_records(file: InputFile, settings: BulkSettings) -> list[int]:
    """Walk through the records and cut where one starts; parsing may begin anew there, since a record knows nothing of those before it."""

    def reject(_line: int, _error: InputError) -> None:
        """Broken records are told when they are read for good."""

    layout = find_layout(file.format, settings, file.columns, header=False)
    source = shorten_name(file.path)
    cuts, count = [file.begin], 0
    with open_lines(file.path, file.begin, None) as lines:
        decoded = decode_lines(lines, layout, source=source, limits=LIMITS, reject=reject)
        forgotten = 0
        for row in read_csv_rows(decoded, layout, source=source, limits=LIMITS, reject=reject):
            if count >= settings.shard_rows:
                place = lines.index(row.line) - forgotten
                cuts.append(lines.starts[place])
                forgotten += place
                del lines.starts[:place]  # so that memory stays bounded
                count = 0
            count += 1
        end = lines.at
    return [*cuts, end] if end > file.begin else []


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
