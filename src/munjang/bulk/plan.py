"""Input files → numbered shards, in the order of the files.

Where a row can be found from any byte of a file (text, JSON Lines, tables without quotes), the file is cut by arithmetic: its size, and how
long its first rows are. Parquet says how many rows it has. Two kinds of files have to be read once, quickly and a line at a time, to find
where rows begin: gzip files, and CSV with quotes, where a line feed may stand inside a field.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from munjang.bulk.input_streams import find_layout, open_at, open_lines, open_parquet, open_raw, shorten_name, translate_read_errors
from munjang.bulk.job import BulkSettings, InputFile, ShardSpec
from munjang.errors import InputError
from munjang.limits import LIMITS
from munjang.text.read_csv import read_csv_rows
from munjang.text.read_lines import decode_lines

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
