"""A parallel file of our own for tiny teachers and students: English, and "translations" of other pieces."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

ENGLISH = ("the cat", "the dog", "the rain", "the sun", "a river", "a book")
KOREAN = ("고양이가", "개가", "비가", "눈이", "강이", "책이")


def translations(count: int, seed: int = 3) -> list[tuple[str, str]]:
    """Pairs that are all different."""
    chance = random.Random(seed)
    made = []
    for number in range(count):
        first, second = chance.randrange(6), chance.randrange(6)
        tail = " in the winter" * (number % 3)
        made.append((f"{ENGLISH[first]} is on {ENGLISH[second]}{tail} {number}", f"{KOREAN[first]} {KOREAN[second]} 온다 {number}"))
    return made


@pytest.fixture
def parallel_file(tmp_path: Path) -> Path:
    """Rows of two data sets, the last sixteen of the split dev."""
    path = tmp_path / "parallel.tsv"
    rows = [
        f"{'ours' if number % 5 else 'other'}\t{'train' if number < 80 else 'dev'}\t{en}\t{ko}"
        for number, (en, ko) in enumerate(translations(96))
    ]
    path.write_text("\n".join(["source\tsplit\ten\tko", *rows]) + "\n", encoding="utf-8")
    return path
