"""The worker processes of a run on this machine: one that dies is replaced, and a problem ends them all."""

from __future__ import annotations

import sys
import threading
import time

import pytest

from munjang.bulk.job import BulkSettings, ShardSpec
from munjang.bulk.local_run import run_local
from munjang.bulk.run import describe
from munjang.bulk.shard_worker import Work
from munjang.errors import MunjangError, NoSpace, UsageError

WORKER = """
import json, os, sys
first = json.loads(sys.stdin.readline())
print('{"ready": true}', flush=True)
for line in sys.stdin:
    shard = json.loads(line)["number"]
    if shard == 1:
        BEHAVIOUR
    print(json.dumps({"receipt": {"shard": shard, "rows": 0, "rejected": 0, "lines": 0, "encoded": 0, "tokens": 0, "too_long": 0,
                                  "seconds": 0, "files": []}}), flush=True)
"""


def run_with(behaviour: str, news, tmp_path, tiny_bert_folder) -> list[int]:
    from munjang.bulk.plan import plan_shards

    job = describe([str(news)], tiny_bert_folder, BulkSettings(shard_rows=20))
    done: list[int] = []
    command = (sys.executable, "-c", WORKER.replace("BEHAVIOUR", behaviour))
    specs = list(plan_shards(job.inputs, job.settings))
    run_local(Work(job, str(tmp_path), 1), specs, workers=2, done=lambda receipt: done.append(receipt.shard), command=command)
    return sorted(done)


def test_a_worker_that_dies_is_replaced(tmp_path, news, tiny_bert_folder):
    once = f"flag = {str(tmp_path / 'died')!r}; os.path.exists(flag) or (open(flag, 'w'), os.kill(os.getpid(), 9))"
    assert run_with(once, news, tmp_path, tiny_bert_folder) == [0, 1, 2, 3, 4]
    assert (tmp_path / "died").exists()


def test_a_shard_over_which_every_worker_dies_ends_the_run(tmp_path, news, tiny_bert_folder):
    with pytest.raises(MunjangError, match=r"shard 1: its worker died 5 times \(exit code -9\)\n.*memory"):
        run_with("os.kill(os.getpid(), 9)", news, tmp_path, tiny_bert_folder)


def test_a_problem_of_a_worker_is_raised_as_what_it_was(tmp_path, news, tiny_bert_folder):
    problem = {"problem": {"kind": "NoSpace", "message": "shard 1: the disk is full"}}
    with pytest.raises(NoSpace, match="shard 1: the disk is full"):
        run_with(f"print(json.dumps({problem}), flush=True); continue", news, tmp_path, tiny_bert_folder)


def test_a_model_that_is_not_the_jobs_is_refused_by_the_worker(tmp_path, news, tiny_bert_folder):
    from dataclasses import replace

    from munjang.bulk.plan import plan_shards

    job = describe([str(news)], tiny_bert_folder, BulkSettings())
    other = replace(job, model=replace(job.model, fingerprint="0" * 64))
    with pytest.raises(MunjangError, match="put the same model folder on every machine"):
        run_local(Work(other, str(tmp_path), 1), plan_shards(job.inputs, job.settings), workers=1, done=print)


PROBLEM = 'print(json.dumps({"problem": {"kind": "NoSpace", "message": "shard 1: the disk is full"}}), flush=True); continue'
SLEEPER = WORKER.replace("if shard == 1:", "if shard == 0:\n        import time; time.sleep(300)\n    if shard == 1:")


def run_two(command: str, tmp_path, job, specs, done=print) -> None:
    run_local(Work(job, str(tmp_path), 1), specs, workers=2, done=done, command=(sys.executable, "-c", command))


@pytest.fixture
def job(tmp_path, tiny_bert_folder):
    (tmp_path / "a.txt").write_text("rain\n")
    return describe([str(tmp_path / "a.txt")], tiny_bert_folder, BulkSettings())


def test_a_problem_ends_the_other_workers_whatever_they_are_doing(tmp_path, job):
    started = time.monotonic()
    with pytest.raises(NoSpace, match="shard 1: the disk is full"):
        run_two(SLEEPER.replace("BEHAVIOUR", PROBLEM), tmp_path, job, [ShardSpec(number, 0, 0, 5) for number in (0, 1)])
    assert time.monotonic() - started < 60
    assert not [thread for thread in threading.enumerate() if thread.name == "munjang-bulk"]


def test_no_worker_is_started_once_the_run_is_over(tmp_path, job):
    stopped = threading.Event()
    marked = f"import os; open({str(tmp_path)!r} + '/worker-' + str(os.getpid()), 'w')\n" + WORKER.replace("BEHAVIOUR", "pass")

    def specs():
        yield ShardSpec(0, 0, 0, 5)
        stopped.wait(60)
        time.sleep(0.3)  # run_local is on its way to stop
        yield ShardSpec(1, 0, 0, 5)

    def done(receipt) -> None:
        stopped.set()
        raise UsageError("enough")

    with pytest.raises(UsageError, match="enough"):
        run_two(marked, tmp_path, job, specs(), done)
    assert len(list(tmp_path.glob("worker-*"))) == 1


@pytest.mark.parametrize("early", ["", "import sys; sys.stdin.readline()\n"], ids=["before it reads", "over its model"])
def test_workers_that_die_while_they_start_end_the_run(tmp_path, job, early):
    with pytest.raises(MunjangError, match=r"shard 0: its worker died 5 times \(exit code 7\)\n.*fewer --workers.*--resume"):
        run_two(early + "import os; os._exit(7)", tmp_path, job, [ShardSpec(0, 0, 0, 5)])
