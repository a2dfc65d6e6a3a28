"""Search and pair mining over vectors, side by side with peers, interleaved in one run.

    python benchmarks/search.py [--sizes 10000,100000,1000000] [--queries 1000] [--rounds 3] [--parts exact,mining,…] [--json FILE]

Exact search: sentence_transformers.util.semantic_search, faiss IndexFlatIP, `top_k`, `ExactIndex` (prepared before, as the faiss index is).
Approximate search at the largest size: a library's inverted lists beside exact search, recall@10 against the exact answer. Mining:
util.paraphrase_mining_embeddings with its defaults and `mine`, whose pairs are arrays until somebody looks at them ("as a list" does).
First query: a library of 100,000 documents on disk, opened and asked, with an encoder that costs nothing. Questions: one at a time to that
library, opened: by meaning, with a filter that one document in a hundred passes (another one each time), hybrid, and both. Vectors are
384-d and unit length, in clusters ("clustered") or without any order ("random"), the hardest case, which is left out at 1,000,000 for its
time.

Every round runs each route once, one after the other. Reported are medians of wall time and of processor time: on a machine that
others use too, the second is the one to trust. Ratios are (time of the first route) / (time of the route).
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import faiss
import numpy as np
from sentence_transformers import util

from machine import describe_machine
from munjang.analyze.pairs import mine_pairs
from munjang.library.index_config import Tuning
from munjang.library.ivf_index import build_lists, fit_lists
from munjang.library.library import Library
from munjang.library.matrix import Matrix
from munjang.library.store import Document, Entry, Passage
from munjang.vectors.exact_index import ExactIndex
from munjang.vectors.topk import top_k

DIMENSION, K = 384, 10
SPREAD = 0.6
"""How far members of a cluster lie from its centre, against the centre's own length."""
BLOCK = 65_536
LARGEST_RANDOM = 100_000
"""Vectors without any order are measured up to this size."""
DOCUMENTS = 100_000

Routes = dict[str, Callable[[], Any]]
Times = dict[str, dict[str, float]]


def vectors(n: int, kind: str, seed: int) -> np.ndarray:
    """Return unit vectors; the 1,000 clusters are the same for every seed."""
    random = np.random.default_rng(seed)
    rows = random.standard_normal((n, DIMENSION), dtype=np.float32)
    centres = np.random.default_rng(2019).standard_normal((1000, DIMENSION), dtype=np.float32)
    members = random.integers(0, len(centres), n) if kind == "clustered" else None
    for start in range(0, n, BLOCK):  # a million at once would need three times the memory
        part = rows[start : start + BLOCK]
        if members is not None:
            part *= np.float32(SPREAD)
            part += centres[members[start : start + BLOCK]]
        part /= np.linalg.norm(part, axis=1, keepdims=True)
    return rows


def interleaved(routes: Routes, rounds: int) -> Times:
    """Run every route in every round; return medians and the ratios to the first route."""
    wall: dict[str, list[float]] = {name: [] for name in routes}
    cpu: dict[str, list[float]] = {name: [] for name in routes}
    for _ in range(rounds):
        for name, route in routes.items():
            time.sleep(0.2)  # threads of the route before stop spinning
            started, used = time.perf_counter(), time.process_time()
            route()
            wall[name].append(time.perf_counter() - started)
            cpu[name].append(time.process_time() - used)
    first = next(iter(routes))
    return {
        name: {
            "wall_s": round(statistics.median(wall[name]), 4),
            "cpu_s": round(statistics.median(cpu[name]), 4),
            "ratio_wall": round(statistics.median(a / b for a, b in zip(wall[first], wall[name], strict=True)), 2),
            "ratio_cpu": round(statistics.median(a / b for a, b in zip(cpu[first], cpu[name], strict=True)), 2),
        }
        for name in routes
    }


def exact(corpus: np.ndarray, queries: np.ndarray, rounds: int) -> dict[str, Any]:
    """Exact search, and whether the answers agree."""
    flat = faiss.IndexFlatIP(DIMENSION)
    flat.add(corpus)
    used = time.process_time()
    index = ExactIndex(corpus)
    built = time.process_time() - used
    routes: Routes = {
        "semantic_search": lambda: util.semantic_search(queries, corpus, top_k=K),
        "faiss IndexFlatIP": lambda: flat.search(queries, K),
        "munjang top_k": lambda: top_k(queries, corpus, k=K),
        "munjang ExactIndex": lambda: index.search(queries, k=K),
    }
    times = interleaved(routes, rounds)
    agreement = float((index.search(queries, k=K)[1] == top_k(queries, corpus, k=K)[1]).mean())
    return {"routes": times, "index_build_cpu_s": round(built, 3), "same_rows": round(agreement, 5)}


def approximate(corpus: np.ndarray, queries: np.ndarray, rounds: int) -> dict[str, Any]:
    """Inverted lists, as a library builds and tunes them, beside exact search."""
    index = ExactIndex(corpus)
    _, truth = index.search(queries, k=K)
    matrix = Matrix(1, np.arange(len(corpus)), corpus, np.empty(0, np.int64), np.empty((0, DIMENSION), np.float32), None)
    started, used = time.perf_counter(), time.process_time()
    lists = fit_lists(build_lists(matrix, Tuning()), matrix)
    build_s, build_cpu_s = time.perf_counter() - started, time.process_time() - used
    found = lists.search(queries, K)
    recall = np.mean([len(set(rows.tolist()) & set(row)) / K for (_, rows), row in zip(found, truth.tolist(), strict=True)])
    routes: Routes = {
        "munjang ExactIndex": lambda: index.search(queries, k=K),
        "munjang lists": lambda: lists.search(queries, K),
        "munjang lists, one by one": lambda: [lists.search(query[None], K) for query in queries],
    }
    return {
        "routes": interleaved(routes, rounds),
        "recall_at_10": round(float(recall), 4),
        "lists": len(lists.lists.centre_LD),
        "looked_into": lists.lists.probes,
        "build_s": round(build_s, 1),
        "build_cpu_s": round(build_cpu_s, 1),
    }


class NoModel:
    """An encoder that costs nothing: a text's vector depends on its length."""

    name, fingerprint, dimension = "none", "none", DIMENSION
    rows = vectors(64, "clustered", seed=5)

    def encode(self, texts: Any, /) -> np.ndarray:
        """Return one row per text."""
        return self.rows[[len(text) % len(self.rows) for text in texts]]


def make_library(path: Path) -> None:
    """Write a library of many short documents, whose words are as unevenly frequent as those of a language."""
    random = np.random.default_rng(6)
    rows = vectors(DOCUMENTS, "clustered", seed=4)
    frequent = 1 / np.arange(1, 30_001)
    chosen = random.choice(len(frequent), size=(DOCUMENTS, 12), p=frequent / frequent.sum())

    def entry(number: int) -> Entry:
        words = tuple(f"w{word}" for word in chosen[number])
        metadata = {"year": number % 50, "group": f"group {number % 100}"}
        text = " ".join(words)
        return Entry(Document(str(number), text, metadata, str(number)), (Passage(0, len(text), words),), rows[number][None])

    with Library.open(path, NoModel(), analyser="bigrams") as library:
        with library.store.writer("benchmark"):
            library.store.put(map(entry, range(DOCUMENTS)))
        library.prepare()


def questions(path: Path, count: int) -> dict[str, Any]:
    """Ask one question after the other; every kind in turns."""
    random = np.random.default_rng(7)
    asked = [" ".join(f"w{word}" for word in np.minimum(random.zipf(1.3, 6), 30_000)) for _ in range(count)]
    kinds: dict[str, Callable[[Library, str, int], Any]] = {
        "meaning": lambda library, text, _: library.search(text, by="meaning"),
        "meaning, filtered": lambda library, text, turn: library.search(text, by="meaning", where=f"group = 'group {turn % 100}'"),
        "hybrid": lambda library, text, _: library.search(text),
        "hybrid, filtered": lambda library, text, turn: library.search(text, where=f"group = 'group {turn % 100}'"),
    }
    wall: dict[str, list[float]] = {kind: [] for kind in kinds}
    cpu = dict.fromkeys(kinds, 0.0)
    with Library.open(path, NoModel(), create=False) as library:
        for turn, text in enumerate(asked):
            for kind, ask in kinds.items():
                started, used = time.perf_counter(), time.process_time()
                ask(library, text, turn)
                wall[kind].append(1e3 * (time.perf_counter() - started))
                cpu[kind] += 1e3 * (time.process_time() - used) / count
    return {
        kind: {"p50_ms": float(np.quantile(times, 0.5)), "p99_ms": float(np.quantile(times, 0.99)), "cpu_ms": cpu[kind]}
        for kind, times in wall.items()
    }


def first_query(path: Path, rounds: int) -> dict[str, Any]:
    """Open a library of many documents whose caches exist, and ask it once."""

    def asked(*, by: Literal["meaning"] | None) -> None:
        with Library.open(path, NoModel(), create=False) as library:
            assert len(library.search("w1 w7", by=by)) == K

    routes: Routes = {"open and ask": lambda: asked(by="meaning"), "open and ask, hybrid": lambda: asked(by=None)}
    return {"routes": interleaved(routes, rounds), "documents": DOCUMENTS}


def mining(rounds: int) -> dict[str, Any]:
    """Pairs of 10,000 clustered vectors."""
    rows = vectors(10_000, "clustered", seed=3)
    floor = 0.5
    routes: Routes = {
        "paraphrase_mining": lambda: util.paraphrase_mining_embeddings(rows),
        "munjang mine, 500,000": lambda: mine_pairs(rows, threshold=-1, top=500_000),
        "munjang, as a list": lambda: list(mine_pairs(rows, threshold=-1, top=500_000).pairs),
        "munjang mine, >= 0.5": lambda: mine_pairs(rows, threshold=floor, top=500_000),
    }
    peer = {(min(a, b), max(a, b)) for score, a, b in util.paraphrase_mining_embeddings(rows) if score >= floor + 1e-4}
    ours = {(pair.a, pair.b) for pair in mine_pairs(rows, threshold=floor, top=500_000).pairs}
    return {"routes": interleaved(routes, rounds), "pairs": len(ours), "peer_pairs_missing": len(peer - ours)}


def show(title: str, result: dict[str, Any]) -> None:
    """Print one table."""
    print(f"\n{title}\n{'':28}{'wall s':>10}{'cpu s':>10}{'× wall':>9}{'× cpu':>9}")
    for name, row in result["routes"].items():
        print(f"{name:28}{row['wall_s']:10.3f}{row['cpu_s']:10.3f}{row['ratio_wall']:9.2f}{row['ratio_cpu']:9.2f}")
    print("   ".join(f"{key}: {value}" for key, value in result.items() if key != "routes"), flush=True)


def show_questions(title: str, result: dict[str, dict[str, float]]) -> None:
    """Print the table of single questions."""
    print(f"\n{title}\n{'':28}{'p50 ms':>10}{'p99 ms':>10}{'cpu ms':>10}")
    for kind, row in result.items():
        print(f"{kind:28}{row['p50_ms']:10.1f}{row['p99_ms']:10.1f}{row['cpu_ms']:10.1f}", flush=True)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--sizes", default="10000,100000,1000000")
    options.add_argument("--queries", type=int, default=1000)
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--kinds", default="clustered,random")
    options.add_argument("--parts", default="exact,mining,approximate,first,questions")
    options.add_argument("--json", type=Path)
    chosen = options.parse_args()
    sizes, parts = [int(size) for size in chosen.sizes.split(",")], chosen.parts.split(",")
    results: dict[str, Any] = {"machine": describe_machine()}
    for size in sizes if "exact" in parts else []:
        for kind in chosen.kinds.split(","):
            if kind == "random" and size > LARGEST_RANDOM:
                continue
            name = f"exact, {size:,} {kind} vectors, {chosen.queries:,} queries"
            results[name] = exact(vectors(size, kind, seed=1), vectors(chosen.queries, kind, seed=2), chosen.rounds)
            show(name, results[name])
    if "mining" in parts:
        results["mining, 10,000 clustered vectors"] = mining(chosen.rounds)
        show("mining, 10,000 clustered vectors", results["mining, 10,000 clustered vectors"])
    if "first" in parts or "questions" in parts:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "many.db"
            make_library(path)
            if "first" in parts:
                name = f"first query, {DOCUMENTS:,} documents"
                results[name] = first_query(path, chosen.rounds)
                show(name, results[name])
            if "questions" in parts:
                name = f"questions, {DOCUMENTS:,} documents"
                results[name] = questions(path, 200)
                show_questions(name, results[name])
    if "approximate" in parts:
        name = f"approximate, {max(sizes):,} clustered vectors"
        results[name] = approximate(vectors(max(sizes), "clustered", seed=1), vectors(chosen.queries, "clustered", seed=2), chosen.rounds)
        show(name, results[name])
    line = json.dumps(results)
    if chosen.json:
        chosen.json.write_text(line + "\n", encoding="utf-8")
    print(line)


if __name__ == "__main__":
    main()
