"""Questions, and words that somebody might type, each with the passage that answers and passages that only look like it.

    python recipes/ko-en-rerank-small/relevance.py runs/ko-en-small/data -o runs/ko-en-rerank-small/relevance.tsv

In: passages.tsv (questions of TyDi QA) and bills.tsv (texts of Korean bills), both without any reported text. For a question its passage is
right and the passages that BM25 puts first are wrong. Every passage and some bills also get a query of three to six nouns of one of their
sentences, in any order. Out: triplets anchor, positive, negative; seeded.
"""

from __future__ import annotations

import argparse
import csv
import random
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from munjang.text.korean import morphemes
from munjang.text.readers import read_rows
from munjang.train.augment import Bm25

SEED = 1
NEGATIVES = 3
"""Wrong passages for a question; a query of nouns gets one."""
BILLS = 800
SENTENCE_END = re.compile(r"(?<=[.?!])\s+")

Row = tuple[str, str, str]


def main() -> None:
    """Write the triplets and say how many there are."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("data", type=Path, help="the folder that prepare.py of ko-en-small wrote")
    parser.add_argument("-o", "--output", type=Path, required=True)
    chosen = parser.parse_args()
    questions = read_pairs(chosen.data / "passages.tsv")
    bills = read_pairs(chosen.data / "bills.tsv")[:BILLS]
    passages = list(dict.fromkeys(passage for _, passage in [*questions, *bills]))
    rows = [*asked(questions, passages), *typed(passages)]
    random.Random(SEED).shuffle(rows)
    chosen.output.parent.mkdir(parents=True, exist_ok=True)
    with chosen.output.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream, delimiter="\t", lineterminator="\n")
        writer.writerows([("anchor", "positive", "negative"), *rows])
    print(f"{chosen.output}: {len(rows):,} rows")


def read_pairs(path: Path) -> list[tuple[str, str]]:
    """Return the two columns of a file."""
    rows = (tuple(map(str, row.values.values())) for row in read_rows(path))
    return [(first, second) for first, second in rows]


def asked(questions: Sequence[tuple[str, str]], passages: Sequence[str]) -> Iterator[Row]:
    """Yield each question with its passage and those that share its words but are not it."""
    words = Bm25(passages)
    right: dict[str, set[str]] = {}
    for question, passage in questions:
        right.setdefault(question, set()).add(passage)
    for question, passage in questions:
        order = (-words.scores(question)).argsort(kind="stable")[: NEGATIVES + len(right[question])]
        wrong = [passages[at] for at in order if passages[at] not in right[question]]
        yield from ((question, passage, other) for other in wrong[:NEGATIVES])


def typed(passages: Sequence[str]) -> Iterator[Row]:
    """Yield queries of a few nouns of one sentence, with the passage that holds it."""
    words = Bm25(passages)
    for passage in passages:
        chance = random.Random(passage)
        sentences = [part for part in SENTENCE_END.split(passage) if len(part) > 15]
        nouns = list(dict.fromkeys(word for word in morphemes(chance.choice(sentences)) if len(word) > 1)) if sentences else []
        if len(nouns) < 3:
            continue
        query = " ".join(chance.sample(nouns, min(len(nouns), chance.randint(3, 6))))
        best = (-words.scores(query)).argsort(kind="stable")[:4]
        others = [passages[at] for at in best if passages[at] != passage]
        yield query, passage, chance.choice(others)


if __name__ == "__main__":
    main()
