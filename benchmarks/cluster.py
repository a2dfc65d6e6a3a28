"""Communities beside sentence-transformers' community_detection on the same vectors, interleaved in one run.

    python benchmarks/cluster.py [--rows 50000] [--rounds 1] [--threshold 0.75] [--min-size 10] [--json FILE]

Vectors are 384-d, of unit length, in clusters of different width, so that both have communities to find and rows that belong to none. Wall
and processor time are medians; on a machine that others use too, the second is the one to trust. The answers are compared member by member.
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from sentence_transformers import util

from machine import describe_machine
from munjang.analyze.clusters import find_communities

DIMENSION = 384


def vectors(rows: int, seed: int = 2019) -> np.ndarray:
    """Return unit rows around rows / 50 centres; each centre has its own spread."""
    random = np.random.default_rng(seed)
    centres = random.standard_normal((max(rows // 50, 1), DIMENSION), dtype=np.float32)
    spread = random.uniform(0.2, 0.9, len(centres)).astype(np.float32)
    which = random.integers(0, len(centres), rows)
    found = centres[which] + spread[which, None] * random.standard_normal((rows, DIMENSION), dtype=np.float32)
    return found / np.linalg.norm(found, axis=1, keepdims=True)


def main() -> None:
    """Measure, compare, print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=50_000)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--threshold", type=float, default=0.75)
    parser.add_argument("--min-size", type=int, default=10)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    rows = vectors(options.rows)
    routes: dict[str, Callable[[], Any]] = {
        "munjang": lambda: find_communities(rows, threshold=options.threshold, min_size=options.min_size),
        "sentence-transformers": lambda: util.community_detection(rows, options.threshold, options.min_size),
    }
    wall: dict[str, list[float]] = {name: [] for name in routes}
    cpu: dict[str, list[float]] = {name: [] for name in routes}
    answers: dict[str, Any] = {}
    peak: dict[str, int] = {}
    for _ in range(options.rounds):
        for name, route in routes.items():
            started, used = time.perf_counter(), time.process_time()
            answers[name] = route()
            wall[name].append(time.perf_counter() - started)
            cpu[name].append(time.process_time() - used)
            peak.setdefault(name, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)
    ours, theirs = ([frozenset(group) for group in answers[name]] for name in routes)
    report: dict[str, Any] = {
        "machine": describe_machine(),
        "rows": options.rows,
        "communities": len(ours),
        "same": len(set(ours) & set(theirs)),
    }
    for name in routes:
        seconds, used = statistics.median(wall[name]), statistics.median(cpu[name])
        report[name] = {"wall_s": round(seconds, 2), "cpu_s": round(used, 2), "peak_mb_so_far": peak[name]}
        print(f"{name:<22} {seconds:8.1f} s wall {used:8.1f} s cpu   peak so far {peak[name]:,} MB")
    first, second = routes
    report["ratio_wall"] = round(report[second]["wall_s"] / report[first]["wall_s"], 2)
    report["ratio_cpu"] = round(report[second]["cpu_s"] / report[first]["cpu_s"], 2)
    print(f"ratio {report['ratio_wall']} wall, {report['ratio_cpu']} cpu; {report['same']:,} of {len(ours):,} communities the same")
    if options.json:
        options.json.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
