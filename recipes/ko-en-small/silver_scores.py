"""An English model's cosines of English sentences → scores of their translations: pairs in Korean, in English and across, and its vectors.

    python recipes/ko-en-small/silver_scores.py runs/ko-en-small/data --teacher runs/gte-stsb -o runs/ko-en-small/silver

The teacher was trained on human scores of English sentences. Where there are translations, what it says of two English sentences is true of
the Korean ones. silver.tsv has pairs of every degree of similarity, most of them neighbours, since random sentences have nothing in common;
translations.tsv has sentences with their translations and vectors.parquet the teacher's vector for both sides, for score_distillation: only
what the teacher ranks is learnt, so its space need not be the student's.
"""

from __future__ import annotations

import argparse
import random
from pathlib import Path

import numpy as np
import pyarrow
from pyarrow import parquet

from munjang import SentenceEncoder
from munjang.atomic import make_folder
from munjang.data.files import write_rows
from munjang.text.readers import read_rows
from munjang.types import Vectors
from munjang.vectors.similarity import normalize
from munjang.vectors.topk import top_k

SEED = 1
SOURCES = {"parallel-sts.tsv": 10_000, "parallel.tsv": 20_000, "parallel-safety.tsv": 8_000, "parallel-docs.tsv": 8_000}
"""Files of prepare.py, and how many rows of each are drawn; docs are the short ones."""

SCORED = ("parallel-sts.tsv", "parallel.tsv")
"""Pairs are made of these: sentences of captions, news and everyday life."""

LONGEST = 200
"""Characters of an English text."""

NEIGHBOURS = 64
PAIRS = 48_000

Row = tuple[str, str]


def main() -> None:
    """Write pairs, translations and vectors."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("made", type=Path, help="the folder that prepare.py wrote")
    parser.add_argument("--teacher", type=Path, required=True)
    parser.add_argument("-o", "--output", type=Path, required=True)
    chosen = parser.parse_args()
    make_folder(chosen.output)
    drawn = {name: draw(chosen.made / name, count) for name, count in SOURCES.items()}
    rows = list(dict.fromkeys(row for name in SOURCES for row in drawn[name]))
    vectors_ND = normalize(SentenceEncoder.load(chosen.teacher, compute="int8").encode([en for en, _ in rows]))
    scored = sum(len(drawn[name]) for name in SCORED)
    pairs = make_pairs(rows[:scored], vectors_ND[:scored])
    print(f"silver.tsv: {write_rows(chosen.output / 'silver.tsv', ('sentence1', 'sentence2', 'score'), pairs):,} rows")
    both = [(ko, en) if at % 2 else (en, ko) for at, (en, ko) in enumerate(rows)]
    random.Random(SEED).shuffle(both)
    print(f"translations.tsv: {write_rows(chosen.output / 'translations.tsv', ('a', 'b'), both):,} rows")
    found: dict[str, Vectors] = {}
    for (en, ko), vector in zip(rows, vectors_ND, strict=True):
        found.setdefault(en, vector)
        found.setdefault(ko, vector)
    flat = pyarrow.array(np.concatenate(list(found.values())), pyarrow.float32())
    column = pyarrow.FixedSizeListArray.from_arrays(flat, vectors_ND.shape[1])
    table = pyarrow.table({"text": pyarrow.array(list(found), pyarrow.string()), "vector": column})
    parquet.write_table(table, chosen.output / "vectors.parquet")


def draw(path: Path, count: int) -> list[Row]:
    """Return some of a file's pairs, English first, long ones left out."""
    rows = [(str(row.values["en"]).strip(), str(row.values["ko"]).strip()) for row in read_rows(path)]
    rows = [row for row in rows if len(row[0]) <= LONGEST]
    return random.Random(SEED).sample(rows, min(count, len(rows)))


def make_pairs(rows: list[Row], vectors_ND: Vectors) -> list[tuple[str, str, str]]:
    """Return pairs of which every degree of similarity is drawn as often: neighbours by rank, and one in eight by chance."""
    scores_NK, hits_NK = top_k(vectors_ND, vectors_ND, k=NEIGHBOURS + 1)
    dice = random.Random(SEED)
    found: dict[tuple[int, int], float] = {}
    degrees: dict[int, list[tuple[int, int]]] = {}
    for at in range(len(rows)):
        for score, other in zip(scores_NK[at].tolist(), hits_NK[at].tolist(), strict=True):
            pair = (min(at, other), max(at, other))
            if rows[at][0] != rows[other][0] and pair not in found:
                found[pair] = score
                degrees.setdefault(int(score * 40), []).append(pair)
    kept = []
    for pairs in degrees.values():
        dice.shuffle(pairs)
        kept += pairs[: PAIRS // 16]
    dice.shuffle(kept)
    kept = kept[: PAIRS * 7 // 8]
    while len(kept) < PAIRS:
        a, b = dice.randrange(len(rows)), dice.randrange(len(rows))
        if rows[a][0] != rows[b][0]:
            kept.append((a, b))
            found[a, b] = float(vectors_ND[a] @ vectors_ND[b])
    dice.shuffle(kept)
    made = []
    for at, (a, b) in enumerate(kept):
        # three in six Korean, two across, one English
        sides = ((1, 1), (0, 1), (1, 1), (1, 0), (1, 1), (0, 0))[at % 6]
        made.append((rows[a][sides[0]], rows[b][sides[1]], f"{5 * max(0.0, found[a, b]):.4f}"))
    return made


if __name__ == "__main__":
    main()
