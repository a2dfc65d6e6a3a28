"""kill -9 of workers and of the run itself: the job ends, or --resume ends it, and the output is that of a run that nobody disturbed."""

from __future__ import annotations

import random

import pytest
from tests.bulk.conftest import digest, write_jsonl

from munjang.bulk.output import open_output
from munjang.limits import usable_cores

psutil = pytest.importorskip("psutil")
pytest.importorskip("pyarrow")
from tests.bulk.killing import Run  # noqa: E402 - needs psutil

pytestmark = pytest.mark.skipif(usable_cores() < 2, reason="needs two cores")
NEEDS = {"dask": "distributed", "ray": "ray", "spark": "pyspark"}


@pytest.fixture(autouse=True)
def no_run_outlives_its_test():
    yield
    for process in Run.started:
        process.kill()
        process.communicate()
    Run.started.clear()


def check(output, clean, rows: int) -> None:
    assert digest(output) == digest(clean)
    opened = open_output(output)
    assert opened.check() == []
    ids = [id for block in opened.blocks() for id in block.ids]
    assert ids == [f"r{number}" for number in range(rows)]
    assert not list(output.glob("**/.*.part"))


@pytest.mark.parametrize("cluster", [None, pytest.param("dask", marks=pytest.mark.slow)], ids=["local", "dask"])
def test_a_job_survives_kills_of_workers_and_of_itself(tmp_path, encode, tiny_bert_folder, cluster):
    if cluster:
        pytest.importorskip(NEEDS[cluster])
    source = write_jsonl(tmp_path / "news.jsonl", 800)
    clean = encode(source, tmp_path / "clean", shard_rows=10, keep_text=False)

    def start() -> Run:
        return Run(source, tmp_path / "out", tiny_bert_folder, shard_rows=10, cluster=cluster)

    run = start()
    run.wait_for(3)
    run.kill_a_worker()
    run.wait_for(9)
    run.kill()
    assert run.done >= 9  # how many more is the machine's affair
    run = start()
    run.wait_for(run.done + 2)
    run.kill_a_worker()
    code, messages = run.finish()
    assert code == 0, messages
    check(tmp_path / "out", clean, 800)


@pytest.mark.slow
@pytest.mark.parametrize("cluster", [None, *NEEDS], ids=["local", *NEEDS])
def test_a_job_of_600_shards_survives_50_kills_of_workers_and_5_of_itself(tmp_path, encode, tiny_bert_folder, cluster):
    if cluster:
        pytest.importorskip(NEEDS[cluster])
    source = write_jsonl(tmp_path / "news.jsonl", 6_000)
    clean = encode(source, tmp_path / "clean", shard_rows=10, keep_text=False)
    chance = random.Random(7)
    deeds = ["worker"] * 50 + ["run"] * 5
    chance.shuffle(deeds)
    runs: list[Run] = []

    def start() -> Run:
        runs.append(Run(source, tmp_path / "out", tiny_bert_folder, shard_rows=10, cluster=cluster))
        return runs[-1]

    run = start()
    for place, deed in enumerate(deeds, start=1):
        run.wait_for(place * 3)
        if deed == "run":
            run.kill()
            run = start()
        else:
            while not run.kill_a_worker():
                assert run.done < 600
                run = start() if run.ended else run
    code, messages = run.finish()
    if code:  # a run may give up a shard whose workers die again and again; --resume goes on
        assert "died" in messages
        code, messages = start().finish()
    assert code == 0, messages
    assert len(runs) >= 6
    check(tmp_path / "out", clean, 6_000)
