"""Comparing n sentences with each other: what is measured, what is extrapolated, and from how much."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from munjang import CrossEncoder, SentenceEncoder
from munjang.errors import UsageError
from munjang.models.cross_vs_bi_timing import PAIRS_AT_ONCE, number_samples, time_all_pairs, write_untrained_cross_encoder


class Timed:
    """An encoder that takes 0.01 s for a text and a scorer that takes 0.1 s for a pair, on a clock of their own."""

    dimension, fingerprint = 4, "timed"

    def __init__(self) -> None:
        self.now = 0.0
        self.pairs: list[tuple[str, str]] = []

    def clock(self) -> float:
        return self.now

    def encode(self, texts: Sequence[str], /) -> Any:
        self.now += 0.01 * len(texts)
        return np.random.default_rng(len(texts)).normal(size=(len(texts), 4)).astype(np.float32)

    def predict(self, pairs: Sequence[tuple[str, str]], /) -> Any:
        self.now += 0.1 * len(pairs)
        self.pairs += pairs
        return np.zeros(len(pairs), np.float32)


def test_all_pairs_are_extrapolated_from_the_sample_and_the_vectors_are_measured_whole() -> None:
    timed = Timed()
    found = time_all_pairs(timed, timed, number_samples(1_000), seconds=60, clock=timed.clock)
    assert found.pairs == 1_000 * 999 // 2
    assert found.sampled_pairs == 2 * PAIRS_AT_ONCE  # the first block takes 51 s
    assert found.sampled_seconds == pytest.approx(0.1 * found.sampled_pairs)
    assert found.cross_seconds == pytest.approx(0.1 * found.pairs)
    assert found.bi_seconds == pytest.approx(10)
    assert found.ratio == pytest.approx(0.1 * found.pairs / 10)
    assert found.to_json()["ratio"] == found.ratio


@pytest.mark.parametrize("n", [2, 3, 50])
def test_no_text_is_paired_with_itself_and_every_text_is_drawn(n: int) -> None:
    timed, texts = Timed(), number_samples(n)
    time_all_pairs(timed, timed, texts, seconds=0, clock=timed.clock)
    assert all(a != b for a, b in timed.pairs)
    assert {text for pair in timed.pairs for text in pair} == set(texts)


def test_one_sentence_has_no_pairs() -> None:
    timed = Timed()
    with pytest.raises(UsageError, match="1 sentences have no pairs"):
        time_all_pairs(timed, timed, ["alone"])


def test_the_sentences_differ() -> None:
    assert len(set(number_samples(5_000))) == 5_000


@pytest.mark.parametrize("family", ["bert", "electra", "roberta", "xlm-roberta", "mpnet", "distilbert"])
def test_an_untrained_head_runs_on_every_family_and_others_read_it(tiny_folder: Callable[..., Path], family: str, tmp_path: Path) -> None:
    encoder = SentenceEncoder.load(tiny_folder(family=family))
    write_untrained_cross_encoder(encoder.folder, encoder.tokenizer, tmp_path)
    pairs = [("the rain", "a dog was on the train"), ("비가 많이 온다", "cat")]
    scores = CrossEncoder.load(tmp_path).predict(pairs)
    assert scores.shape == (2,)
    sentence_transformers = pytest.importorskip("sentence_transformers", reason="the authority is not installed")
    from tests.conftest import quiet

    with quiet():
        theirs = sentence_transformers.CrossEncoder(str(tmp_path), device="cpu").predict(pairs)
    np.testing.assert_allclose(theirs, scores, atol=1e-5)
