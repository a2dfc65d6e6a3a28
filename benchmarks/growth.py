"""How time and memory of each main verb grow with its input: n, 2n, 4n, 8n, and the exponents that fit.

    ./run bench growth [--verbs add,search,…] [--scale 1] [--json FILE]

Every measurement is a process of its own, forked when the input is ready. Time is processor time of all its threads and processes;
memory is what its peak rose by. An exponent is the slope of a line through the four logarithms: 1 is in proportion, 2 the square; a
verb that answers from an index stays near 0. Encoding is measured with the bundled model; elsewhere a text's vector is a table's row,
and costs nothing.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from machine import describe_machine
from munjang import (
    Library,
    SentenceEncoder,
    apply_classifier,
    cluster,
    dedupe,
    encode_bulk,
    extract_keywords,
    fit_classifier,
    fit_topics,
    match,
    mine_pairs,
)

DIMENSION, LABELS, WORDS = 384, 8, 30_000
QUESTIONS, WARM = 20, 200
Prepare = Callable[[int, Path], Callable[[], object]]


class FreeEncoder:
    """An encoder that costs next to nothing: texts that end alike are near each other."""

    name = fingerprint = "free"
    dimension = DIMENSION
    rows = np.random.default_rng(1).standard_normal((1024, DIMENSION)).astype(np.float32)

    def encode(self, texts: Sequence[str], /) -> np.ndarray:
        """Return one row per text."""
        return self.rows[[hash(text[-6:]) % len(self.rows) for text in texts]]


def texts(count: int, words: int = 12) -> list[str]:
    """Return texts of words as unevenly frequent as those of a language."""
    frequent = 1 / np.arange(1, WORDS + 1)
    chosen = np.random.default_rng(2).choice(WORDS, size=(count, words), p=frequent / frequent.sum())
    return [" ".join(f"w{word}" for word in row) for row in chosen]


def vectors(count: int) -> np.ndarray:
    """Return unit vectors in clusters of about 50."""
    random = np.random.default_rng(3)
    centres = random.standard_normal((max(count // 50, 1), DIMENSION), dtype=np.float32)
    found = centres[random.integers(0, len(centres), count)] + 0.6 * random.standard_normal((count, DIMENSION), dtype=np.float32)
    return np.asarray(found / np.linalg.norm(found, axis=1, keepdims=True), dtype=np.float32)


def labels(count: int) -> list[str]:
    """Return a label for each vector."""
    return [f"label {number % LABELS}" for number in range(count)]


def _encode(n: int, _: Path) -> Callable[[], object]:
    model, chosen = SentenceEncoder.load(), texts(n)
    return lambda: model.encode(chosen)


def _add(n: int, folder: Path) -> Callable[[], object]:
    library, chosen = Library.open(folder / "a.db", FreeEncoder(), analyser="bigrams"), texts(n)
    return lambda: library.add(chosen)


def _search(n: int, folder: Path) -> Callable[[], object]:
    library, asked = Library.open(folder / "a.db", FreeEncoder(), analyser="bigrams"), texts(QUESTIONS, 4)
    library.add(texts(n))
    for text in asked:  # what words select is read once a commit
        library.search(text)
    return lambda: [library.search(text) for text in asked]


def _bulk(n: int, folder: Path) -> Callable[[], object]:
    source = folder / "texts.txt"
    source.write_text("\n".join(texts(n)), encoding="utf-8")
    return lambda: encode_bulk(source, folder / "out", workers=1, shard_rows=4096)


def _classifier(n: int, _: Path) -> Callable[[], object]:
    made = fit_classifier([""] * 400, labels(400), vectors=vectors(400))
    rows = vectors(n)
    return lambda: apply_classifier(made, [""] * n, vectors=rows)


VERBS: dict[str, tuple[int, Prepare]] = {
    "encode": (32, _encode),
    "add": (2_000, _add),
    f"search, {QUESTIONS} questions": (5_000, _search),
    "keywords": (100, lambda n, _: (lambda chosen: lambda: extract_keywords(chosen, FreeEncoder(), max_words=2))(texts(n, 40))),
    "cluster, k = 8": (2_000, lambda n, _: (lambda rows: lambda: cluster(rows, k=8))(vectors(n))),
    "cluster, communities": (2_000, lambda n, _: (lambda rows: lambda: cluster(rows, method="communities", threshold=0.7))(vectors(n))),
    "topics": (1_000, lambda n, _: (lambda rows, told: lambda: fit_topics(told, vectors=rows))(vectors(n), texts(n, 20))),
    "pairs": (2_000, lambda n, _: (lambda rows: lambda: mine_pairs(rows, top=10_000))(vectors(n))),
    "dedupe": (2_000, lambda n, _: (lambda rows: lambda: dedupe(rows, threshold=0.9))(vectors(n))),
    "match": (1_000, lambda n, _: (lambda rows: lambda: match(rows, rows[::-1]))(vectors(n))),
    "classify fit": (500, lambda n, _: (lambda rows: lambda: fit_classifier([""] * n, labels(n), vectors=rows))(vectors(n))),
    "classify apply": (10_000, _classifier),
    "bulk": (128, _bulk),
}


def measure(prepare: Prepare, n: int) -> tuple[float, float]:
    """Return seconds of processor time and megabytes that the peak rose by, of a call in a process of its own."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        with tempfile.TemporaryDirectory() as folder:
            first = Path(folder) / "first"
            first.mkdir()
            prepare(min(n, WARM), first)()  # what is imported at the first call does not count
            call = prepare(n, Path(folder))
            before, start = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, sum(os.times()[:4])
            call()
            seconds = sum(os.times()[:4]) - start  # with the processes that it has waited for
            rose = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
        os.write(writing, json.dumps([seconds, rose / 1024]).encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as told:
        said = told.read()
    os.waitpid(child, 0)
    seconds, megabytes = json.loads(said)
    return seconds, megabytes


def fit_exponent(sizes: Sequence[int], values: Sequence[float]) -> float:
    """Return the slope of the line through the logarithms.

    >>> round(fit_exponent([1, 2, 4], [3, 12, 48]), 2)
    2.0
    """
    return float(np.polyfit(np.log(sizes), np.log(np.maximum(values, 1e-3)), 1)[0])


def main() -> None:
    """Measure, fit, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--verbs", default="")
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    wanted = [each.strip() for each in options.verbs.split(",") if each.strip()]
    report: dict[str, Any] = {"machine": describe_machine(), "verbs": {}}
    print(f"{'verb':24}{'n':>8}{'seconds at n, 2n, 4n, 8n':>36}{'time':>8}{'MB':>30}{'memory':>8}")
    for name, (start, prepare) in VERBS.items():
        if wanted and not any(name.startswith(each) for each in wanted):
            continue
        sizes = [int(start * options.scale) * 2**step for step in range(4)]
        seconds, megabytes = zip(*(measure(prepare, n) for n in sizes), strict=True)
        exponents = fit_exponent(sizes, seconds), fit_exponent(sizes, np.maximum(megabytes, 1.0))
        report["verbs"][name] = {"sizes": sizes, "cpu_s": seconds, "mb": megabytes, "time_exponent": exponents[0]}
        told, held = "".join(f"{each:9.3f}" for each in seconds), "".join(f"{each:7.0f}" for each in megabytes)
        print(f"{name:24}{sizes[0]:8,}{told:>36}{exponents[0]:8.2f}{held:>30}{exponents[1]:8.2f}", flush=True)
    if options.json:
        options.json.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
