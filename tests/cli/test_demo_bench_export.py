from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from tests.static_model import write_static

from munjang.cli import speed
from munjang.models.cross_vs_bi_timing import write_untrained_cross_encoder
from munjang.models.sentence_encoder import SentenceEncoder


def test_the_demo_answers_every_query_best_first(munjang: Callable[..., Any], tiny_bert_folder: Path) -> None:
    found = munjang("demo", "-k", "2", "--json", "--model", tiny_bert_folder).json
    assert found["sentences"] == 240
    assert [hit["rank"] for hit in found["hits"]] == [1, 2] * 10
    for first, second in zip(found["hits"][::2], found["hits"][1::2], strict=True):
        assert first["query"] == second["query"]
        assert first["score"] >= second["score"]


def test_the_demo_reads_the_nearest_again_by_their_tokens(munjang: Callable[..., Any], tiny_bert_folder: Path) -> None:
    plain = munjang("demo", "--json", "--model", tiny_bert_folder, "--no-rerank").json
    read = munjang("demo", "--json", "--model", tiny_bert_folder).json
    assert (plain["reranker"], read["reranker"]) == (None, tiny_bert_folder.name)
    nearest = munjang("demo", "-k", "10", "--json", "--model", tiny_bert_folder, "--no-rerank").json["hits"]
    assert {(hit["query"], hit["id"]) for hit in read["hits"]} <= {(hit["query"], hit["id"]) for hit in nearest}
    assert all(a["score"] >= b["score"] for a, b in pairwise(read["hits"]) if a["query"] == b["query"])
    assert read["hits"] != plain["hits"]


def test_the_demo_finds_english_subjects(munjang: Callable[..., Any], minilm: str) -> None:
    hits = munjang("demo", "-k", "1", "--json", "--model", minilm).json["hits"]
    assert sum(hit["on_subject"] for hit in hits if hit["language"] == "en") >= 4
    table = munjang("demo", "--model", minilm)
    assert "English: " in table.out
    assert "all-MiniLM-L6-v2" in table.err


def test_bench_measures_every_route(munjang: Callable[..., Any], tiny_bert_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(speed, "PEAK_SIDE", 256)
    found = munjang("bench", "encode", "--seconds", "0", "--json", "--model", tiny_bert_folder).json
    assert [(route["texts"], route["compute"]) for route in found["routes"]] == [
        ("short", "float32"),
        ("short", "int8"),
        ("passages", "float32"),
        ("passages", "int8"),
    ]
    assert all(route["texts_per_second"] > 0 and route["rounds"] == 1 for route in found["routes"])
    assert "tokens/s" in munjang("bench", "encode", "--seconds", "0", "--model", tiny_bert_folder).out
    assert "munjang bench encode" in munjang("bench").out


def test_a_disturbed_peak_gives_no_share(munjang: Callable[..., Any], tiny_bert_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(speed, "sgemm_gflops", lambda: 1e-9)
    found = munjang("bench", "encode", "--seconds", "0", "--json", "--model", tiny_bert_folder).json
    assert found["peak_disturbed"]
    assert [route["share_of_peak"] for route in found["routes"]] == [None] * 4
    assert "measure again when it is idle" in munjang("bench", "encode", "--seconds", "0", "--model", tiny_bert_folder).err


def test_bench_pairs_prints_both_ways_and_says_what_is_extrapolated(munjang: Callable[..., Any], tiny_bert_folder: Path) -> None:
    arguments = ("bench", "pairs", "-n", "100", "--seconds", "0", "--model", tiny_bert_folder)
    found = munjang(*arguments, "--json").json
    assert (found["n"], found["pairs"], found["untrained_head"]) == (100, 4950, True)
    assert found["extrapolated"] == ["cross_seconds", "ratio"]
    assert found["cross_seconds"] == pytest.approx(found["sampled_seconds"] / found["sampled_pairs"] * 4950)
    assert found["ratio"] == pytest.approx(found["cross_seconds"] / (found["encode_seconds"] + found["search_seconds"]))
    shown = munjang(*arguments)
    assert "extrapolated from 512 pairs" in shown.out
    assert "4,950 pairs" in shown.out
    assert "times as long" in shown.out
    assert "the head is untrained" in shown.err


def test_bench_pairs_measures_a_given_cross_encoder_and_refuses_another_model(
    munjang: Callable[..., Any], tiny_bert_folder: Path, tmp_path: Path
) -> None:
    encoder = SentenceEncoder.load(tiny_bert_folder)
    write_untrained_cross_encoder(encoder.folder, encoder.tokenizer, tmp_path)
    arguments = ("bench", "pairs", "-n", "20", "--seconds", "0", "--model", tiny_bert_folder, "--cross")
    found = munjang(*arguments, tmp_path)
    assert found.code == 0, found.err
    assert "the head is untrained" not in found.err
    assert munjang(*arguments, tiny_bert_folder).code == 3


def test_the_work_counted_is_that_of_the_matrix_products(tiny_bert_folder: Path) -> None:
    model = SentenceEncoder.load(tiny_bert_folder)
    config = model.folder.base.config  # type: ignore[union-attr]
    width, inner, layers, tokens = config["hidden_size"], config["intermediate_size"], config["num_hidden_layers"], 7
    products = [(tokens, width, width)] * 4 + [
        (tokens, width, inner),
        (tokens, inner, width),
        (tokens, width, tokens),
        (tokens, tokens, width),
    ]
    assert speed.flops(model, tokens) == layers * sum(2 * n * k * m for n, k, m in products)


@pytest.mark.parametrize("options", [(), ("--int8",)])
def test_an_exported_graph_is_checked(
    munjang: Callable[..., Any], tiny_bert_folder: Path, tmp_path: Path, options: tuple[str, ...]
) -> None:
    report = munjang("export", tiny_bert_folder, "-o", tmp_path / "out", *options, "--json")
    assert report.code == 0, report.err
    assert Path(report.json["path"]).stat().st_size == report.json["bytes"]
    assert report.json["max_difference"] < (0.05 if options else 1e-5)


def test_a_table_of_vectors_multiplies_nothing(tmp_path: Path, tiny_bert_folder: Path) -> None:
    assert speed.flops(SentenceEncoder.load(write_static(tmp_path)), 10) == 0.0
    assert speed.flops(SentenceEncoder.load(tiny_bert_folder), 10) > 0
