"""One encoder, many threads: the same vectors as from one."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from tests.conftest import TEXTS

from munjang.models.sentence_encoder import SentenceEncoder

BOUND = 2e-6
THREADS = 8


def encode_for(seconds: float, model: SentenceEncoder) -> int:
    """Call encode from 8 threads at once and compare every answer; return how many there were."""
    expected = model.encode_with_report(TEXTS).vectors
    end = time.monotonic() + seconds

    def work(seed: int) -> int:
        chosen, count = random.Random(seed), 0
        while time.monotonic() < end:
            numbers = chosen.choices(range(len(TEXTS)), k=chosen.randint(1, 30))
            vectors = model.encode_with_report([TEXTS[number] for number in numbers]).vectors
            assert np.abs(vectors - expected[numbers]).max() <= BOUND
            count += 1
        return count

    with ThreadPoolExecutor(THREADS) as pool:
        return sum(pool.map(work, range(THREADS)))


@pytest.mark.parametrize("family", ["bert", "mpnet"])
def test_many_threads_get_the_single_threads_vectors(family, tiny_folder):
    assert encode_for(1.5, SentenceEncoder.load(tiny_folder(family))) > THREADS


@pytest.mark.slow
def test_many_threads_get_the_single_threads_vectors_for_20_seconds(tiny_folder):
    assert encode_for(20, SentenceEncoder.load(tiny_folder("bert"))) > 100


def test_token_vectors_may_be_asked_for_by_many_threads(tiny_bert_folder):
    model = SentenceEncoder.load(tiny_bert_folder)
    expected = SentenceEncoder.load(tiny_bert_folder).encode_tokens(TEXTS[:4])
    with ThreadPoolExecutor(THREADS) as pool:
        for found in pool.map(lambda _: model.encode_tokens(TEXTS[:4]), range(16)):
            assert all(np.array_equal(one.vectors, other.vectors) for one, other in zip(found, expected, strict=True))


FORKS = """
import os, sys
from munjang import SentenceEncoder
model = SentenceEncoder.load(sys.argv[1], threads=2)
expected = model.encode_with_report(["rain", "snow is in winter"]).vectors
child = os.fork()
if child == 0:
    same = abs(model.encode_with_report(["rain", "snow is in winter"]).vectors - expected).max() <= 2e-6
    os._exit(0 if same else 1)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@pytest.mark.skipif(not hasattr(os, "fork") or sys.version_info >= (3, 12), reason="fork beside threads warns from Python 3.12 on")
def test_an_encoder_works_in_a_forked_process(tiny_bert_folder):
    # in a process of its own: forking one that has torch's threads can hang, whatever we do
    command = [sys.executable, "-c", FORKS, str(tiny_bert_folder)]
    environment = {**os.environ, "TOKENIZERS_PARALLELISM": "false"}
    assert subprocess.run(command, env=environment, timeout=60).returncode == 0


def test_a_stream_left_half_way_leaves_nothing_waiting(tiny_bert_folder):
    model = SentenceEncoder.load(tiny_bert_folder, threads=2)
    stream = model.encode_stream((f"rain {number}" for number in range(10_000)), block=100)
    next(stream)
    stream.close()
    assert model.encode("rain").shape == (32,)
