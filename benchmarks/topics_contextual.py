"""The contextual topic model beside scikit-learn's LDA on the same words, and across languages.

    python benchmarks/topics_contextual.py --model NAME [--parts news,bills] [--topics 10] [--vectors bills.npy] [--json FILE]

news: 3,000 Korean sentences with English translations. Topics are learned on the Korean side; the English side is assigned by its vectors
alone. "same topic" is how often a translation lands in the topic of its original, "chance" how often it would if topics were shuffled.
bills: 7,000 Korean bills. Printed for both: NPMI and diversity of ten words per topic, over the same bag of nouns and the same vocabulary.
"""

from __future__ import annotations

import argparse
import gzip
import json
import time
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.decomposition import LatentDirichletAllocation

from munjang import SentenceEncoder
from munjang.analyze.contextual import dense_counts, fit_contextual
from munjang.analyze.topics.bag import Bag
from munjang.analyze.topics.coherence import diversity, npmi
from munjang.analyze.topics.topic_words import bag_of
from munjang.text.tagging import tagger
from topics import DATA, bills, vectors_of

NEWS = DATA.parents[1] / "korean-parallel-news"
TOP = 10


def best(weights: np.ndarray, words: tuple[str, ...]) -> list[list[str]]:
    return [[words[place] for place in np.argsort(-row, kind="stable")[:TOP]] for row in weights]


def against_lda(bag: Bag, vectors: np.ndarray, topics: int) -> tuple[dict[str, Any], Any]:
    """Return the figures of both, and the contextual model."""
    used = time.process_time()
    ours = fit_contextual(bag, vectors, topics=topics)
    spent = time.process_time() - used
    used = time.process_time()
    lda = LatentDirichletAllocation(topics, random_state=0, max_iter=20).fit(dense_counts(bag, ours.words))
    lda_spent = time.process_time() - used
    chosen = {"contextual": best(ours.word_weights(bag.vocabulary), bag.vocabulary), "lda": best(lda.components_, ours.words)}
    figures = {
        name: {"npmi": round(float(np.mean(npmi(words, bag))), 4), "diversity": round(diversity(words), 4)}
        for name, words in chosen.items()
    }
    figures["contextual"]["cpu_s"], figures["lda"]["cpu_s"] = round(spent, 1), round(lda_spent, 1)
    return figures, ours


def news(model: str | None, topics: int, pairs: int) -> dict[str, Any]:
    sides = {}
    for language in ("ko", "en"):
        parts = [NEWS / f"korean-english-park.{part}.{language}.gz" for part in ("test", "dev")]
        sides[language] = [line for part in parts for line in gzip.decompress(part.read_bytes()).decode().splitlines()][:pairs]
    encoder = SentenceEncoder.load(model, compute="int8", max_length=128)
    korean, english = (np.asarray(encoder.encode(sides[language])) for language in ("ko", "en"))
    figures, found = against_lda(bag_of(sides["ko"], tagger("kiwi")), korean, topics)
    here, there = found.features(korean).argmax(axis=1), found.features(english).argmax(axis=1)
    shares = [np.bincount(side, minlength=topics) / len(side) for side in (here, there)]
    # Each language has a mean of its own in the space of meaning; without it, the English side is judged by what it says alone.
    moved = english - english.mean(axis=0) + korean.mean(axis=0)
    shifted = found.features(moved).argmax(axis=1)
    figures["across languages"] = {
        "same topic": round(float((here == there).mean()), 4),
        "same topic, means aligned": round(float((here == shifted).mean()), 4),
        "chance": round(float(shares[0] @ shares[1]), 4),
        "pairs": len(here),
    }
    return figures


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--model")
    options.add_argument("--parts", default="news,bills")
    options.add_argument("--topics", type=int, default=10)
    options.add_argument("--pairs", type=int, default=3_000)
    options.add_argument("--vectors", type=Path, default=Path("bills.npy"))
    options.add_argument("--json", type=Path)
    chosen = options.parse_args()
    results: dict[str, Any] = {"topics": chosen.topics}
    if "news" in chosen.parts:
        results["news"] = news(chosen.model, chosen.topics, chosen.pairs)
        print("news", json.dumps(results["news"], indent=1), flush=True)
    if "bills" in chosen.parts:
        texts, _ = bills(DATA)
        vectors_of(texts, chosen.vectors, chosen.model)
        results["bills"] = against_lda(bag_of(texts, tagger("kiwi")), np.load(chosen.vectors), chosen.topics)[0]
        print("bills", json.dumps(results["bills"], indent=1), flush=True)
    if chosen.json:
        chosen.json.write_text(json.dumps(results) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
