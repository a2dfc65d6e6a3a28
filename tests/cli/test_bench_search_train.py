"""`munjang bench search` and `munjang bench train`: what is measured, and that it is measured on what was asked for."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from munjang.cli.bench import StepClock, measure
from munjang.library.matrix import Matrix, unit
from munjang.train.progress import StepNews

Munjang = Callable[..., Any]


def test_search_is_measured_one_by_one_and_together(munjang: Munjang) -> None:
    pytest.importorskip("faiss", reason="approximate search needs faiss")
    asked = ("bench", "search", "-n", "500", "--dimension", "16", "--queries", "20", "--rounds", "1")
    found = munjang(*asked, "--json").json
    assert (found["vectors"], found["dimension"], found["queries"]) == (500, 16, 20)
    assert [(route["search"], route["queries_at_once"]) for route in found["routes"]] == [
        ("exact", 1),
        ("exact", 20),
        ("approximate", 1),
        ("approximate", 20),
    ]
    for route in found["routes"]:
        assert route["queries_per_second"] * route["ms_per_query"] == pytest.approx(1000, rel=0.05)
    assert [route["recall"] for route in found["routes"][:2]] == [1, 1]
    assert all(route["recall"] > 0.8 for route in found["routes"])
    shown = munjang(*asked)
    assert "queries/s" in shown.out
    assert "500 vectors of 16 numbers (made up in clusters)" in shown.err


def test_search_takes_vectors_of_a_file_and_holds_the_queries_out(munjang: Munjang, tmp_path: Path) -> None:
    np.save(tmp_path / "v.npy", np.random.default_rng(0).standard_normal((200, 8)).astype(np.float32))
    found = munjang("bench", "search", "--vectors", tmp_path / "v.npy", "--rounds", "1", "--json").json
    assert (found["vectors"], found["dimension"], found["queries"]) == (180, 8, 20)
    np.save(tmp_path / "few.npy", np.ones((9, 8), np.float32))
    assert munjang("bench", "search", "--vectors", tmp_path / "few.npy").code == 3


def test_without_faiss_exact_search_is_measured_alone(munjang: Munjang, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "faiss", None)
    outcome = munjang("bench", "search", "-n", "200", "--dimension", "8", "--queries", "1", "--rounds", "1", "--json")
    assert [route["search"] for route in outcome.json["routes"]] == ["exact"]
    assert outcome.json["build_seconds"] is None
    assert "only exact search is measured" in outcome.err
    assert "pip install" in outcome.err


def test_recall_is_the_share_of_the_exact_answers() -> None:
    rows_MD = unit(np.random.default_rng(1).standard_normal((100, 4)).astype(np.float32))
    matrix = Matrix(1, np.arange(100), rows_MD, np.empty(0, np.int64), np.empty((0, 4), np.float32), None)

    class Half:
        """Gives the best five of ten and five strangers."""

        def search(self, asked_ND: Any, k: int) -> list[Any]:
            scores, rows = matrix.search(asked_ND, k)
            return [(score, np.concatenate([row[: k // 2], np.full(k - k // 2, -1)])) for score, row in zip(scores, rows, strict=True)]

    found = measure(matrix, Half(), rows_MD[:8], 10, rounds=1)  # type: ignore[arg-type]
    assert [route.recall for route in found] == [1, 1, 0.5, 0.5]


def test_the_clock_starts_after_the_warm_up() -> None:
    now = iter([1.0, 2.0, 4.0, 8.0])
    clock = StepClock(lambda: next(now))
    for step in range(1, 5):
        clock.step(StepNews("stage", step, 4, 0.0, None, 0.0, 0.0))
    assert (clock.started, clock.ended) == (2.0, 8.0)


@pytest.mark.parametrize("named", [False, True], ids=["from nothing", "a model"])
def test_training_is_measured(munjang: Munjang, tiny_bert_folder: Path, *, named: bool) -> None:
    pytest.importorskip("torch", reason="training needs torch")
    pytest.importorskip("accelerate", reason="training needs accelerate")
    more = ("--model", tiny_bert_folder) if named else ()
    outcome = munjang("bench", "train", "--steps", "2", "--batch-size", "2", "--json", *more)
    assert outcome.code == 0, outcome.err
    found = outcome.json
    assert (found["steps"], found["batch_size"], found["scratch"] is None) == (2, 2, named)
    assert found["texts_per_second"] == pytest.approx(4 * found["steps_per_second"])
    assert found["steps_per_second"] == pytest.approx(2 / found["seconds"])


def test_without_the_extra_the_line_that_installs_it_is_named(munjang: Munjang, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith("munjang.train.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "torch", None)
    outcome = munjang("bench", "train")
    assert outcome.code == 2
    assert "pip install 'munjang[train]'" in outcome.err
