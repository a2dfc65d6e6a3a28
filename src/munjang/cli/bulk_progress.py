"""How far a bulk job is: shards, bytes of input, rows per second, time left; a bar on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from munjang.wording import count

if TYPE_CHECKING:
    from munjang.bulk.job import Job, Receipt, ShardSpec
    from munjang.bulk.run import Watch


@contextmanager
def bulk_progress() -> Iterator[Watch]:
    """Yield what `encode_bulk` takes to show how far it is."""
    import time

    if not sys.stderr.isatty():
        yield _lines
        return

    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    from munjang.cli.show import size_text

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[facts]}"),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True, speed_estimate_period=600) as bar:

        def watch(job: Job, specs: Sequence[ShardSpec]) -> Callable[[ShardSpec, Receipt, bool], None]:
            weights = _weights(job, specs)
            total, all_shards = sum(weights), len(specs)
            task = bar.add_task("bulk", total=total, facts=f"0/{all_shards}")
            started, done, read, rows = time.monotonic(), 0, 0, 0

            def advance(spec: ShardSpec, receipt: Receipt, earlier: bool) -> None:
                nonlocal done, read, rows
                done, read = done + 1, read + weights[spec.number]
                rows += 0 if earlier else receipt.rows
                rate = rows / max(time.monotonic() - started, 1e-9)
                bar.update(
                    task, facts=f"{done:,}/{count(all_shards, 'shard')}  {size_text(read)} of {size_text(total)}  {rate:,.0f} rows/s"
                )
                if earlier:  # what is no work now must not count as speed
                    bar.update(task, total=total - read)
                else:
                    bar.advance(task, weights[spec.number])

            return advance

        yield watch


def _lines(job: Job, specs: Sequence[ShardSpec]) -> Callable[[ShardSpec, Receipt, bool], None]:
    """Write a plain line of shards and bytes now and then."""
    import time

    from munjang.cli.show import note, size_text
    from munjang.models.progress import SECONDS_BETWEEN, clock_text

    weights = _weights(job, specs)
    total = sum(weights)
    started = told = time.monotonic()
    done, read, new, rows = 0, 0, 0, 0

    def advance(spec: ShardSpec, receipt: Receipt, earlier: bool) -> None:
        nonlocal told, done, read, new, rows
        done, read = done + 1, read + weights[spec.number]
        new, rows = (new, rows) if earlier else (new + weights[spec.number], rows + receipt.rows)
        now = time.monotonic()
        if now - told < SECONDS_BETWEEN or not new:
            return
        told = now
        left = (total - read) / new * (now - started)  # what was done before is no work now
        facts = f"{done:,} of {count(len(specs), 'shard')}, {size_text(read)} of {size_text(total)}, {rows / (now - started):,.0f} rows/s"
        note(f"bulk: {facts}, {clock_text(left)} left")

    return advance


def _weights(job: Job, specs: Sequence[ShardSpec]) -> list[int]:
    """Return how many bytes of input each shard is; a Parquet file's bytes are shared out by rows."""
    rows = {spec.file: spec.stop for spec in specs}  # the last shard of a file ends with it
    sizes = []
    for spec in specs:
        file = job.inputs[spec.file]
        part = spec.stop - spec.start
        sizes.append(file.bytes * part // rows[spec.file] if file.format == "parquet" else part)
    return sizes
