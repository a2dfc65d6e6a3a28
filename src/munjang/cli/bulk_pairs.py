"""`munjang pairs` over a folder that `munjang bulk` wrote: pairs by id, block by block, here or on a Dask cluster."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from munjang.cli.row_files import write_rows
from munjang.cli.show import emit, note, print_facts, print_table

if TYPE_CHECKING:
    from munjang.bulk.pair_blocks import BulkPairs


def show_bulk_pairs(folder: str, *, threshold: float, top: int, dask: str | None, output: Path | None, as_json: bool) -> None:
    """Find the pairs and show or write them."""
    found = _found(folder, threshold, top, dask)
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


def _found(folder: str, threshold: float, top: int, dask: str | None) -> BulkPairs:
    from munjang.bulk.pair_blocks import count_blocks, mine_output
    from munjang.models.progress import progress_bar

    with progress_bar("pairs of shards", count_blocks(folder), shown=True) as advance:
        if dask is None:
            return mine_output(folder, threshold=threshold, top=top, progress=advance)
        from munjang.bulk.dask_cluster import connected
        from munjang.limits import usable_cores

        with connected(dask, workers=usable_cores(), threads=1) as client:
            return mine_output(folder, threshold=threshold, top=top, client=client, progress=advance)
