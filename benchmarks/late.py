"""Late interaction: what re-ranking by stored token codes costs, and what making them costs, everything interleaved in one run.

    python benchmarks/late.py [--passages 60] [--rounds 3] [--cross-encoder] [--json FILE]

Re-ranking: a question of 20 tokens against 50 and 200 passages of 120 to 300 tokens (seeded random unit vectors, 384 dimensions; the time
does not depend on what they mean), by Munjang's MaxSim in each format and by sentence-transformers' on the same float32 vectors, with the
largest difference of scores. With --cross-encoder also the bundled cross-encoder on 50 real passages. Making: real passages a second of
`encode`, `encode_tokens` and `encode_with_tokens`, and of adding to a library with and without token vectors. Times are medians.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

import numpy as np

from bench_texts import passages
from munjang import Library, SentenceEncoder
from munjang.vectors.maxsim import TokenCodes, TokenFormat, fit_codebook, maxsim

DIMENSION, QUESTION = 384, 20
COUNTS = (50, 200)


def interleave(routes: dict[str, Callable[[], Any]], rounds: int) -> dict[str, float]:
    """Return each route's median seconds; all run once before, and then in turn."""
    seconds: dict[str, list[float]] = {name: [] for name in routes}
    for number in range(rounds + 1):
        for name, work in routes.items():
            start = time.perf_counter()
            work()
            if number:
                seconds[name].append(time.perf_counter() - start)
    return {name: statistics.median(each) for name, each in seconds.items()}


def make_tokens(count: int) -> tuple[np.ndarray, list[np.ndarray]]:
    """Return a question's and so many passages' token vectors."""
    rng = np.random.default_rng(count)

    def unit(rows: int) -> np.ndarray:
        vectors = rng.standard_normal((rows, DIMENSION)).astype(np.float32)
        return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)

    return unit(QUESTION), [unit(int(length)) for length in rng.integers(120, 301, count)]


def measure_reranking(rounds: int) -> dict[str, Any]:
    """Return milliseconds of each format and of sentence-transformers, and how far the scores differ from theirs."""
    import torch
    from sentence_transformers.util.similarity import maxsim as theirs

    results: dict[str, Any] = {}
    for count in COUNTS:
        question, passages_of_tokens = make_tokens(count)
        tensors = [torch.from_numpy(each) for each in passages_of_tokens]
        asked = [torch.from_numpy(question)]
        routes: dict[str, Callable[[], Any]] = {"sentence-transformers": lambda: theirs(asked, tensors, length_normalize=True)}  # noqa: B023
        expected = theirs(asked, tensors, length_normalize=True)[0].numpy()
        differences = {}
        for format in get_args(TokenFormat):
            book = fit_codebook(np.concatenate(passages_of_tokens)[:20_000], format)
            stored = [book.quantize(each).tobytes() for each in passages_of_tokens]

            def work(stored: list[bytes] = stored, book: Any = book, question: np.ndarray = question) -> Any:
                return maxsim(question, TokenCodes.join(stored, book), book)

            routes[format] = work
            differences[format] = float(np.abs(work() - expected).max())
        times = interleave(routes, rounds)
        results[str(count)] = {"milliseconds": {name: round(1000 * each, 2) for name, each in times.items()}, "difference": differences}
    return results


def measure_making(count: int, rounds: int) -> dict[str, float]:
    """Return real passages a second."""
    model, texts = SentenceEncoder.load(), passages(count)

    def add(tokens: TokenFormat | None) -> None:
        with tempfile.TemporaryDirectory() as folder, Library.open(Path(folder) / "a.db", model, token_vectors=tokens) as library:
            library.add(texts)

    routes: dict[str, Callable[[], Any]] = {
        "encode": lambda: model.encode(texts),
        "encode_tokens": lambda: model.encode_tokens(texts),
        "encode_with_tokens": lambda: model.encode_with_tokens(texts, keep=len),
        "add": lambda: add(None),
        "add, 1 bit": lambda: add("1bit"),
    }
    return {name: round(len(texts) / each, 1) for name, each in interleave(routes, rounds).items()}


def measure_cross_encoder(rounds: int) -> float:
    """Return milliseconds for one question and 50 real passages."""
    from munjang import CrossEncoder

    scorer, texts = CrossEncoder.load(), passages(COUNTS[0])
    return round(
        1000 * interleave({"cross": lambda: scorer.predict([("heat transfer at high speed", text) for text in texts])}, rounds)["cross"], 1
    )


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--passages", type=int, default=60)
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--cross-encoder", action="store_true")
    options.add_argument("--json", type=Path)
    chosen = options.parse_args()
    results: dict[str, Any] = {"re-ranking": measure_reranking(max(chosen.rounds, 9))}
    for count, each in results["re-ranking"].items():
        for name, milliseconds in each["milliseconds"].items():
            print(f"{count:>4} passages  {name:22} {milliseconds:8.2f} ms")
    if chosen.cross_encoder:
        results["cross-encoder"] = measure_cross_encoder(chosen.rounds)
        print(f"  50 passages  cross-encoder          {results['cross-encoder']:8.1f} ms")
    results["passages a second"] = measure_making(chosen.passages, chosen.rounds)
    for name, rate in results["passages a second"].items():
        print(f"{name:24} {rate:8.1f} passages/s", flush=True)
    line = json.dumps(results)
    if chosen.json:
        chosen.json.write_text(line + "\n", encoding="utf-8")
    print(line)


if __name__ == "__main__":
    main()
