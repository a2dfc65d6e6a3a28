"""Questions with errors: nDCG@10 of hybrid search on KorQuAD when spaces are missing or syllables are mistyped.

    python benchmarks/query_errors.py [--queries 600] [--library FILE] [--json FILE]

A tenth of the syllables (a seeded draw for each question) gets a neighbouring key of the two-set keyboard in the place of one of its
letters; or all spaces go. "before" is the same search without what Munjang does about it. Differences are paired over questions.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import tempfile
from pathlib import Path

import numpy as np

from bench_texts import DATA
from munjang.cli.load_model import load_for_search
from munjang.data.retrieval import read_retrieval
from munjang.evaluate.bootstrap import paired_bootstrap, resample_mean
from munjang.library import library as library_module
from munjang.library.library import Library

INITIALS, VOWELS = "ㄱㄲㄴㄷㄸㄹㅁㅂㅃㅅㅆㅇㅈㅉㅊㅋㅌㅍㅎ", "ㅏㅐㅑㅒㅓㅔㅕㅖㅗㅘㅙㅚㅛㅜㅝㅞㅟㅠㅡㅢㅣ"
ROWS = ("ㅂㅈㄷㄱㅅㅛㅕㅑㅐㅔ", "ㅁㄴㅇㄹㅎㅗㅓㅏㅣ", "ㅋㅌㅊㅍㅠㅜㅡ")
FIRST, LAST = 0xAC00, 0xD7A3


def find_neighbours() -> dict[str, str]:
    """Return the keys beside and above or below each key, of the same kind of letter."""
    places = {key: (row, column) for row, keys in enumerate(ROWS) for column, key in enumerate(keys)}
    return {
        key: "".join(
            other
            for other, (row, column) in places.items()
            if other != key and (other in VOWELS) == (key in VOWELS)
            if abs(row - places[key][0]) <= 1 and abs(column - places[key][1]) <= 1
        )
        for key in places
    }


def mistype(text: str, share: float, chance: random.Random) -> str:
    """Return a text in which so many of its syllables have one wrong letter."""
    places = [at for at, ch in enumerate(text) if FIRST <= ord(ch) <= LAST]
    changed, neighbours = list(text), find_neighbours()
    for at in chance.sample(places, round(len(places) * share)):
        code = ord(text[at]) - FIRST
        initial, vowel, final = code // 588, code % 588 // 28, code % 28
        if chance.random() < 0.5 and neighbours.get(INITIALS[initial]):
            initial = INITIALS.index(chance.choice(neighbours[INITIALS[initial]]))
        elif neighbours.get(VOWELS[vowel]):
            vowel = VOWELS.index(chance.choice(neighbours[VOWELS[vowel]]))
        changed[at] = chr(FIRST + initial * 588 + vowel * 28 + final)
    return "".join(changed)


def score(library: Library, questions: dict[str, str], qrels: dict[str, dict[str, int]]) -> np.ndarray:
    """Return nDCG@10 of each question; each has one paragraph."""
    names = list(questions)
    gains = []
    for name, hits in zip(names, library.search_many([questions[name] for name in names], 10), strict=True):
        rank = next((at for at, hit in enumerate(hits, start=1) if qrels[name].get(hit.id)), None)
        gains.append(0.0 if rank is None else 1 / math.log2(rank + 1))
    return np.array(gains)


def main() -> None:
    """Print what each kind of error costs, before and after."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--queries", type=int, default=600)
    parser.add_argument("--library", type=Path)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    task = read_retrieval(DATA / "korquad1-dev/KorQuAD_v1.0_dev.json.gz")
    chance = random.Random(0)
    names = chance.sample(sorted(task.queries), options.queries)
    clean = {name: task.queries[name] for name in names}
    kinds = {
        "clean": clean,
        "no spaces": {name: "".join(text.split()) for name, text in clean.items()},
        "mistyped": {name: mistype(text, 0.1, chance) for name, text in clean.items()},
    }
    path = options.library or Path(tempfile.mkdtemp()) / "korquad.db"
    found = {}
    repair = library_module.restore_spaces
    queries, documents = load_for_search(None, compute="float32")
    with Library.open(path, documents, query_encoder=queries) as library:
        library.add({"id": id, "text": text} for id, text in task.corpus.items())
        for kind, questions in kinds.items():
            library_module.restore_spaces = lambda text, _: text
            before = score(library, questions, task.qrels)
            library_module.restore_spaces = repair
            after = score(library, questions, task.qrels)
            p = paired_bootstrap(after, before, resample_mean).p if (after != before).any() else 1.0
            found[kind] = {"before": round(float(before.mean()), 4), "after": round(float(after.mean()), 4), "p": p}
            print(kind, found[kind], flush=True)
    if options.json:
        options.json.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
