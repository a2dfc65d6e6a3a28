"""Jobs in processes of their own, to be killed: the command line as it is used, and its workers found by their process ids."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import ClassVar

import psutil

MARKS = {None: "munjang.bulk.local_run", "dask": "spawn_main", "ray": "ray::run_in_process", "spark": "pyspark.daemon"}
"""What the command lines of workers contain. Spark's are children of one that has the same, which starts them."""


class Run:
    """One run of `munjang bulk`."""

    started: ClassVar[list[subprocess.Popen[str]]] = []

    def __init__(self, source: Path, output: Path, model: Path, *, shard_rows: int, cluster: str | None, workers: int = 2) -> None:
        self.output = output
        arguments = ["bulk", str(source), "-o", str(output), "--model", str(model), "--shard-rows", str(shard_rows), "--resume", "--json"]
        arguments += ["--workers", str(workers), *([f"--{cluster}", "local"] if cluster else [])]
        self._mark = MARKS[cluster]
        self.process = subprocess.Popen(
            [sys.executable, "-m", "munjang.cli.main", *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        self.started.append(self.process)

    @property
    def done(self) -> int:
        """Shards that have a receipt."""
        folder = self.output / "receipts"
        return len(list(folder.glob("part-*.json"))) if folder.is_dir() else 0

    @property
    def ended(self) -> bool:
        return self.process.poll() is not None

    def wait_for(self, shards: int, *, seconds: float = 600) -> None:
        """Wait until so many shards are done, or the run has ended; it hangs when no shard is done for so many seconds."""
        before, since = self.done, time.monotonic()
        while (done := self.done) < shards and not self.ended:
            if done > before:
                before, since = done, time.monotonic()
            assert time.monotonic() - since < seconds, "the run hangs"
            time.sleep(0.02)

    def workers(self) -> list[int]:
        try:
            below = psutil.Process(self.process.pid).children(recursive=True)
        except psutil.Error:
            return []
        marked = {each.pid: parent for each in below if (parent := find_parent(each, self._mark)) is not None}
        return [pid for pid, parent in marked.items() if self._mark != MARKS["spark"] or parent in marked]

    def kill_a_worker(self) -> bool:
        """Kill one worker, and say whether there was one."""
        for pid in self.workers()[:1]:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                return False
            return True
        time.sleep(0.02)
        return False

    def kill(self) -> None:
        """Kill the run itself, and wait until its workers have noticed."""
        left = self.workers()
        self.process.kill()
        self.process.communicate()
        limit = time.monotonic() + 240
        while any(psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE for pid in left):
            assert time.monotonic() < limit, "workers outlive the run"
            time.sleep(0.05)

    def finish(self) -> tuple[int, str]:
        """Wait for the end; return exit code and messages."""
        _, messages = self.process.communicate(timeout=1_200)
        return self.process.returncode, messages


def find_parent(process: psutil.Process, mark: str) -> int | None:
    """Return the parent of a process whose command line contains a mark; None for others, and for one that has just ended."""
    try:
        return process.ppid() if mark in " ".join(process.cmdline()) else None
    except psutil.Error:
        return None
