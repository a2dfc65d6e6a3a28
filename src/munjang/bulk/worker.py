"""A worker process of a local run: a job on the first line of standard input, then a shard a line; an answer a line on standard output.

Started by `local_run` as `python -m munjang.bulk.worker`. The model is loaded once. When standard input ends, because the work is done or
because whoever started this was killed, the process ends too.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from typing import TextIO

from munjang.bulk.job import read_job, read_spec
from munjang.bulk.shard import EmbeddingCache, describe_problem, load_model, run_shard, to_line
from munjang.bulk.storage import open_storage

READY = '{"ready": true}'


def main() -> None:
    """Answer shards until there are no more."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C at a terminal reaches every process; the one that started us decides
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # whatever some library prints must not pass for an answer
    serve(sys.stdin, answers)


def serve(lines: TextIO, answers: TextIO) -> None:
    """Read a job and its shards, and answer each."""
    order = json.loads(lines.readline())
    job = read_job(order["job"], where="the job")
    storage = open_storage(order["output"])
    try:
        encoder = load_model(job.model, job.settings, threads=order["threads"], device=order["device"], engine=order["engine"])
        cache = EmbeddingCache(order["cache"], job) if order["cache"] else None
    except Exception as error:
        _answer(answers, to_line(describe_problem(error, where="a worker")))
        return
    _answer(answers, READY)
    for line in lines:
        spec = read_spec(json.loads(line), where="a shard")
        _answer(answers, to_line(run_shard(job, spec, encoder, storage, cache=cache)))


def _answer(answers: TextIO, line: str) -> None:
    answers.write(line + "\n")
    answers.flush()


if __name__ == "__main__":
    main()
