"""Many threads load, encode and search at once: every answer is that of one thread alone."""

from __future__ import annotations

import random
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from tests.conftest import TEXTS
from tests.faults.library_worker import opened, record
from tests.trust.sizes import LENGTHS, sized

from munjang.models.sentence_encoder import SentenceEncoder

THREADS = 8
BOUND = 2e-6


@pytest.fixture(autouse=True)
def _switch_often():
    """Let Python change threads a thousand times as often as it would."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(5e-6)
    yield
    sys.setswitchinterval(before)


def race(work: Callable[[random.Random], bool], seconds: float) -> tuple[int, int]:
    """Let threads begin at the same moment and work for some seconds; return how often, and how often the answer was wrong."""
    start, end = threading.Barrier(THREADS), time.monotonic() + seconds

    def run(seed: int) -> tuple[int, int]:
        chance, count, wrong = random.Random(seed), 0, 0
        start.wait()
        while not count or time.monotonic() < end:
            count, wrong = count + 1, wrong + (not work(chance))
        return count, wrong

    with ThreadPoolExecutor(THREADS) as pool:
        counts = list(pool.map(run, range(THREADS)))
    return sum(count for count, _ in counts), sum(wrong for _, wrong in counts)


@LENGTHS
@pytest.mark.parametrize("what", ["load", "load int8", "encode", "search", "search while writing"])
def test_threads_do_not_disturb_each_other(tiny_bert_folder, tmp_path, monkeypatch, what, length, figures):
    monkeypatch.setenv("MUNJANG_HOME", str(tmp_path / "home"))  # an empty graph cache, which all threads fill at once
    seconds = sized("seconds of mixed work", length) / 10
    if what.startswith("search"):
        with opened(str(tmp_path / "a.db")) as library:
            library.add([record(str(number), number) for number in range(60)])
            count, wrong = race(_search(library, writes="writing" in what), seconds)
            assert library.check() == []
    else:
        compute = "int8" if "int8" in what else "float32"
        alone = SentenceEncoder.load(tiny_bert_folder, compute=compute)
        expected = alone.encode_with_report(TEXTS).vectors

        def work(chance: random.Random) -> bool:
            model = alone if what == "encode" else SentenceEncoder.load(tiny_bert_folder, compute=compute, threads=1)
            rows = chance.sample(range(len(TEXTS)), 4)
            found = model.encode_with_report([TEXTS[row] for row in rows]).vectors
            return bool(np.abs(found - expected[rows]).max() <= BOUND)

        count, wrong = race(work, seconds)
    figures("threads at once get the answers of one thread", cases=count, bad=wrong)
    assert not wrong
    assert count >= THREADS


def _search(library, *, writes: bool) -> Callable[[random.Random], bool]:
    expected = {number: [(hit.id, hit.score) for hit in library.search(f"document {number}", k=5)] for number in range(5)}
    turn = threading.Lock()

    def work(chance: random.Random) -> bool:
        if writes and chance.random() < 0.2:
            with turn:  # one writer at a time is the rule of the store, and not under test here
                library.add([record(str(number), chance.randrange(1_000)) for number in range(8)])
            return True
        number = chance.randrange(5)
        hits = library.search(f"document {number}", k=5)
        if writes:
            return all(f"document {hit.id} version {hit.metadata['version']} " in hit.text for hit in hits)
        return [(hit.id, hit.score) for hit in hits] == expected[number]

    return work
