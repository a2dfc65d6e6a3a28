"""The contextual topic model beside scikit-learn's LDA on the same words, and across languages.

    python benchmarks/topics_contextual.py [--model NAME] [--parts news,bills,abstracts,paragraphs] [--topics 10] [--seeds 2]
        [--vectors bills.npy] [--json FILE]

news: 3,000 Korean sentences with English translations. Topics are learned on the Korean side; the English side is assigned by its vectors
alone. "same topic" is how often a translation lands in the topic of its original, "chance" how often it would if topics were shuffled.
bills: 7,000 Korean bills. abstracts: Cranfield's 1,400 in English. paragraphs: 961 of the Korean Wikipedia.
Printed for each, as means over the seeds: NPMI and diversity of ten words per topic, over the same bag of nouns and the same vocabulary.
"""

from __future__ import annotations

import argparse
import gzip
import json
import re
import time
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix
from sklearn.decomposition import LatentDirichletAllocation

from munjang import SentenceEncoder
from munjang.analyze.contextual import ContextualTopics, count_densely, fit_contextual
from munjang.analyze.topics.topic_words import Bag, bag_words, compute_diversity, compute_npmi
from munjang.text.tagging import choose_tagger
from topics import DATA, bills, vectors_of

NEWS = DATA.parents[1] / "korean-parallel-news"
TOP = 10


def best(weights: np.ndarray, words: tuple[str, ...]) -> list[list[str]]:
    return [[words[place] for place in np.argsort(-row, kind="stable")[:TOP]] for row in weights]


def against_lda(bag: Bag, vectors: np.ndarray, topics: int, seeds: int) -> tuple[dict[str, Any], list[ContextualTopics]]:
    """Return the figures of both, and the contextual models."""
    found: dict[str, list[dict[str, float]]] = {"contextual": [], "lda": []}
    models = []
    for seed in range(seeds):
        used = time.process_time()
        models.append(ours := fit_contextual(bag, vectors, topics=topics, seed=seed))
        found["contextual"].append(figures(best(ours.word_weights(bag.vocabulary), bag.vocabulary), bag, used))
        used = time.process_time()
        lda = LatentDirichletAllocation(topics, random_state=seed, max_iter=20).fit(csr_matrix(count_densely(bag, ours.words)))
        found["lda"].append(figures(best(lda.components_, ours.words), bag, used))
    means = {way: {name: round(float(np.mean([each[name] for each in all])), 4) for name in all[0]} for way, all in found.items()}
    return {**means, "npmi of each seed": {way: [round(each["npmi"], 4) for each in all] for way, all in found.items()}}, models


def figures(words: list[list[str]], bag: Bag, used: float) -> dict[str, float]:
    return {"npmi": float(np.mean(compute_npmi(words, bag))), "diversity": compute_diversity(words), "cpu_s": time.process_time() - used}


def english_abstracts() -> list[str]:
    whole = gzip.decompress((DATA.parents[1] / "cranfield/cran.all.1400.xml.gz").read_bytes()).decode()
    return [" ".join(text.split()) for text in re.findall("<text>(.*?)</text>", whole, re.DOTALL) if text.strip()]


def korean_paragraphs() -> list[str]:
    whole = json.loads(gzip.decompress((DATA.parents[1] / "korquad1-dev/KorQuAD_v1.0_dev.json.gz").read_bytes()))
    return list(dict.fromkeys(part["context"] for article in whole["data"] for part in article["paragraphs"]))


def encoded(texts: list[str], model: str | None) -> np.ndarray:
    return np.asarray(SentenceEncoder.load(model, compute="int8", max_length=128).encode(texts))


def news(model: str | None, topics: int, pairs: int, seeds: int) -> dict[str, Any]:
    sides = {}
    for language in ("ko", "en"):
        parts = [NEWS / f"korean-english-park.{part}.{language}.gz" for part in ("test", "dev")]
        sides[language] = [line for part in parts for line in gzip.decompress(part.read_bytes()).decode().splitlines()][:pairs]
    korean, english = (encoded(sides[language], model) for language in ("ko", "en"))
    shown, models = against_lda(bag_words(sides["ko"], choose_tagger("kiwi")), korean, topics, seeds)
    shown["across languages"] = [across(found, korean, english, topics) for found in models]
    return shown


def across(found: ContextualTopics, korean: np.ndarray, english: np.ndarray, topics: int) -> dict[str, float]:
    here, there = found.features(korean).argmax(axis=1), found.features(english).argmax(axis=1)
    shares = [np.bincount(side, minlength=topics) / len(side) for side in (here, there)]
    # Each language has a mean of its own in the space of meaning; without it, the English side is judged by what it says alone.
    moved = english - english.mean(axis=0) + korean.mean(axis=0)
    shifted = found.features(moved).argmax(axis=1)
    return {
        "same topic": round(float((here == there).mean()), 4),
        "same topic, means aligned": round(float((here == shifted).mean()), 4),
        "chance": round(float(shares[0] @ shares[1]), 4),
        "pairs": len(here),
    }


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--model")
    options.add_argument("--parts", default="news,bills,abstracts,paragraphs")
    options.add_argument("--topics", type=int, default=10)
    options.add_argument("--seeds", type=int, default=2)
    options.add_argument("--pairs", type=int, default=3_000)
    options.add_argument("--vectors", type=Path, default=Path("bills.npy"))
    options.add_argument("--json", type=Path)
    chosen = options.parse_args()
    results: dict[str, Any] = {"topics": chosen.topics}
    for part in chosen.parts.split(","):
        if part == "news":
            results[part] = news(chosen.model, chosen.topics, chosen.pairs, chosen.seeds)
        elif part == "bills":
            texts, _ = bills(DATA)
            vectors_of(texts, chosen.vectors, chosen.model)
            results[part] = against_lda(bag_words(texts, choose_tagger("kiwi")), np.load(chosen.vectors), chosen.topics, chosen.seeds)[0]
        else:
            texts = {"abstracts": english_abstracts, "paragraphs": korean_paragraphs}[part]()
            results[part] = against_lda(bag_words(texts, choose_tagger("kiwi")), encoded(texts, chosen.model), chosen.topics, chosen.seeds)[
                0
            ]
        print(part, json.dumps(results[part], indent=1), flush=True)
    if chosen.json:
        chosen.json.write_text(json.dumps(results) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
