"""Encoding speed, side by side with peers, interleaved in one run.

    ./run bench encode [--rounds 5] [--routes munjang,st,…] [--json FILE]

Every route is a process of its own that loads all-MiniLM-L6-v2 once and then encodes the same texts when told to, one route at a time,
round after round. Reported: the median over rounds of (time of sentence-transformers on torch) / (time of the route), peak memory of the
process, the machine's measured sgemm peak and the share of it that Munjang's float32 route reaches. Texts: 2,000 short sentences and 80
passages. Between two routes there is a short pause, so that the threads of the one before have stopped spinning.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

from machine import describe_machine

HERE = Path(__file__).parent
PEERS_PYTHON = HERE.parent / ".venv-peers/bin/python"
ROUTES = {
    "st-torch": "sentence-transformers, torch float32",
    "munjang": "Munjang float32",
    "munjang-bfloat16": "Munjang bfloat16 (OpenVINO)",
    "munjang-int8": "Munjang int8",
    "ctranslate2": "ctranslate2 float32, 2 × 1 threads",
    "ctranslate2-int8": "ctranslate2 int8, 2 × 1 threads",
    "fastembed": "fastembed (onnxruntime)",
    "st-onnx": "sentence-transformers, ONNX",
    "st-onnx-int8": "sentence-transformers, ONNX int8",
    "st-openvino": "sentence-transformers, OpenVINO",
}
NEEDS_PEERS = {"st-onnx", "st-onnx-int8", "st-openvino", "fastembed"}
SETS = ("short", "passages")
FLOPS_PER_TOKEN = 2 * 6 * 12 * 384 * 384
"""Multiply-adds of the linear layers of a 6 × 384 encoder, counted twice."""


PAUSE = 0.5
"""Seconds between two routes."""


class Route:
    """A worker process that encodes on demand."""

    def __init__(self, name: str) -> None:
        python = str(PEERS_PYTHON) if name in NEEDS_PEERS else sys.executable
        command = [python, str(HERE / "encode_worker.py"), name]
        self.name = name
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.facts = self._answer()

    def encode(self, texts: str) -> dict[str, float]:
        """Encode one set of texts and return seconds and peak memory."""
        assert self.process.stdin is not None
        self.process.stdin.write(texts + "\n")
        self.process.stdin.flush()
        return self._answer()

    def close(self) -> None:
        """End the process."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()

    def _answer(self) -> dict[str, float]:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if line.startswith("ANSWER "):
                return dict(json.loads(line.removeprefix("ANSWER ")))
        raise RuntimeError(f"route {self.name} ended without an answer")


def sgemm_peak() -> float:
    """Return the machine's float32 matrix product speed on all cores, in GFLOP/s (best of several)."""
    a, b = np.ones((2048, 2048), np.float32), np.ones((2048, 2048), np.float32)
    times = []
    for _ in range(8):
        start = time.perf_counter()
        a @ b
        times.append(time.perf_counter() - start)
    return 2 * 2048**3 / min(times) / 1e9


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--routes", default=",".join(ROUTES))
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    routes = start(options.routes.split(","))
    times: dict[str, dict[str, list[float]]] = {route.name: {name: [] for name in SETS} for route in routes}
    memory: dict[str, float] = {}
    peaks = []
    for number in range(options.rounds + 1):  # the first round warms up and is not counted
        peaks.append(sgemm_peak())
        for texts in SETS:
            for route in routes:
                time.sleep(PAUSE)
                answer = route.encode(texts)
                memory[route.name] = answer["peak_mb"]
                if number:
                    times[route.name][texts].append(answer["seconds"])
        print(f"round {number} of {options.rounds}", file=sys.stderr)
    result = summary(routes, times, memory, max(peaks))
    show(result)
    if options.json:
        options.json.write_text(json.dumps(result, indent=2) + "\n")
    for route in routes:
        route.close()


def start(names: list[str]) -> list[Route]:
    routes = []
    for name in names:
        if name in NEEDS_PEERS and not PEERS_PYTHON.exists():
            print(f"{name}: left out, {PEERS_PYTHON.parent.parent.name} is not installed (./run bench installs it)", file=sys.stderr)
            continue
        try:
            routes.append(Route(name))
        except (RuntimeError, OSError) as error:
            print(f"{name}: left out, {error}", file=sys.stderr)
    return routes


def summary(routes: list[Route], times: dict[str, dict[str, list[float]]], memory: dict[str, float], peak: float) -> dict[str, object]:
    rows = {}
    for route in routes:
        row: dict[str, object] = {"what": ROUTES[route.name], "peak_mb": memory[route.name], "load_seconds": route.facts["load_seconds"]}
        for texts in SETS:
            own = times[route.name][texts]
            base = times["st-torch"][texts] if "st-torch" in times else own
            ratios = [b / o for b, o in zip(base, own, strict=True)]
            row[texts] = {
                "ratio": statistics.median(ratios),
                "range": [min(ratios), max(ratios)],
                "per_second": route.facts[f"{texts}_texts"] / statistics.median(own),
                "tokens_per_second": route.facts[f"{texts}_tokens"] / statistics.median(own),
            }
        rows[route.name] = row
    machine = {**describe_machine(), "sgemm_gflops": peak}
    reached = {
        texts: FLOPS_PER_TOKEN * rows["munjang"][texts]["tokens_per_second"] / 1e9 / peak  # type: ignore[index]
        for texts in SETS
        if "munjang" in rows
    }
    return {"machine": machine, "share_of_sgemm_peak": reached, "routes": rows}


def show(result: dict[str, object]) -> None:
    print(f"\n{'route':42}{'short':>26}{'passages':>26}{'peak MB':>10}")
    for row in result["routes"].values():  # type: ignore[attr-defined]
        cells = [f"{row[t]['ratio']:.2f}× [{row[t]['range'][0]:.2f}–{row[t]['range'][1]:.2f}] {row[t]['per_second']:7.1f}/s" for t in SETS]
        print(f"{row['what']:42}{cells[0]:>26}{cells[1]:>26}{row['peak_mb']:>10.0f}")
    machine = result["machine"]
    print(f"\n{machine['processor']}, {machine['cores']} cores, sgemm peak {machine['sgemm_gflops']:.0f} GFLOP/s")  # type: ignore[index]
    for texts, share in result["share_of_sgemm_peak"].items():  # type: ignore[attr-defined]
        print(f"Munjang float32 reaches {share:.0%} of it on {texts} (linear layers counted only)")


if __name__ == "__main__":
    main()
