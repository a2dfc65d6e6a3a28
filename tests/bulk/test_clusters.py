"""The same job on Ray and on Spark: the same bytes, problems that are told, nobody else can reach it. Skipped where they are not installed.

`./run clusters` makes an environment that has them. Each cluster takes some seconds to start, so most of these tests are slow.
"""

from __future__ import annotations

import os
from contextlib import contextmanager
from dataclasses import replace
from types import SimpleNamespace

import pytest
from tests.bulk.conftest import digest, find_listening

from munjang.bulk.cluster_address import check_ray_address
from munjang.bulk.job import BulkSettings
from munjang.bulk.output import open_output
from munjang.bulk.plan import plan_shards
from munjang.bulk.run import describe, encode_bulk
from munjang.bulk.shard_worker import Work, run_in_process
from munjang.bulk.worker_config import WorkerConfig
from munjang.errors import FolderError, MunjangError, UsageError
from munjang.limits import usable_cores

pytest.importorskip("pyarrow")
MODULES = {"ray": "ray", "spark": "pyspark"}
# both leave sockets and files to the garbage collector, and Ray says what a coming version will do
pytestmark = [pytest.mark.filterwarnings("ignore"), pytest.mark.skipif(usable_cores() < 2, reason="needs two cores")]
WORKERS = 2


@pytest.fixture(scope="module", params=MODULES)
def cluster(request):
    """A cluster of processes on this machine, and what does shards on it."""
    kind = request.param
    pytest.importorskip(MODULES[kind], reason=f"the extra {kind} is not installed")
    if kind == "ray":
        from munjang.bulk import ray_run

        with ray_run.connect("local", workers=WORKERS, threads=1):
            yield SimpleNamespace(kind=kind, run=ray_run.run_ray)
        return
    from munjang.bulk import spark_run

    with spark_run.connect("local", workers=WORKERS, threads=1) as context:
        yield SimpleNamespace(kind=kind, run=lambda work, specs, done: spark_run.run_spark(work, specs, context=context, done=done))


@contextmanager
def held(cluster, monkeypatch):
    """Let jobs use the cluster that is there."""

    def run_at(address, work, specs, *, workers, done):
        cluster.run(work, specs, done=done)

    monkeypatch.setattr(f"munjang.bulk.{cluster.kind}_run.run_at", run_at)
    yield


def work_for(news, output, model, **settings) -> tuple[Work, list]:
    job = describe([str(news)], model, BulkSettings(**{"shard_rows": 20, "keep_text": True, **settings}))
    return Work(job, str(output), 1), list(plan_shards(job.inputs, job.settings))


@pytest.mark.slow
def test_the_output_is_byte_equal_to_the_local_one(tmp_path, news, tiny_bert_folder, cluster, monkeypatch, copy_output):
    told = []

    def watch(job, specs):
        return lambda spec, receipt, before: told.append(spec.number)

    with held(cluster, monkeypatch):
        options = {"model": tiny_bert_folder, "shard_rows": 20, "keep_text": True, "workers": WORKERS, cluster.kind: "local"}
        report = encode_bulk([news], tmp_path / "there", **options, watch=watch)
    assert (report.rows, report.rejected) == (90, 3)
    assert sorted(told) == [0, 1, 2, 3, 4]
    assert digest(tmp_path / "there") == digest(copy_output(tmp_path / "here"))
    assert open_output(tmp_path / "there").check() == []


@pytest.mark.slow
def test_a_problem_is_told_with_its_shard(tmp_path, news, tiny_bert_folder, cluster):
    work, specs = work_for(news, tmp_path, tiny_bert_folder)
    (tmp_path / "vectors").write_text("in the way")
    with pytest.raises(MunjangError, match="shard 0, news.jsonl from 0 to"):
        cluster.run(work, specs[:1], done=print)
    wrong = replace(work, job=replace(work.job, model=replace(work.job.model, fingerprint="0" * 64)))
    with pytest.raises(FolderError, match="put the same model folder on every machine"):
        cluster.run(wrong, specs, done=print)


@pytest.mark.slow
def test_nothing_listens_beyond_this_machine(cluster):
    listening = find_listening()
    assert listening
    beyond = {each.laddr for each in listening if each.laddr.ip.removeprefix("::ffff:") not in ("127.0.0.1", "::1")}
    assert not beyond


@pytest.mark.slow
def test_workers_of_a_local_cluster_have_the_priority_of_the_run(cluster):
    """Ray gives its workers the lowest but four otherwise, and beside other work they get next to nothing."""
    if cluster.kind == "ray":
        ray = pytest.importorskip("ray")
        found = ray.get(ray.remote(lambda: os.nice(0)).remote())
    else:
        from pyspark import SparkContext

        [found] = SparkContext.getOrCreate().parallelize([0], 1).map(os.nice).collect()
    assert found == os.nice(0)


@pytest.mark.slow
def test_batches_of_data_frames_become_vectors(tmp_path, tiny_bert_folder, cluster):
    """`encode_batch` as Ray Data and Spark call it."""
    import numpy as np
    import pyarrow
    from tests.bulk.conftest import sentences

    from munjang import SentenceEncoder, encode_batch

    texts = sentences(40)
    model = str(tiny_bert_folder)
    if cluster.kind == "ray":
        ray = pytest.importorskip("ray.data")
        rows = ray.from_arrow(pyarrow.table({"n": list(range(40)), "text": texts}))
        found = rows.map_batches(encode_batch, batch_format="pyarrow", fn_args=["text"], fn_kwargs={"model": model}).take_all()
    else:
        from pyspark.sql import SparkSession

        frame = SparkSession.builder.getOrCreate().createDataFrame(list(enumerate(texts)), "n long, text string").repartition(3)
        schema = "n long, text string, vector array<float>"
        found = frame.mapInArrow(lambda batches: (encode_batch(batch, "text", model=model) for batch in batches), schema).collect()
    found = sorted(found, key=lambda row: row["n"])
    assert [row["text"] for row in found] == texts
    expected = SentenceEncoder.load(tiny_bert_folder).encode(texts)
    np.testing.assert_allclose([list(row["vector"]) for row in found], expected, atol=2e-6)


def test_a_cluster_that_anyone_can_reach_is_refused(monkeypatch, tmp_path, news):
    monkeypatch.delenv("RAY_USE_TLS", raising=False)
    for address in ("10.0.0.1:6379", "auto", "ray://head.example:10001"):
        with pytest.raises(UsageError, match="neither on this machine nor encrypted"):
            encode_bulk([news], tmp_path / "out", ray=address)
    assert not (tmp_path / "out").exists()
    check_ray_address("127.0.0.1:6379")
    monkeypatch.setenv("RAY_USE_TLS", "1")
    check_ray_address("10.0.0.1:6379")


def test_one_job_has_one_cluster():
    with pytest.raises(UsageError, match="--dask and --spark are two clusters"):
        WorkerConfig(dask="local", spark="local").processes()
    assert WorkerConfig(ray="auto", workers=10_000).processes() == 10_000  # of other machines
    with pytest.raises(UsageError, match="cores"):
        WorkerConfig(ray="local", workers=10_000).processes()


def test_a_worker_without_its_model_says_so_instead_of_dying(tmp_path, news, tiny_bert_folder):
    work, specs = work_for(news, tmp_path, tiny_bert_folder)
    gone = replace(work, job=replace(work.job, model=replace(work.job.model, name="no-such-model", path=str(tmp_path / "gone"))))
    problem = run_in_process(gone, specs[0])
    assert "no-such-model" in problem.message
    first, second = run_in_process(work, specs[0]), run_in_process(work, specs[0])
    assert first == second
