"""Search and pair mining over vectors, side by side with peers, interleaved in one run.

    python benchmarks/search.py [--sizes 10000,100000,1000000] [--queries 1000] [--rounds 3] [--json FILE]

Exact search: sentence_transformers.util.semantic_search, faiss IndexFlatIP, `top_k`, `ExactIndex` (prepared before, as the faiss index is).
Approximate search at the largest size: faiss HNSW, recall@10 against the exact answer. Mining: util.paraphrase_mining_embeddings with
its defaults and `mine`. Vectors are 384-d and unit length, in clusters ("clustered") or without any order ("random"), the hardest case.

Every round runs each route once, one after the other. Reported are medians of wall time and of processor time: on a machine that
others use too, the second is the one to trust. Ratios are (time of the first route) / (time of the route).
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import faiss
import numpy as np
from sentence_transformers import util

from munjang.analyze.pairs import mine
from munjang.vectors.exact_index import ExactIndex
from munjang.vectors.topk import top_k

DIMENSION, K = 384, 10
SPREAD = 0.6
"""How far members of a cluster lie from its centre, against the centre's own length."""
LINKS, BUILD_DEPTH = 32, 100
DEPTHS = (10, 16, 24, 32, 64, 128, 256)
"""Search depths of HNSW that are tried until the recall is enough."""
RECALL = 0.97

Routes = dict[str, Callable[[], Any]]
Times = dict[str, dict[str, float]]


def vectors(n: int, kind: str, seed: int) -> np.ndarray:
    """Return unit vectors; the 1,000 clusters are the same for every seed."""
    random = np.random.default_rng(seed)
    rows = random.standard_normal((n, DIMENSION), dtype=np.float32)
    if kind == "clustered":
        centres = np.random.default_rng(2019).standard_normal((1000, DIMENSION), dtype=np.float32)
        rows *= np.float32(SPREAD)
        rows += centres[random.integers(0, len(centres), n)]
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
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
    """HNSW: the first depth with enough recall, and its throughput beside exact search."""
    index = ExactIndex(corpus)
    _, truth = index.search(queries, k=K)
    graph = faiss.IndexHNSWFlat(DIMENSION, LINKS, faiss.METRIC_INNER_PRODUCT)
    graph.hnsw.efConstruction = BUILD_DEPTH
    started = time.perf_counter()
    graph.add(corpus)
    build_s = time.perf_counter() - started
    recalls = {}
    for depth in DEPTHS:
        graph.hnsw.efSearch = depth
        _, found = graph.search(queries, K)
        recalls[depth] = round(float(np.mean([len(set(a) & set(b)) / K for a, b in zip(found.tolist(), truth.tolist(), strict=True)])), 4)
        if recalls[depth] >= RECALL:
            break
    routes: Routes = {
        "munjang top_k": lambda: top_k(queries, corpus, k=K),
        "munjang ExactIndex": lambda: index.search(queries, k=K),
        "faiss HNSW": lambda: graph.search(queries, K),
    }
    return {"routes": interleaved(routes, rounds), "recall_at_10": recalls, "build_s": round(build_s, 1)}


def mining(rounds: int) -> dict[str, Any]:
    """Pairs of 10,000 clustered vectors."""
    rows = vectors(10_000, "clustered", seed=3)
    floor = 0.5
    routes: Routes = {
        "paraphrase_mining": lambda: util.paraphrase_mining_embeddings(rows),
        "munjang mine, 500,000": lambda: mine(rows, threshold=-1, top=500_000),
        "munjang mine, >= 0.5": lambda: mine(rows, threshold=floor, top=500_000),
    }
    peer = {(min(a, b), max(a, b)) for score, a, b in util.paraphrase_mining_embeddings(rows) if score >= floor + 1e-4}
    ours = {(pair.a, pair.b) for pair in mine(rows, threshold=floor, top=500_000).pairs}
    return {"routes": interleaved(routes, rounds), "pairs": len(ours), "peer_pairs_missing": len(peer - ours)}


def show(title: str, result: dict[str, Any]) -> None:
    """Print one table."""
    print(f"\n{title}\n{'':24}{'wall s':>10}{'cpu s':>10}{'× wall':>9}{'× cpu':>9}")
    for name, row in result["routes"].items():
        print(f"{name:24}{row['wall_s']:10.3f}{row['cpu_s']:10.3f}{row['ratio_wall']:9.2f}{row['ratio_cpu']:9.2f}")
    print("   ".join(f"{key}: {value}" for key, value in result.items() if key != "routes"), flush=True)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--sizes", default="10000,100000,1000000")
    options.add_argument("--queries", type=int, default=1000)
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--kinds", default="clustered,random")
    options.add_argument("--parts", default="exact,mining,hnsw", help="building the HNSW graph of 1,000,000 vectors takes many minutes")
    options.add_argument("--json", type=Path)
    chosen = options.parse_args()
    sizes, parts = [int(size) for size in chosen.sizes.split(",")], chosen.parts.split(",")
    results: dict[str, Any] = {"machine": platform.machine(), "cores": os.cpu_count(), "python": sys.version.split()[0]}
    for size in sizes if "exact" in parts else []:
        for kind in chosen.kinds.split(","):
            name = f"exact, {size:,} {kind} vectors, {chosen.queries:,} queries"
            results[name] = exact(vectors(size, kind, seed=1), vectors(chosen.queries, kind, seed=2), chosen.rounds)
            show(name, results[name])
    if "mining" in parts:
        results["mining, 10,000 clustered vectors"] = mining(chosen.rounds)
        show("mining, 10,000 clustered vectors", results["mining, 10,000 clustered vectors"])
    if "hnsw" in parts:
        name = f"approximate, {max(sizes):,} clustered vectors"
        results[name] = approximate(vectors(max(sizes), "clustered", seed=1), vectors(chosen.queries, "clustered", seed=2), chosen.rounds)
        show(name, results[name])
    line = json.dumps(results)
    if chosen.json:
        chosen.json.write_text(line + "\n", encoding="utf-8")
    print(line)


if __name__ == "__main__":
    main()
