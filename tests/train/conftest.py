"""Tiny models and data, made here: two layers, width 32, sentences of our own."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.forked import Forks, open_forks

pytest.importorskip("torch")
pytest.importorskip("transformers")

NOUNS = ("cat", "dog", "bird", "river", "stone", "child", "teacher", "train", "garden", "window")
VERBS = ("sees", "follows", "hears", "paints", "carries", "forgets")


def sentence_pairs(count: int, seed: int = 1) -> list[tuple[str, str, float]]:
    """Pairs whose score is the share of words they have in common."""
    chance = random.Random(seed)
    made = []
    for number in range(count):
        first = (chance.choice(NOUNS), chance.choice(VERBS), chance.choice(NOUNS))
        second = tuple(word if chance.random() < 0.6 else chance.choice(VERBS if at == 1 else NOUNS) for at, word in enumerate(first))
        shared = sum(a == b for a, b in zip(first, second, strict=True)) / 3
        tail = " and then it goes home again" * (number % 4)
        made.append(
            (f"The {first[0]} {first[1]} the {first[2]}{tail}, part {number}.", f"A {second[0]} {second[1]} a {second[2]}.", shared * 5)
        )
    return made


@pytest.fixture
def pairs_file(tmp_path: Path) -> Path:
    path = tmp_path / "pairs.tsv"
    lines = ["sentence1\tsentence2\tscore", *(f"{a}\t{b}\t{score}" for a, b, score in sentence_pairs(96))]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


@pytest.fixture
def recipe_values() -> dict[str, Any]:
    """A recipe for a tiny model from nothing on `pairs.tsv`, as TOML would give it."""
    return {
        "output": "out",
        "seed": 7,
        "checkpoint_every": 4,
        "model": {"scratch": {"vocabulary": 200, "layers": 2, "width": 32, "heads": 2, "inner": 64, "positions": 64}},
        "stage": [
            {
                "objective": "regression",
                "epochs": 2,
                "batch_size": 16,
                "learning_rate": 1e-3,
                "data": [{"path": "pairs.tsv", "label_range": [0, 5]}],
            }
        ],
    }


@pytest.fixture(scope="session")
def tiny_tokenizer() -> Any:
    from munjang.train.build import make_tokenizer
    from munjang.train.recipe import ScratchRecipe

    texts = [text for a, b, _ in sentence_pairs(60) for text in (a, b)]
    return make_tokenizer(ScratchRecipe(vocabulary=200), texts, max_length=64)


@pytest.fixture(scope="session")
def forks() -> Iterator[Forks]:
    """Processes of their own that have imported torch."""
    pytest.importorskip("accelerate", reason="accelerate is not installed")
    if not hasattr(os, "fork"):
        pytest.skip("needs fork")
    with open_forks() as started:
        yield started
