"""An encoder that is no model: every word has a fixed direction, a text is their sum. Deterministic, fast, and alike texts are near."""

from __future__ import annotations

import hashlib
from functools import cache

import numpy as np
import pytest
from tests.postgres import postgres_url

from munjang.library.library import Library


@cache
def direction(word: str, dimension: int) -> np.ndarray:
    seed = int.from_bytes(hashlib.blake2b(word.encode(), digest_size=8).digest(), "little")
    return np.random.default_rng(seed).normal(size=dimension).astype(np.float32)


class StubEncoder:
    """Counts what it encodes."""

    def __init__(self, name: str = "stub", dimension: int = 16) -> None:
        self.name, self.dimension = name, dimension
        self.fingerprint = f"{name}-{dimension}"
        self.seen: list[str] = []

    def encode(self, texts) -> np.ndarray:
        texts = list(texts)
        self.seen += texts
        rows = [
            sum((direction(word, self.dimension) for word in text.split()[:200]), np.zeros(self.dimension, np.float32)) for text in texts
        ]
        return np.array(rows, dtype=np.float32).reshape(len(texts), self.dimension)


@pytest.fixture
def encoder() -> StubEncoder:
    return StubEncoder()


@pytest.fixture(scope="session")
def make_encoder():
    return StubEncoder


@pytest.fixture
def opened(tmp_path):
    """Open a library in the test's folder; all are closed at the end."""
    made: list[Library] = []

    def open_library(encoder=None, name: str = "a.db", **options) -> Library:
        library = Library.open(tmp_path / name, encoder, **{"analyser": "bigrams"} | options)
        made.append(library)
        return library

    yield open_library
    for library in made:
        library.close()


@pytest.fixture
def library(opened, encoder) -> Library:
    return opened(encoder)


@pytest.fixture(scope="session")
def url() -> str:
    """The address of a real PostgreSQL."""
    return postgres_url()
