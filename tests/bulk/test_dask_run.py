"""The same job on a Dask cluster: the same bytes; errors that are told; nobody else can reach it."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from types import SimpleNamespace

import numpy as np
import pytest
from tests.bulk.conftest import digest, find_listening, sentences

pytest.importorskip("pyarrow")
distributed = pytest.importorskip("distributed")

from munjang.bulk import dask_run  # noqa: E402 - needs distributed
from munjang.bulk.dask_run import (  # noqa: E402
    Patience,
    check_address,
    connect,
    run_dask,
)
from munjang.bulk.job import BulkSettings  # noqa: E402
from munjang.bulk.plan import plan_shards  # noqa: E402
from munjang.bulk.run import describe  # noqa: E402
from munjang.bulk.shard_worker import Work  # noqa: E402
from munjang.errors import FolderError, InputError, MunjangError, UsageError  # noqa: E402
from munjang.limits import usable_cores  # noqa: E402


@pytest.fixture(scope="module")
def client():
    """A cluster of processes, shared by the tests of this file."""
    with connect("local", workers=min(2, usable_cores()), threads=1) as client:
        yield client


def work_for(news, output, model, **settings) -> tuple[Work, list]:
    job = describe([str(news)], model, BulkSettings(**{"shard_rows": 20, "keep_text": True, **settings}))
    return Work(job, str(output), 1), list(plan_shards(job.inputs, job.settings))


def test_the_output_is_byte_equal_to_the_local_one(tmp_path, news, encode, client, tiny_bert_folder, copy_output):
    here = copy_output(tmp_path / "here")
    there = encode(news, tmp_path / "there", dask=client.scheduler.address)
    assert digest(there) == digest(here)


def test_nothing_listens_beyond_this_machine(client):
    listening = find_listening()
    assert listening
    assert {each.laddr.ip for each in listening if each.family == socket.AF_INET} == {"127.0.0.1"}
    assert not [each for each in listening if each.family == socket.AF_INET6 and each.laddr.ip != "::1"]


def test_only_receipts_come_back(tmp_path, news, client, tiny_bert_folder):
    work, specs = work_for(news, tmp_path, tiny_bert_folder)
    receipts = []
    run_dask(work, specs, client=client, done=receipts.append)
    assert sorted(receipt.shard for receipt in receipts) == [0, 1, 2, 3, 4]
    assert all(len(str(receipt)) < 1_000 for receipt in receipts)


def test_a_problem_is_told_with_its_shard(tmp_path, news, client, tiny_bert_folder):
    work, specs = work_for(news, tmp_path, tiny_bert_folder)
    (tmp_path / "vectors").write_text("in the way")
    with pytest.raises(MunjangError, match="shard 0, news.jsonl from 0 to"):
        run_dask(work, specs[:1], client=client, done=print)


def test_another_model_on_a_worker_is_refused(tmp_path, news, client, tiny_bert_folder):
    work, specs = work_for(news, tmp_path, tiny_bert_folder)
    wrong = replace(work, job=replace(work.job, model=replace(work.job.model, fingerprint="0" * 64)))
    with pytest.raises(FolderError, match="put the same model folder on every machine"):
        run_dask(wrong, specs, client=client, done=print)


def test_a_cluster_without_workers_is_given_up(tmp_path, news, tiny_bert_folder):
    work, specs = work_for(news, tmp_path, tiny_bert_folder)
    free = {"dashboard_address": "127.0.0.1:0"}
    cluster = distributed.LocalCluster(
        n_workers=0, processes=False, protocol="tcp://", host="127.0.0.1", dashboard_address=None, scheduler_kwargs=free, scheduler_port=0
    )
    with (
        cluster,
        distributed.Client(cluster, set_as_default=False) as client,
        pytest.raises(MunjangError, match=r"no worker since 0 seconds\n"),
    ):
        run_dask(work, specs, client=client, done=print, no_workers_seconds=0.3)


def test_a_worker_that_dies_while_the_cluster_starts_costs_a_new_try():
    tries = []

    def cluster(**settings):
        tries.append(settings["n_workers"])
        if len(tries) < 3:
            raise RuntimeError("Nanny failed to start.")
        return "a cluster"

    assert dask_run._start_cluster(cluster, 2, 1) == "a cluster"
    tries.clear()
    with pytest.raises(MunjangError, match="died while it started, 3 times"):
        dask_run._start_cluster(lambda **_: tries.append(0) or _failed(), 2, 1)
    assert len(tries) == 3


def _failed():
    raise RuntimeError("Nanny failed to start.")


class LostFuture:
    """A task that was done by a worker that is gone, and its receipt with it."""

    def result(self, timeout: float) -> None:
        raise TimeoutError


def test_a_receipt_that_was_lost_with_the_last_worker_is_not_waited_for_for_ever(tmp_path, news, tiny_bert_folder, monkeypatch):
    _, specs = work_for(news, tmp_path, tiny_bert_folder)
    workers = {"tcp://127.0.0.1:1": 1}
    client = SimpleNamespace(status="running", nthreads=lambda: workers)
    tasks, patience, lost = dask_run._Tasks(client, "plugin"), Patience(client, 0.0, "go on"), LostFuture()
    monkeypatch.setattr(dask_run, "wait", lambda *_, **__: SimpleNamespace(done={lost}))
    tasks.open[lost] = specs[0], 1
    assert list(tasks.take_finished(patience)) == []
    assert tasks.open == {lost: (specs[0], 1)}
    workers.clear()
    with pytest.raises(MunjangError, match="no worker since"):
        list(tasks.take_finished(patience))


def test_a_shard_whose_workers_died_is_handed_out_again_until_it_is_given_up(tmp_path, news, tiny_bert_folder, monkeypatch):
    _, specs = work_for(news, tmp_path, tiny_bert_folder)

    def killed(**_):
        raise distributed.KilledWorker("task", "tcp://127.0.0.1:1", 3)

    client = SimpleNamespace(status="running", submit=lambda *_, key, **__: DeadFuture(key, killed))
    tasks, patience = dask_run._Tasks(client, "plugin"), Patience(client, 0.0, "go on")
    monkeypatch.setattr(dask_run, "wait", lambda open, **_: SimpleNamespace(done=set(open)))
    tasks.start(specs[1:2])
    for tries in range(2, dask_run.ATTEMPTS + 1):
        assert list(tasks.take_finished(patience)) == []
        assert [(future.key, *value) for future, value in tasks.open.items()] == [(f"plugin-1-{tries}", specs[1], tries)]
    with pytest.raises(
        MunjangError,
        match=r"shard 1: its workers died again and again \(tcp://127.0.0.1:1\)\n.*smaller --shard-rows.*--resume",
    ):
        list(tasks.take_finished(patience))


@dataclass(frozen=True)
class DeadFuture:
    key: str
    result: Callable[..., None]


def test_a_problem_takes_back_what_the_cluster_has_still_to_do(tmp_path, news, client, tiny_bert_folder):
    work, specs = work_for(news, tmp_path, tiny_bert_folder, shard_rows=1)
    (tmp_path / "vectors").write_text("in the way")
    with pytest.raises(MunjangError, match=r"shard \d+, news.jsonl from"):
        run_dask(work, specs, client=client, done=print)
    until = time.monotonic() + 20
    while (left := client.run_on_scheduler(lambda dask_scheduler: len(dask_scheduler.tasks))) and time.monotonic() < until:
        time.sleep(0.05)
    assert left == 0


def test_a_connection_that_is_lost_in_the_middle_is_told(tmp_path, news, client, tiny_bert_folder):
    work, specs = work_for(news, tmp_path, tiny_bert_folder)
    mine = distributed.Client(client.scheduler.address, set_as_default=False)
    receipts = []

    def done(receipt) -> None:
        receipts.append(receipt)
        mine.close()

    with pytest.raises(MunjangError, match=r"the connection to the Dask scheduler was lost\n  continue with --resume"):
        run_dask(work, specs, client=mine, done=done)
    assert receipts


@pytest.mark.parametrize("address", ["tcp://10.0.0.5:8786", "scheduler:8786", "tcp://127.0.0.1.example:8786", "ucx://10.0.0.5:1"])
def test_an_address_on_a_network_needs_tls(address):
    with pytest.raises(UsageError, match="nor encrypted"):
        check_address(address)


def test_a_scheduler_that_is_not_there_is_told(monkeypatch):
    monkeypatch.setattr("munjang.bulk.dask_run._SECONDS", 1)
    with pytest.raises(MunjangError, match="there is no Dask scheduler"), connect("tcp://127.0.0.1:9", workers=1, threads=1):
        pass


def test_encode_dask_gives_the_right_meta_and_vectors(client, tiny_bert_folder, tmp_path):
    pandas, frames = pytest.importorskip("pandas"), pytest.importorskip("dask.dataframe")
    from munjang.bulk.dask_frame import encode_dask
    from munjang.models.sentence_encoder import SentenceEncoder

    texts = sentences(40)
    frame = frames.from_pandas(pandas.DataFrame({"text": texts, "n": range(40)}), npartitions=3)
    lazy = encode_dask(frame, "text", model=tiny_bert_folder)
    with client.as_current():
        found = lazy.compute()
        lazy.to_parquet(tmp_path / "out", write_index=False)
    assert list(lazy.columns) == ["text", "n", "vector"]
    assert found.dtypes.to_dict() == lazy.dtypes.to_dict()
    expected = SentenceEncoder.load(tiny_bert_folder).encode(texts)
    np.testing.assert_allclose(np.stack(found["vector"].to_list()), expected, atol=2e-6)
    dataset = pytest.importorskip("pyarrow.dataset").dataset(tmp_path / "out")
    assert str(dataset.schema.field("vector").type).startswith("fixed_size_list")
    with pytest.raises(InputError, match="no column 'body'"):
        encode_dask(frame, "body", model=tiny_bert_folder)
    holes = frames.from_pandas(pandas.DataFrame({"text": ["rain", None]}, dtype=object), npartitions=1)
    with (
        client.as_current(),
        pytest.raises(InputError, match=r"'text' holds a \w+, expected texts only\n  fill or drop missing"),
    ):
        encode_dask(holes, "text", model=tiny_bert_folder).compute()


def test_classify_dask_labels_as_the_classifier_does_here(client, tiny_bert_folder, tmp_path):
    pandas, frames = pytest.importorskip("pandas"), pytest.importorskip("dask.dataframe")
    from munjang.analyze.classify.apply import apply_classifier
    from munjang.analyze.classify.fitting import fit_classifier
    from munjang.analyze.classify.saving import save_classifier
    from munjang.bulk.dask_frame import classify_dask
    from munjang.models.sentence_encoder import SentenceEncoder

    texts = sentences(40)
    encoder = SentenceEncoder.load(tiny_bert_folder)
    made = replace(fit_classifier(texts, [f"kind {n % 2}" for n in range(40)], encoder, strength=10.0), encoder_name=str(tiny_bert_folder))
    save_classifier(made, tmp_path / "kinds")
    frame = frames.from_pandas(pandas.DataFrame({"text": texts}), npartitions=3)
    lazy = classify_dask(frame, "text", tmp_path / "kinds", into="kind")
    with client.as_current():
        labelled = lazy.compute()
    here = apply_classifier(made, texts, encoder)
    assert labelled.dtypes.to_dict() == lazy.dtypes.to_dict()
    assert labelled["kind"].tolist() == [each.label for each in here]
    np.testing.assert_allclose(labelled["kind_probability"], [each.probability for each in here], atol=2e-6)
    with pytest.raises(InputError, match="no column 'body'"):
        classify_dask(frame, "body", tmp_path / "kinds")
    save_classifier(replace(made, encoder=""), tmp_path / "vectors")
    with pytest.raises(UsageError, match="was made of vectors"):
        classify_dask(frame, "text", tmp_path / "vectors")


def test_pairs_do_not_wait_for_ever_for_a_cluster_without_workers(tmp_path, monkeypatch, copy_output):
    from munjang.bulk.pair_blocks import mine_output

    monkeypatch.setattr("munjang.bulk.dask_run.NO_WORKERS_SECONDS", 0.3)
    output = copy_output(tmp_path / "out")
    with (
        distributed.LocalCluster(n_workers=0, processes=False, dashboard_address=None) as empty,
        distributed.Client(empty, set_as_default=False) as nobody,
        pytest.raises(MunjangError, match=r"the Dask cluster has no worker since 0 seconds\n  start some, then call it again"),
    ):
        mine_output(str(output), client=nobody)


def test_pairs_whose_cluster_is_gone_are_told(tmp_path, client, copy_output):
    from munjang.bulk.pair_blocks import mine_output

    output = copy_output(tmp_path / "out")
    mine = distributed.Client(client.scheduler.address, set_as_default=False)
    with pytest.raises(MunjangError, match=r"the connection to the Dask scheduler was lost\n  call it again"):
        mine_output(str(output), client=mine, progress=lambda _: mine.close())


def test_pairs_on_a_cluster_are_those_of_mine(tmp_path, client, copy_output):
    from munjang.analyze.pairs import mine_pairs
    from munjang.bulk.output import open_output
    from munjang.bulk.pair_blocks import SAME, count_blocks, mine_output

    output = copy_output(tmp_path / "out")
    blocks = list(open_output(output).blocks())
    ids = [id for block in blocks for id in block.ids]
    mined = mine_pairs(np.concatenate([block.vectors_ND for block in blocks]), threshold=0.5, top=10_000)
    expected = {(ids[pair.a], ids[pair.b]): pair.score for pair in mined.pairs if pair.score < SAME - 1e-6}
    here = mine_output(str(output), threshold=0.5)
    done: list[int] = []
    there = mine_output(str(output), threshold=0.5, client=client, progress=done.append)
    assert there == here
    assert sum(done) == count_blocks(str(output)) == 15
    found = {(pair.a, pair.b): pair.score for pair in here.pairs}
    assert expected.keys() - found.keys() == set()
    for pair, score in expected.items():
        assert found[pair] == pytest.approx(score, abs=2e-6)
    assert here.same > 0
    assert not here.cut
    best = mine_output(str(output), threshold=0.5, top=5)
    assert best.pairs == here.pairs[:5]
    assert best.cut
    assert json.dumps(best.pairs)


def test_near_duplicates_on_a_cluster_are_those_found_here(tmp_path, client, monkeypatch):
    from munjang.bulk import dedupe_output as module
    from munjang.vectors import inverted_lists

    monkeypatch.setattr(inverted_lists, "ALONE", 100)
    monkeypatch.setattr(module, "_LISTS", 4)
    monkeypatch.setattr(module, "_RUN_BYTES", 2**16)
    chance = np.random.default_rng(0)
    centre = chance.standard_normal((100, 32)) / 6
    vectors = centre[chance.integers(0, 100, 3_000)] + chance.standard_normal((3_000, 32)) * 0.05
    np.save(tmp_path / "rows.npy", vectors.astype(np.float32))
    here = module.dedupe_output(tmp_path / "rows.npy", threshold=0.85)
    done: list[int] = []
    there = module.dedupe_output(tmp_path / "rows.npy", threshold=0.85, work=tmp_path / "work", client=client, progress=done.append)
    assert len(here.row_G) > 100
    for name in ("row_G", "kept_G", "score_G"):
        assert getattr(there, name).tolist() == getattr(here, name).tolist()
    assert sum(done) == module.PASSES * 3_000
    assert not (tmp_path / "work").exists()


def test_a_worker_that_does_not_see_the_working_folder_says_so(tmp_path, client):
    from munjang.bulk import dedupe_output as module

    task = module._Task(str(tmp_path / "elsewhere"), "a job", "<f4", 32, 4, 1, 0.9, 0)
    with pytest.raises(InputError, match="write the output to a file system that every worker reads and writes"):
        list(dask_run.run_tasks(client, module.write_pairs_of, [(task, range(4))], then="call it again"))
