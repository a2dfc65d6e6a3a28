"""`munjang bulk`, and what other commands do with its folder: docs/bulk.md, line by line."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
from tests.cli.doc_pages import run_lines, write_shown_files
from tests.postgres import postgres_url
from tests.terminal import Terminal

from munjang.models import registry
from munjang.models.prompted_encoder import PromptedEncoder
from munjang.types import Vectors

pytest.importorskip("pyarrow")
ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/bulk.md"
Munjang = Callable[..., Any]


@pytest.fixture
def folder(tiny_bert_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The page's files in the current folder, and a tiny model as the default one."""
    tiny = registry.Found("tiny", tiny_bert_folder, "package")
    monkeypatch.setattr(registry, "_find_default", lambda: tiny)
    monkeypatch.setattr("munjang.library.open_store.choose_analyser", lambda *, noted=False: "bigrams")
    monkeypatch.chdir(tmp_path)
    write_shown_files(PAGE, tmp_path)
    return tmp_path


@pytest.mark.usefixtures("folder")
def test_every_line_and_block_works(munjang: Munjang, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("distributed")
    assert run_lines(PAGE, munjang) >= 9
    for block in re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), flags=re.DOTALL):
        exec(block, {})
    assert "4 0\n['a', 'b', 'c', 'd'] (4, 32)" in capsys.readouterr().out


@pytest.mark.parametrize("kind", ["file", "server"])
def test_a_library_takes_the_vectors_without_encoding_again(
    folder: Path, munjang: Munjang, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    library = "news.db" if kind == "file" else f"{postgres_url()}#from_bulk"
    long = "rain and snow " * 40
    (folder / "news.csv").write_text(f"id,text\na,the rain\nb,the sun\nc,the moon\nd,{long}\n")
    assert munjang("bulk", "news.csv", "-o", "vectors", "--keep-text", "--shard-rows", "2", "--workers", "1").code == 0
    encoded: list[str] = []
    real = PromptedEncoder.encode

    def watched(model: PromptedEncoder, texts: Iterable[str], /) -> Vectors:
        listed = list(texts)
        encoded.extend(listed)
        return real(model, listed)

    with monkeypatch.context() as patch:
        patch.setattr(PromptedEncoder, "encode", watched)
        report = munjang("add", library, "--from-bulk", "vectors", "--json").json
        assert (report["added"], report["documents"]) == (4, 4)
        assert munjang("add", library, "vectors", "--json").json["unchanged"] == 4
    assert encoded  # parts of the one text that the model could not read to its end
    assert all(len(text) < len(long) and text in long for text in encoded)
    assert munjang("add", "plain.db", "news.csv").code == 0
    both = [munjang("search", library, "raining since morning", "--json").json for library in (library, "plain.db")]
    assert [hit["id"] for hit in both[0]] == [hit["id"] for hit in both[1]]
    assert [hit["score"] for hit in both[0]] == pytest.approx([hit["score"] for hit in both[1]], abs=1e-5)


@pytest.mark.usefixtures("folder")
def test_vectors_that_a_library_cannot_take_are_refused(munjang: Munjang) -> None:
    for name, options, message in (
        ("bare", [], "without texts"),
        ("small", ["--keep-text", "--precision", "int8"], "its precision is int8, the library's is float32"),
        ("narrow", ["--keep-text", "--dimensions", "8"], "its dimension is 8, the library's is 32"),
    ):
        assert munjang("bulk", "news.csv", "-o", name, "--workers", "1", *options).code == 0
        refused = munjang("add", "news.db", "--from-bulk", name)
        assert refused.code == 2
        assert message in refused.err
    assert munjang("add", "other.db", "news.csv", "--pooling", "cls").code == 0
    assert munjang("bulk", "news.csv", "-o", "whole", "--workers", "1", "--keep-text").code == 0
    refused = munjang("add", "other.db", "--from-bulk", "whole")
    assert (refused.code, "its model is" in refused.err) == (2, True)
    assert (munjang("add", "news.db", "--from-bulk", "news.csv").code, munjang("add", "news.db").code) == (2, 2)


def test_rejected_rows_are_noted_and_a_changed_call_is_refused(folder: Path, munjang: Munjang) -> None:
    (folder / "bad.jsonl").write_text('{"text": "rain"}\n{broken\n')
    done = munjang("bulk", "bad.jsonl", "-o", "out", "--workers", "1", "--json", "--merge", "all.parquet")
    assert done.code == 0
    assert "1 row could not be used; out/rejected.jsonl says which and why" in done.err
    assert (done.json["rows"], done.json["rejected"], len(done.json["merged_sha256"])) == (1, 1, 64)
    assert json.loads((folder / "out/rejected.jsonl").read_text())["line"] == 2
    again = munjang("bulk", "bad.jsonl", "-o", "out", "--workers", "1")
    assert (again.code, "--resume" in again.err) == (2, True)
    changed = munjang("bulk", "bad.jsonl", "-o", "out", "--workers", "1", "--resume", "--normalize")
    assert changed.code == 2
    assert "normalize: False then, True now" in changed.err


@pytest.mark.usefixtures("folder")
def test_calls_that_make_no_sense_are_refused(munjang: Munjang) -> None:
    assert munjang("bulk", "news.csv").code == 2
    assert munjang("bulk", "none.csv", "-o", "out").code == 3
    assert "nor encrypted" in munjang("bulk", "news.csv", "-o", "out", "--dask", "tcp://10.0.0.1:8786").err
    assert munjang("bulk", "news.csv", "-o", "other", "--workers", "1").code == 0
    refused = munjang("pairs", "other", "--groups")
    assert (refused.code, "gives pairs only" in refused.err) == (2, True)


def test_the_bar_says_shards_bytes_and_rate(folder: Path, tiny_bert_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from munjang.bulk.job import BulkSettings, Receipt
    from munjang.bulk.plan import plan_shards
    from munjang.bulk.run import describe
    from munjang.cli.bulk import bulk_progress

    terminal = Terminal(is_one=True)
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr("sys.stderr", terminal)
    job = describe(["news.csv"], tiny_bert_folder, BulkSettings(shard_rows=2))
    specs = list(plan_shards(job.inputs, job.settings))
    with bulk_progress() as watch:
        advance = watch(job, specs)
        for spec in specs:
            advance(spec, Receipt(spec.number, 2, 0, 2, 2, 9, 0, 0.1, ()), spec.number == 0)
    assert "2/2 shards  170 bytes of 170 bytes" in terminal.getvalue()
    assert "rows/s" in terminal.getvalue()


def test_without_a_terminal_a_line_says_the_same_now_and_then(
    folder: Path, tiny_bert_folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from munjang.bulk.job import BulkSettings, Receipt
    from munjang.bulk.plan import plan_shards
    from munjang.bulk.run import describe
    from munjang.cli.bulk import bulk_progress

    now = iter([0.0, 10.0, 40.0])
    monkeypatch.setattr("time.monotonic", lambda: next(now))
    job = describe(["news.csv"], tiny_bert_folder, BulkSettings(shard_rows=2))
    specs = list(plan_shards(job.inputs, job.settings))
    with bulk_progress() as watch:
        advance = watch(job, specs)
        for spec in specs:
            advance(spec, Receipt(spec.number, 2, 0, 2, 2, 9, 0, 0.1, ()), False)
    monkeypatch.undo()
    assert capsys.readouterr().err == "munjang: bulk: 2 of 2 shards, 170 bytes of 170 bytes, 0 rows/s, 0:00 left\n"


def test_pairs_of_a_folder_are_shown_written_and_bounded(folder: Path, munjang: Munjang) -> None:
    assert munjang("bulk", "news.csv", "-o", folder / "vectors", "--shard-rows", "2", "--workers", "1").code == 0
    found = munjang("pairs", folder / "vectors", "--threshold", "-1", "--json")
    assert found.code == 0, found.err
    every = found.json["pairs"]
    assert len(every) == 6
    bounded = munjang("pairs", folder / "vectors", "--threshold", "-1", "--top", "2", "-o", "best.jsonl")
    assert bounded.code == 0, bounded.err
    assert "there are more pairs than the 2 best (--top)" in bounded.err
    assert "best.jsonl" in bounded.out
    assert [json.loads(line) for line in Path("best.jsonl").read_text(encoding="utf-8").splitlines()] == every[:2]
    shown = munjang("pairs", folder / "vectors", "--threshold", "-1").out
    assert all(re.search(rf"{pair['score']:.3f}\s+{pair['a']}\s+{pair['b']}", shown) for pair in every)


def test_pairs_of_a_folder_are_the_same_by_dask(folder: Path, munjang: Munjang) -> None:
    pytest.importorskip("distributed")
    assert munjang("bulk", "news.csv", "-o", folder / "vectors", "--shard-rows", "2", "--workers", "1").code == 0
    both = [munjang("pairs", folder / "vectors", "--threshold", "-1", "--json", *more).json for more in ((), ("--dask", "local"))]
    assert [(pair["a"], pair["b"]) for pair in both[0]["pairs"]] == [(pair["a"], pair["b"]) for pair in both[1]["pairs"]]


def test_a_library_takes_vectors_and_plain_files_together(folder: Path, munjang: Munjang) -> None:
    assert munjang("bulk", "news.csv", "-o", "vectors", "--keep-text", "--workers", "1").code == 0
    (folder / "more.jsonl").write_text('{"id": "z", "text": "the sun is in the river"}\n', encoding="utf-8")
    report = munjang("add", "all.db", "vectors", "more.jsonl", "--json").json
    assert (report["added"], report["documents"]) == (5, 5)
    assert munjang("search", "all.db", "the sun is in the river", "-k", "1", "--json").json[0]["id"] == "z"


def test_a_shard_of_rejected_rows_adds_nothing(folder: Path, munjang: Munjang) -> None:
    (folder / "bad.jsonl").write_text('{"text": "rain"}\n{broken\n{"text": "sun"}\n')
    assert munjang("bulk", "bad.jsonl", "-o", "out", "--workers", "1", "--shard-rows", "1", "--keep-text").code == 0
    assert munjang("add", "few.db", "out", "--json").json["documents"] == 2
