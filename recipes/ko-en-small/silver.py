"""Pairs of English sentences with scores → the same pairs in Korean, by the row-aligned training parts of STSb and KorSTS.

A sentence encoder that is strong in English scores neighbours among the English training sentences (`munjang augment --cosine`); the
score of two sentences is that of their translations. So Korean learns from many more pairs than people have scored.

    python recipes/ko-en-small/silver.py runs/lessons.csv ../shared/data -o runs/ko-en-small/data
"""

from __future__ import annotations

import argparse
import csv
from collections.abc import Iterator
from pathlib import Path

from prepare import Row, reported_texts, write

from munjang.data import read_scored_pairs


def main() -> None:
    """Write silver-ko.tsv, and silver-crossed.tsv with an English and a Korean side."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("scored", type=Path, help="English pairs with scores 0 to 1, as munjang augment writes them")
    parser.add_argument("data", type=Path, help="the folder of data sets")
    parser.add_argument("-o", "--output", type=Path, required=True)
    chosen = parser.parse_args()
    korean, forbidden = translations(chosen.data), reported_texts(chosen.data)
    for name, crossed in (("silver-ko.tsv", False), ("silver-crossed.tsv", True)):
        rows = translated(chosen.scored, korean, crossed=crossed)
        print(f"{name}: {write(chosen.output / name, ('sentence1', 'sentence2', 'score'), rows, forbidden=forbidden):,} rows")


def translations(data: Path) -> dict[str, str]:
    """Return the Korean of every English training sentence."""
    english = read_scored_pairs(data / "stsb-en/stsb-en-train.csv.gz").rows
    korean = read_scored_pairs(data / "korsts/sts-train.tsv.gz").rows
    return {text: other for en, ko in zip(english, korean, strict=True) for text, other in ((en.a, ko.a), (en.b, ko.b))}


def translated(scored: Path, korean: dict[str, str], *, crossed: bool) -> Iterator[Row]:
    """Yield the pairs with one side in Korean, or both; pairs whose translations are equal say nothing new and are left out."""
    with scored.open(encoding="utf-8", newline="") as stream:
        for at, row in enumerate(csv.DictReader(stream)):
            a, b = row["sentence1"], row["sentence2"]
            if a in korean and b in korean and korean[a] != korean[b]:
                sides = (korean[a], korean[b]) if not crossed else (a, korean[b]) if at % 2 else (korean[a], b)
                yield *sides, row["score"]


if __name__ == "__main__":
    main()
