"""Retrieval quality of a library on real questions: meaning, words, both, and re-ranked by token vectors or a cross-encoder.

    python benchmarks/retrieval.py [--model M] [--rerank-model M] [--data PATH,PATH] [--queries 1000] [--compute int8]
        [--tune PATH] [--tokens 1bit] [--apart 400] [--json FILE]

Data: KorQuAD 1.0 dev (questions → the paragraph that holds the answer) and Cranfield from ../shared/data, or any BEIR folder, Cranfield
folder or SQuAD JSON. Each corpus becomes a library with token vectors (--tokens: their format); all routes ask it the same questions (a
seeded sample of --queries; --apart takes so many of the others). Printed are nDCG@10, MRR@10 and recall@10, and paired bootstraps over
questions of nDCG@10: hybrid against each part, late interaction against what it re-ranks, a cross-encoder alone and with a fifth of the
weight against hybrid.

--tune tries ways and weights of fusing, and weights of MaxSim, on other data than the reported, prints them, and stops; the library's
defaults were chosen so.
"""

from __future__ import annotations

import argparse
import json
import random
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np

from bench_texts import DATA
from munjang.cli.load_model import load_for_search
from munjang.data.retrieval import read_retrieval
from munjang.data.rows import RetrievalTask
from munjang.evaluate.bootstrap import paired_bootstrap, resample_mean
from munjang.evaluate.retrieval import RetrievalResult, score_run
from munjang.library.library import Library
from munjang.library.ranking import By, Hybrid
from munjang.models.prompted_encoder import PromptedEncoder
from munjang.types import Compute, Scorer, Vectors
from munjang.vectors.maxsim import TokenFormat

Route = tuple[By, Scorer | Literal["late"] | bool, float | None]
"""How to rank, who re-ranks, and with which weight; None is the default one."""
CUT = 10
METRICS = ("ndcg@10", "mrr@10", "recall@10")
DEFAULT_DATA = (DATA / "korquad1-dev" / "KorQuAD_v1.0_dev.json.gz", DATA / "cranfield")
COMPARED = (
    ("hybrid", "meaning"),
    ("hybrid", "words"),
    ("meaning, late", "meaning"),
    ("hybrid, late", "hybrid"),
    ("hybrid, re-ranked", "hybrid"),
    ("hybrid, fused", "hybrid"),
)
BOTH: tuple[tuple[str, By], ...] = (("meaning", "meaning"), ("hybrid", None))
WEIGHTS = (0.2, 0.35, 0.5, 0.6, 0.7, 0.8, 1.0)
"""Of MaxSim, tried by --tune."""
SHARE = 0.2
"""The re-ranker's weight in "hybrid, fused", chosen on 400 questions of KorQuAD dev that are not among the reported."""
TRIED = {
    "ranks": Hybrid(by="ranks"),
    **{f"scores, words {words:g}": Hybrid(meaning=1, words=words, by="scores") for words in (0.3, 0.4, 0.5, 0.6, 0.7, 0.85, 1.0)},
}


class Remembering:
    """A scorer that scores no pair twice, for the two routes that ask it the same."""

    def __init__(self, model: str, compute: Compute) -> None:
        from munjang.models.cross_encoder import CrossEncoder

        self._model = CrossEncoder.load(model, compute=compute)
        self._known: dict[tuple[str, str], float] = {}

    def predict(self, pairs: Sequence[tuple[str, str]], /) -> Vectors:
        """Return one score per pair."""
        new = [pair for pair in dict.fromkeys(pairs) if pair not in self._known]
        self._known |= dict(zip(new, self._model.predict_with_report(new).scores.tolist(), strict=True)) if new else {}
        return np.array([self._known[pair] for pair in pairs], dtype=np.float32)


def sampled(task: RetrievalTask, count: int, apart: int = 0) -> list[str]:
    """Return the ids of judged questions, at most `count`, always the same; with `apart`, so many that are not among these."""
    asked = sorted(query for query in task.queries if query in task.judgements)
    chosen = asked if len(asked) <= count else sorted(random.Random(0).sample(asked, count))
    if not apart:
        return chosen
    others = sorted(set(asked) - set(chosen))
    return others if len(others) <= apart else sorted(random.Random(1).sample(others, apart))


def run_of(library: Library, task: RetrievalTask, asked: list[str], route: Route) -> dict[str, dict[str, float]]:
    """Return what the library answers, by ids; scores fall with the place, so that ties keep the library's order."""
    by, scorer, share = route
    texts = [task.queries[query] for query in asked]
    answers = library.search_many(texts, k=CUT, by=by, rerank=scorer, rerank_share=share, exact=True)
    return {query: {hit.id: float(CUT - place) for place, hit in enumerate(hits)} for query, hits in zip(asked, answers, strict=True)}


def measured(
    task: RetrievalTask,
    routes: dict[str, Route],
    asked: list[str],
    documents: PromptedEncoder,
    queries: PromptedEncoder,
    tokens: TokenFormat,
) -> dict[str, RetrievalResult]:
    """Return each route's scores over one library of the task's corpus."""
    judged = {query: task.judgements[query] for query in asked}
    with (
        tempfile.TemporaryDirectory() as folder,
        Library.open(Path(folder) / "task.db", documents, query_encoder=queries, token_vectors=tokens) as library,
    ):
        # Cranfield has two documents without any text, which a library does not take; nothing can find them on any route.
        library.add({"id": id, "text": text} for id, text in task.corpus.items() if text.strip())
        return {
            name: score_run(run_of(library, task, asked, route), judged, documents=len(task.corpus), cuts=(CUT,))
            for name, route in routes.items()
        }


def compared(results: dict[str, RetrievalResult]) -> dict[str, dict[str, Any]]:
    """Return the paired differences of nDCG@10 that the routes at hand allow."""
    found = {}
    for a, b in COMPARED:
        if a in results and b in results:
            one, other = (results[name].per_query[METRICS[0]] for name in (a, b))
            difference = paired_bootstrap(one, other, resample_mean)
            found[f"{a} − {b}"] = {
                "difference": round(difference.difference, 4),
                "ci95": [round(value, 4) for value in difference.ci95.to_json()],
                "p": round(difference.p, 5),
            }
    return found


def table(title: str, results: dict[str, RetrievalResult], differences: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Print one data set's table and return it for JSON."""
    print(f"\n{title}\n{'':26}" + "".join(f"{name:>12}" for name in METRICS))
    for name, result in results.items():
        print(f"{name:26}" + "".join(f"{result.scores[metric]:12.4f}" for metric in METRICS))
    for name, facts in differences.items():
        low, high = facts["ci95"]
        print(f"{name}: {facts['difference']:+.4f} [{low:+.4f}, {high:+.4f}], p {facts['p']:.4f}", flush=True)
    return {
        "scores": {name: {metric: round(result.scores[metric], 4) for metric in METRICS} for name, result in results.items()},
        **differences,
    }


def routes_with(rerank_model: str | None, compute: Compute) -> dict[str, Route]:
    routes: dict[str, Route] = {
        "meaning": ("meaning", False, None),
        "words": ("words", False, None),
        "hybrid": (None, False, None),
        "meaning, late": ("meaning", "late", None),
        "hybrid, late": (None, "late", None),
    }
    if rerank_model is not None:
        scorer = Remembering(rerank_model, compute)
        routes |= {"hybrid, re-ranked": (None, scorer, 1.0), "hybrid, fused": (None, scorer, SHARE)}
    return routes


def main(arguments: list[str] | None = None) -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--model")
    options.add_argument("--rerank-model")
    options.add_argument("--compute", choices=("float32", "int8"), default="float32")
    options.add_argument("--data", help="paths, with commas between them")
    options.add_argument("--queries", type=int, default=1000, help="questions of each set at most")
    options.add_argument("--tune", help="try fusions on this data instead")
    options.add_argument("--tokens", choices=get_args(TokenFormat), default="1bit", help="how token vectors are stored")
    options.add_argument("--apart", type=int, default=0, help="ask so many questions that are not among the reported")
    options.add_argument("--json", type=Path)
    chosen = options.parse_args(arguments)
    queries, documents = load_for_search(chosen.model, compute=chosen.compute)
    name = documents.name
    paths = [Path(path) for path in (chosen.tune or chosen.data or ",".join(map(str, DEFAULT_DATA))).split(",")]
    results: dict[str, Any] = {"model": name, "rerank_model": chosen.rerank_model}
    tried: dict[str, Route] = {fusion: (how, False, None) for fusion, how in TRIED.items()}
    tried |= {f"{name}, late {weight:g}": (how, "late", weight) for name, how in BOTH for weight in WEIGHTS}
    routes = {**routes_with(None, chosen.compute), **tried} if chosen.tune else routes_with(chosen.rerank_model, chosen.compute)
    for path in paths:
        if not path.exists():
            print(f"{path.name}: not there, left out")
            continue
        task = read_retrieval(path)
        asked = sampled(task, chosen.queries, chosen.apart)
        title = f"{path.name}: {len(task.corpus):,} documents, {len(asked):,} questions, {name}"
        found = measured(task, routes, asked, documents, queries, chosen.tokens)
        results[path.name] = table(title, found, {} if chosen.tune else compared(found))
    line = json.dumps(results, ensure_ascii=False)
    if chosen.json:
        chosen.json.write_text(line + "\n", encoding="utf-8")
    print(line)


if __name__ == "__main__":
    main()
