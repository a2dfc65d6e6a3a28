"""Keywords beside KeyBERT with the same model on Korean bills, interleaved in one run.

    python benchmarks/keywords.py [--data bills.tsv.gz] [--texts 500] [--rounds 1] [--ngrams 1] [--json FILE]

KeyBERT gets a sentence-transformers model of the same folder and its own default candidates (words of a CountVectorizer; --ngrams 3 asks
for one to three words, as Munjang looks for). Both get the whole list of texts in one call, five keywords a text by MMR. Then it is checked
that all of Munjang's Korean candidates stand verbatim in their text and end in no particle or ending, by Kiwi's tags in the text and of the
phrase by itself; KeyBERT's keywords are held to the same rule.
"""

from __future__ import annotations

import argparse
import gzip
import json
import statistics
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from machine import describe_machine
from munjang import SentenceEncoder
from munjang.analyze.keywords import extract_keywords, find_candidates
from munjang.models.registry import resolve
from munjang.text.korean import has_hangul
from munjang.text.phrases import end_in_nouns
from munjang.text.tagging import choose_tagger
from munjang.text.unicode import clean

DATA = Path(__file__).parents[2] / "shared/data/korean-assembly-bills/bills_14x500.tsv.gz"
TOP, DIVERSITY = 5, 0.5


def bills(path: Path, count: int) -> list[str]:
    """Return texts that are spread evenly over the file, so over its committees."""
    with gzip.open(path, "rt", encoding="utf-8") as handle:
        next(handle)
        texts = [line.rstrip("\n").split("\t")[3] for line in handle]
    return texts[:: max(len(texts) // count, 1)][:count]


def verbatim_and_clean(texts: Sequence[str]) -> dict[str, Any]:
    """Count the Korean candidates that break a rule."""
    found = find_candidates(texts)
    tags = list(choose_tagger().tag(texts))
    total = elsewhere = in_text = 0
    for text, morphemes, each in zip(map(clean, texts), tags, found, strict=True):
        ends = {morpheme.end: morpheme.tag for morpheme in morphemes}
        for one in (one for one in each if has_hangul(one.text)):
            total += 1
            elsewhere += one.text not in text
            in_text += any(ends.get(end, "J").startswith(("J", "E")) for _, end in one.places)
    different = sorted({one.text for each in found for one in each if has_hangul(one.text)})
    alone = end_in_nouns(different).count(False)
    return {
        "candidates": total,
        "different": len(different),
        "not verbatim": elsewhere,
        "particle in text": in_text,
        "particle alone": alone,
    }


def broken(keywords: Sequence[str]) -> int:
    """Return how many different Korean keywords end in a particle or ending when read by themselves."""
    different = sorted({word for word in keywords if has_hangul(word)})
    return end_in_nouns(different).count(False)


def keybert(model: str, ngrams: int) -> Callable[[Sequence[str]], list[list[tuple[str, float]]]] | None:
    """Return KeyBERT as a function of texts, or None where it is not installed."""
    try:
        from keybert import KeyBERT
        from sentence_transformers import SentenceTransformer
    except ImportError as missing:
        print(f"KeyBERT is left out: {missing.name} is not installed (pip install --no-deps keybert)")
        return None
    theirs = KeyBERT(SentenceTransformer(str(resolve(model).path), device="cpu"))
    return lambda texts: theirs.extract_keywords(
        list(texts), keyphrase_ngram_range=(1, ngrams), stop_words=None, use_mmr=True, diversity=DIVERSITY, top_n=TOP
    )


def main() -> None:
    """Measure, check, print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--texts", type=int, default=500)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--ngrams", type=int, default=1)
    parser.add_argument("--model", default="all-MiniLM-L6-v2")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    texts = bills(options.data, options.texts)
    encoder = SentenceEncoder.load(options.model)
    routes: dict[str, Callable[[], Any]] = {"munjang": lambda: extract_keywords(texts, encoder, top=TOP, diversity=DIVERSITY)}
    theirs = keybert(options.model, options.ngrams)
    if theirs is not None:
        routes["keybert"] = lambda: theirs(texts)
    extract_keywords(texts[:2], encoder)  # Kiwi is loaded
    wall: dict[str, list[float]] = {name: [] for name in routes}
    cpu: dict[str, list[float]] = {name: [] for name in routes}
    answers: dict[str, Any] = {}
    for _ in range(options.rounds):
        for name, route in routes.items():
            started, used = time.perf_counter(), time.process_time()
            answers[name] = route()
            wall[name].append(time.perf_counter() - started)
            cpu[name].append(time.process_time() - used)
    report: dict[str, Any] = {"machine": describe_machine(), "texts": len(texts), "ngrams": options.ngrams, "model": options.model}
    for name in routes:
        seconds, used = statistics.median(wall[name]), statistics.median(cpu[name])
        report[name] = {"wall_s": round(seconds, 2), "cpu_s": round(used, 2), "texts_per_s": round(len(texts) / seconds, 2)}
        print(f"{name:<8} {seconds:8.1f} s wall {used:8.1f} s cpu {len(texts) / seconds:8.2f} texts/s")
    if theirs is not None:
        report["ratio_wall"] = round(report["keybert"]["wall_s"] / report["munjang"]["wall_s"], 2)
        report["ratio_cpu"] = round(report["keybert"]["cpu_s"] / report["munjang"]["cpu_s"], 2)
        report["keybert"]["particles"] = broken([word for words in answers["keybert"] for word, _ in words])
        print(
            f"ratio    {report['ratio_wall']} wall, {report['ratio_cpu']} cpu; KeyBERT's with a particle: {report['keybert']['particles']}"
        )
    report["munjang"]["particles"] = broken([word.text for words in answers["munjang"] for word in words])
    report["checked"] = verbatim_and_clean(texts)
    print(report["checked"])
    if options.json:
        options.json.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
