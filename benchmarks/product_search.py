"""Product titles with and without a dictionary: recall@5 of 200 questions over 200 titles that we wrote.

    python benchmarks/product_search.py [--by words] [--json FILE]

The titles, questions and the dictionary lie in benchmarks/products, with how they were made. The library is the same; only its dictionary
differs. `p` is from paired resampling of the questions.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from munjang import SentenceEncoder
from munjang.evaluate.bootstrap import paired_bootstrap, resample_mean
from munjang.library.library import Library
from munjang.text.dictionary import read_dictionary

PRODUCTS = Path(os.environ.get("MUNJANG_PRODUCTS", Path(__file__).parent / "products"))
"""Another draw of `products/make.py` may lie elsewhere."""


def find_answers(library: Library, questions: list[dict[str, str]], by: Any) -> np.ndarray:
    """Return for each question whether its title is among the first five."""
    answers = library.search_many([question["text"] for question in questions], 5, by=by)
    return np.array([float(question["id"] in {hit.id for hit in hits}) for question, hits in zip(questions, answers, strict=True)])


def read_table(name: str) -> list[dict[str, str]]:
    """Return the rows of one of the files."""
    head, *lines = (PRODUCTS / f"{name}.tsv").read_text(encoding="utf-8").splitlines()
    return [dict(zip(head.split("\t"), line.split("\t"), strict=True)) for line in lines]


def measure(encoder: Any, titles: list[dict[str, str]], questions: list[dict[str, str]], by: Any = None) -> dict[str, np.ndarray]:
    """Return which questions are answered without and with the dictionary."""
    with tempfile.TemporaryDirectory() as folder, Library.open(Path(folder) / "products.db", encoder) as library:
        library.add(titles)
        without = find_answers(library, questions, by)
        library.use_dictionary(read_dictionary(PRODUCTS / "dictionary.tsv"))
        return {"without": without, "with": find_answers(library, questions, by)}


def main() -> None:
    """Print recall@5 of each kind of question."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--by", choices=("words", "meaning"))
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    questions = read_table("questions")
    found = measure(SentenceEncoder.load(), read_table("titles"), questions, options.by)
    kinds = np.array([question["kind"] for question in questions])
    rows = {}
    for kind in ("exact", "brand", "kind", "spacing", "all"):
        held = np.ones(len(kinds), dtype=bool) if kind == "all" else kinds == kind
        without, own = found["without"][held], found["with"][held]
        p = paired_bootstrap(own, without, resample_mean).p if (own != without).any() else 1.0
        rows[kind] = {"questions": int(held.sum()), "without": float(without.mean()), "with": float(own.mean()), "p": round(p, 4)}
        print(kind, rows[kind])
    if options.json:
        options.json.write_text(json.dumps(rows, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
