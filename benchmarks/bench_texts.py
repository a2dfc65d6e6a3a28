"""Texts to measure with: real ones from ../shared/data where that folder is, otherwise the sample collection, repeated with variations."""

from __future__ import annotations

import csv
import gzip
import re
from pathlib import Path

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"


def short_sentences(count: int) -> list[str]:
    """Return distinct sentences of about 12 words."""
    file = DATA / "stsb-en" / "stsb-en-train.csv.gz"
    if not file.exists():
        return _samples(count)
    with gzip.open(file, "rt", encoding="utf-8", newline="") as lines:
        sentences = dict.fromkeys(sentence for row in csv.reader(lines) for sentence in row[:2])
    return list(sentences)[:count]


def passages(count: int) -> list[str]:
    """Return distinct passages of 60 to 250 words."""
    file = DATA / "cranfield" / "cran.all.1400.xml.gz"
    if not file.exists():
        sentences = _samples(count * 8)
        return [" ".join(sentences[start : start + 8]) for start in range(0, count * 8, 8)]
    with gzip.open(file, "rt", encoding="utf-8") as whole:
        texts = re.findall(r"<text>(.*?)</text>", whole.read(), re.DOTALL)
    cleaned = (" ".join(text.split()) for text in texts)
    return [text for text in cleaned if 60 <= len(text.split()) <= 250][:count]


def _samples(count: int) -> list[str]:
    from munjang.models.samples import load_samples

    texts = [sample.text for sample in load_samples() if sample.language == "en"]
    return [f"{texts[number % len(texts)]} {number}" for number in range(count)]
