"""`munjang pairs` of the folder of a bulk job, which may be larger than memory: its pairs, or its rows without near-duplicates."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

from munjang.bulk.cluster_address import LOCAL
from munjang.bulk.dedupe_output import PASSES, FolderDeduped, dedupe_output
from munjang.bulk.row_source import RowSource, open_rows
from munjang.bulk.run import connect_dask
from munjang.cli.row_files import check_rows_output, stream_rows, write_rows
from munjang.cli.show import emit, note, print_facts, print_table
from munjang.errors import UsageError
from munjang.limits import usable_cores
from munjang.models.progress import progress_bar

if TYPE_CHECKING:
    from munjang.bulk.pair_blocks import BulkPairs

REPEATS = ("id", "repeats", "score")
"""The columns of a file of rows that go."""


def show_deduped_folder(
    place: str, threshold: float, *, exact: bool, output: Path | None, dropped: Path | None, dask: str | None, as_json: bool
) -> None:
    """Drop near-duplicates of a folder or .npy file, and write what stays and what goes, a block at a time."""
    check_rows_output(output)
    source = open_rows(place)
    beside = output or dropped
    work = None if beside is None else beside.with_name(f".{beside.name}.work")
    if work is None and dask not in (None, LOCAL):
        raise UsageError("--dedupe on a cluster needs -o or --dropped, beside which every worker reads and writes what it compares")
    with progress_bar("rows", PASSES * source.rows, shown=True) as advance, _connect(dask) as client:
        found = dedupe_output(place, threshold=threshold, exact=exact, work=work, client=client, progress=advance)
    if dropped is not None:
        stream_rows(dropped, REPEATS, _list_repeats(source, found))
    if output is not None:
        first = next(iter(source.blocks()))
        stream_rows(output, ("id",) if first.texts is None else ("id", "text"), _list_kept(source, found))
    facts = {"rows": found.rows, "kept": found.kept, "dropped_rows": found.rows - found.kept}
    if as_json:
        emit({**facts, "output": None if output is None else str(output), "dropped_output": None if dropped is None else str(dropped)})
        return
    written = [("written to", str(path)) for path in (output, dropped) if path is not None]
    print_facts([("rows", f"{found.rows:,}"), ("kept", f"{found.kept:,}"), ("dropped", f"{found.rows - found.kept:,}"), *written])


def _list_kept(source: RowSource, found: FolderDeduped) -> Iterator[Mapping[str, Any]]:
    gone = set(found.row_G.tolist())
    row = 0
    for block in source.blocks():
        for place, id in enumerate(block.ids):
            if row not in gone:
                yield {"id": id} if block.texts is None else {"id": id, "text": block.texts[place]}
            row += 1


def _list_repeats(source: RowSource, found: FolderDeduped) -> Iterator[Mapping[str, Any]]:
    """Yield the rows that go; a row that stays in the stead of others comes before them, and its id is remembered."""
    gone = {row: place for place, row in enumerate(found.row_G.tolist())}
    wanted = set(found.kept_G.tolist())
    known: dict[int, str] = {}
    row = 0
    for block in source.blocks():
        for id in block.ids:
            if row in wanted:
                known[row] = id
            if row in gone:
                place = gone[row]
                yield dict(zip(REPEATS, (id, known[int(found.kept_G[place])], round(float(found.score_G[place]), 6)), strict=True))
            row += 1


def show_folder_pairs(folder: str, *, threshold: float, top: int, dask: str | None, output: Path | None, as_json: bool) -> None:
    """Find the pairs of a folder of `munjang bulk` and show or write them."""
    found = _mine_folder(folder, threshold, top, dask)
    if found.cut:
        note(f"there are more pairs than the {top:,} best (--top)")
    rows = [{"score": round(pair.score, 6), "a": pair.a, "b": pair.b} for pair in found.pairs]
    if output is not None:
        write_rows(output, rows)
    if as_json:
        emit({"pairs": rows, "same": found.same})
        return
    if output is None:
        lines = ([f"{pair.score:.3f}", pair.a, pair.b] for pair in found.pairs)
        print_table(["score", "a", "b"], lines, right=["score"], empty=f"no pairs above {threshold:.4g}")
    written = [] if output is None else [("written to", str(output))]
    print_facts([("pairs", f"{len(rows):,}"), ("pairs of the very same", f"{found.same:,}"), *written])


def _mine_folder(folder: str, threshold: float, top: int, dask: str | None) -> BulkPairs:
    from munjang.bulk.pair_blocks import count_blocks, mine_output

    with progress_bar("pairs of shards", count_blocks(folder), shown=True) as advance, _connect(dask) as client:
        return mine_output(folder, threshold=threshold, top=top, client=client, progress=advance)


def _connect(dask: str | None) -> AbstractContextManager[Any]:
    """Hold a client of a Dask cluster, if one is asked for."""
    return nullcontext() if dask is None else connect_dask(dask, workers=usable_cores(), threads=1)
