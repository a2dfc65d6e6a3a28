"""A process that forks a worker, kills it with SIGKILL at a random moment, checks what is left, and does so again and again.

    python kill_rig.py JOB FOLDER MODEL KILLS     prints {"kills", "ended", "acknowledged", "bad"}

Forking spares the second that starting Python takes, so a hundred kills take seconds. A job that ends by itself (`bulk job`, `training`) is
first done once undisturbed, is then killed, and in the end once more left alone.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import time
import warnings
from pathlib import Path
from typing import Any


def forked(job: Any, turn: int, seconds: float | None, *, after_first: bool = False) -> tuple[list[dict[str, Any]], int]:
    """Let the job work in a child for some seconds, kill it, and return what it said and how it ended.

    With `after_first` the seconds begin with the first thing it says.
    """
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        status = 1
        try:
            job.work(turn, lambda **facts: os.write(writing, (json.dumps(facts) + "\n").encode()))
            status = 0
        except BaseException as error:
            os.write(2, f"{type(error).__name__}: {error}\n".encode())
        finally:
            os._exit(status)
    os.close(writing)
    first = os.read(reading, 65_536) if after_first else b""
    if seconds is not None:
        time.sleep(seconds)
        os.kill(child, signal.SIGKILL)
    with os.fdopen(reading, "rb") as stream:
        said = first + stream.read()
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return [json.loads(line) for line in said.splitlines(keepends=True) if line.endswith(b"\n")], status


def main(name: str, folder: Path, model: Path, kills: int) -> None:
    sys.path.insert(0, str(Path(__file__).parents[2]))
    from tests.trust.kill_jobs import JOBS

    warnings.simplefilter("ignore")
    job, chance = JOBS[name](folder, model), random.Random(kills)
    ends = hasattr(job, "round")
    bad, killed, ended, said = [], 0, 0, 0
    longest = getattr(job, "pause", 0.0)
    if ends:
        started = time.monotonic()
        lines, status = forked(job, 0, None)
        bad += [f"undisturbed: {status}"] if status or job.check(lines) else []
        longest = time.monotonic() - started
    turn = 0
    while killed < kills and len(bad) < 5:
        turn += 1
        lines, status = forked(job, turn, chance.uniform(0, longest), after_first=not ends)
        killed, ended, said = killed + (status == -signal.SIGKILL), ended + (status == 0), said + sum("end" in line for line in lines)
        wrong = f"the worker failed with {status}" if status not in (0, -signal.SIGKILL) else job.check(lines)
        bad += [f"kill {turn}: {wrong}"] if wrong else []
    if ends:
        lines, status = forked(job, turn + 1, None)
        wrong = f"resumed: {status}" if status else job.check(lines)
        bad, ended = bad + ([wrong] if wrong else []), ended + 1
    print(json.dumps({"kills": killed, "ended": ended, "acknowledged": said, "bad": bad}))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]), int(sys.argv[4]))
