"""Shards → receipts, by processes on this machine.

Each worker process has one model and a thread here that hands it one shard after the other. A worker that dies is replaced and its shard
is tried again; since a shard is done in one step, nothing is lost or doubled. A problem that trying again cannot help stops the run.

This module is the worker too, run with `python -m`: a job on the first line of standard input, then a shard a line; an answer a line on
standard output. The model is loaded once. When standard input ends, because the work is done or because whoever started it was killed, the
process ends too.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict
from queue import SimpleQueue
from typing import TextIO

from munjang.bulk.job import Receipt, ShardSpec, parse_receipt, read_job, read_spec, to_json
from munjang.bulk.shard import ShardProblem, describe_problem, to_line
from munjang.bulk.shard_worker import ATTEMPTS, ShardWorker, Work, make_thread_limits
from munjang.errors import MunjangError

COMMAND = (sys.executable, "-P", "-m", "munjang.bulk.local_run")
"""What a worker is; -P keeps files of the current folder from passing for modules."""


def run_local(
    work: Work, specs: Iterable[ShardSpec], *, workers: int, done: Callable[[Receipt], None], command: Sequence[str] = COMMAND
) -> None:
    """Do all shards and call `done`, in this thread, for each as it is finished; raise at the first problem."""
    outcomes: SimpleQueue[Receipt | Exception | None] = SimpleQueue()
    waiting = _Shared(iter(specs))
    hands = [_Hand(work, command, waiting, outcomes) for _ in range(workers)]
    for hand in hands:
        hand.thread.start()
    running = workers
    try:
        while running:
            outcome = outcomes.get()
            if outcome is None:
                running -= 1
            elif isinstance(outcome, Exception):
                raise outcome
            else:
                done(outcome)
    finally:
        waiting.stop()
        for hand in hands:
            hand.stop()
        for hand in hands:
            hand.thread.join()


class _Shared:
    """An iterator that several threads take from."""

    def __init__(self, specs: Iterator[ShardSpec]) -> None:
        self._specs, self._lock, self.stopped = specs, threading.Lock(), False

    def next(self) -> ShardSpec | None:
        """Return what is to be done next, None when there is no more."""
        with self._lock:
            return None if self.stopped else next(self._specs, None)

    def stop(self) -> None:
        """Hand out nothing more."""
        self.stopped = True


class _Hand:
    """A thread and the worker process it feeds."""

    def __init__(self, work: Work, command: Sequence[str], waiting: _Shared, outcomes: SimpleQueue[Receipt | Exception | None]) -> None:
        self._work, self._command, self._waiting, self._outcomes = work, command, waiting, outcomes
        self._process: subprocess.Popen[str] | None = None
        self._lock = threading.Lock()
        self.thread = threading.Thread(target=self._run, name="munjang-bulk", daemon=True)

    def stop(self) -> None:
        """End the process, whatever it is doing."""
        with self._lock:
            if self._process is not None and self._waiting.stopped:
                self._process.kill()

    def _run(self) -> None:
        try:
            while (spec := self._waiting.next()) is not None:
                self._outcomes.put(self._run_shard(spec))
        except Exception as error:
            if not self._waiting.stopped:
                self._outcomes.put(error)
        finally:
            self._end()
            self._outcomes.put(None)

    def _run_shard(self, spec: ShardSpec) -> Receipt:
        for _ in range(ATTEMPTS):
            answer = self._ask(to_json(spec))
            if self._waiting.stopped:
                raise MunjangError("stopped")
            if answer:
                return _read_receipt(answer)
            code = self._end()
        raise MunjangError(
            f"shard {spec.number}: its worker died {ATTEMPTS} times (exit code {code})\n"
            "  if memory is short, take fewer --workers or smaller --shard-rows; then continue with --resume"
        )

    def _ask(self, line: str) -> str:
        """Return the worker's answer, nothing if it died."""
        process = self._find_worker()
        if process is None:
            return ""
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(line + "\n")
            process.stdin.flush()
            answer = process.stdout.readline()
        except OSError:  # it died before it had read the line
            return ""
        return answer if answer.endswith("\n") else ""

    def _find_worker(self) -> subprocess.Popen[str] | None:
        """Return a worker that has loaded its model; None if it died over it."""
        if self._process is not None:
            return self._process
        process = self._start()
        assert process.stdin is not None
        assert process.stdout is not None
        order = asdict(self._work)
        try:
            process.stdin.write(json.dumps(order) + "\n")
            process.stdin.flush()
            answer = process.stdout.readline()
        except OSError:
            return None
        if not answer.endswith("\n"):
            return None
        if "ready" not in json.loads(answer):
            _read_receipt(answer)  # raises what kept it from getting ready
        return process

    def _start(self) -> subprocess.Popen[str]:
        limits = make_thread_limits(self._work.threads)
        with self._lock:
            if self._waiting.stopped:
                raise MunjangError("stopped")
            self._process = subprocess.Popen(  # noqa: S603 - our own worker
                list(self._command), stdin=subprocess.PIPE, stdout=subprocess.PIPE, env={**os.environ, **limits}, encoding="utf-8"
            )
            return self._process

    def _end(self) -> int | None:
        """Let the process end and return its exit code."""
        with self._lock:
            process, self._process = self._process, None
        if process is None:
            return None
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.close()
        except OSError:  # it is gone already
            pass
        process.stdout.close()
        return process.wait()


def _read_receipt(answer: str) -> Receipt:
    """Return the receipt in an answer, or raise the problem in it."""
    value = json.loads(answer)
    if "problem" in value:
        raise ShardProblem(**value["problem"]).error()
    return parse_receipt(value["receipt"], where="a worker's answer")


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
    work = Work(**{**order, "job": read_job(order["job"], where="the job")})
    try:
        worker = ShardWorker(work)
    except Exception as error:
        _answer(answers, to_line(describe_problem(error, where="a worker")))
        return
    _answer(answers, READY)
    for line in lines:
        _answer(answers, to_line(worker.run(read_spec(json.loads(line), where="a shard"))))


def _answer(answers: TextIO, line: str) -> None:
    answers.write(line + "\n")
    answers.flush()


if __name__ == "__main__":
    main()
