"""A domain's texts of our own, and tiny encoders that can learn."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

TISSUES = ("lung", "liver", "skin", "bone", "heart")
FINDINGS = ("swelling", "bleeding", "scarring", "growth")


def domain_texts(count: int) -> list[str]:
    chance = random.Random(5)
    return [
        f"Sample {number}: the histogram of {chance.choice(TISSUES)} tissue shows {chance.choice(FINDINGS)} and endothelial change."
        for number in range(count)
    ]


@pytest.fixture
def domain_file(tmp_path: Path) -> Path:
    path = tmp_path / "domain.txt"
    path.write_text("\n".join(domain_texts(60)) + "\n", encoding="utf-8")
    return path
