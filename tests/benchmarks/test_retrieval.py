"""The script that measures retrieval quality, on a made-up set."""

from __future__ import annotations

import importlib.util
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
from tests.conftest import write_cross_encoder

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
FACTS = {"cat": "the cat", "river": "a river", "rain": "rain 온다", "snow": "비가 snow"}


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    spec = importlib.util.spec_from_file_location("retrieval_benchmark", BENCHMARKS / "retrieval.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    yield module
    sys.modules.pop("bench_texts", None)


@pytest.fixture
def squad(tmp_path: Path) -> Path:
    paragraphs = [
        {"context": text, "qas": [{"id": word, "question": f"{word}?", "answers": [{"text": word, "answer_start": 0}]}]}
        for word, text in FACTS.items()
    ]
    path = tmp_path / "made-up.json"
    path.write_text(json.dumps({"version": "1", "data": [{"title": "t", "paragraphs": paragraphs}]}), encoding="utf-8")
    return path


def test_every_route_is_measured_and_compared(
    script: ModuleType, squad: Path, tiny_bert_folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    script.main(["--model", str(tiny_bert_folder), "--data", f"{squad},{tmp_path / 'none'}", "--json", str(tmp_path / "out.json")])
    found = json.loads((tmp_path / "out.json").read_text(encoding="utf-8"))
    assert json.loads(capsys.readouterr().out.splitlines()[-1]) == found
    scores = found["made-up.json"]["scores"]
    assert set(scores) == {"meaning", "words", "hybrid", "meaning, late", "hybrid, late"}
    assert scores["words"] == {"ndcg@10": 1.0, "mrr@10": 1.0, "recall@10": 1.0}
    assert scores["meaning"]["recall@10"] == 1.0
    assert found["made-up.json"]["hybrid − words"]["difference"] <= 0


def test_a_re_ranker_adds_a_row(script: ModuleType, squad: Path, tiny_bert_folder: Path) -> None:
    class Longest:
        def predict(self, pairs):
            return [float(len(passage)) for _, passage in pairs]

    task = script.read_retrieval(squad)
    queries, documents = script.load_for_search(str(tiny_bert_folder))
    routes = {**script.routes_with(None, "float32"), "hybrid, re-ranked": (None, Longest(), 1.0), "hybrid, fused": (None, Longest(), 0.2)}
    found = script.measured(task, routes, script.sampled(task, 3), documents, queries, "1bit")
    assert found["hybrid, re-ranked"].queries == 3
    assert {"hybrid, re-ranked − hybrid", "hybrid, fused − hybrid"} < set(script.compared(found))


def test_no_pair_is_scored_twice(script: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "reranker").mkdir()
    write_cross_encoder(tmp_path / "reranker", 1)
    scorer = script.Remembering(str(tmp_path / "reranker"), "float32")
    pairs = [("the rain", "비가 온다"), ("the rain", "a cat"), ("the rain", "비가 온다")]
    first = scorer.predict(pairs)
    monkeypatch.setattr(scorer, "_model", None)
    assert scorer.predict(pairs[::-1]).tolist() == first[::-1].tolist()
    assert first[0] == first[2]


def test_fusions_are_tried_on_other_data(
    script: ModuleType, squad: Path, tiny_bert_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    script.main(["--model", str(tiny_bert_folder), "--tune", str(squad), "--queries", "2"])
    found = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert set(script.TRIED) < set(found["made-up.json"]["scores"])
