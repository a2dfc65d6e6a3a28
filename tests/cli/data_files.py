"""Small data files for the tests of evaluation commands, written by us."""

from __future__ import annotations

import json
from pathlib import Path

NOUNS = ("cat", "dog", "train", "book", "river", "coffee", "snow", "sun", "winter", "rain")
PAIRS = [
    (f"the {noun} is in the {other}", f"the {noun} was on the {far}") for noun, other, far in zip(NOUNS, NOUNS[3:], NOUNS[5:], strict=False)
]
PAIRS += [(f"the {noun} is in winter", f"the {noun} is in winter") for noun in NOUNS[:5]]


def write_sts(path: Path, *, scale: float = 1.0) -> Path:
    """Ten scored pairs of two genres."""
    scores = [scale * number / (len(PAIRS) - 1) for number in range(len(PAIRS))]
    lines = [f"{a}\t{b}\t{score:.3f}\t{('news', 'forum')[n % 2]}" for n, ((a, b), score) in enumerate(zip(PAIRS, scores, strict=True))]
    return _write(path, "sentence1\tsentence2\tscore\tgenre", lines)


def write_korsts(path: Path, quoted: str = 'he said "rain') -> Path:
    """Pairs in the layout of KorSTS, in which a quotation mark is a character like any other."""
    rows = [*PAIRS, (quoted, "the rain is in the river")]
    lines = [f"main\tfile\t2012\t{n:04}\t{5 * n / len(PAIRS):.1f}\t{a}\t{b}" for n, (a, b) in enumerate(rows)]
    return _write(path, "genre\tfilename\tyear\tid\tscore\tsentence1\tsentence2", lines)


def write_pairs(path: Path, *, same: str = "1", different: str = "0") -> Path:
    """Identical pairs labelled the same, others different."""
    rows = [(f"the {noun} is in the river", f"the {noun} is in the river", same) for noun in NOUNS]
    rows += [(f"the {noun} sleep", f"snow and {other} ed", different) for noun, other in zip(NOUNS, reversed(NOUNS), strict=True)]
    return _write(path, "sentence1\tsentence2\tlabel", ["\t".join(row) for row in rows])


def write_beir(folder: Path) -> Path:
    """A corpus of ten documents; each query is a document's own text."""
    documents = {f"d{number}": f"the {noun} is in winter" for number, noun in enumerate(NOUNS)}
    _write(folder / "corpus.jsonl", None, [json.dumps({"_id": key, "title": "", "text": text}) for key, text in documents.items()])
    asked = {f"q{number}": documents[f"d{number}"] for number in range(4)}
    _write(folder / "queries.jsonl", None, [json.dumps({"_id": key, "text": text}) for key, text in asked.items()])
    _write(folder / "qrels" / "test.tsv", "query-id\tcorpus-id\tscore", [f"q{number}\td{number}\t1" for number in range(4)])
    return folder


def _write(path: Path, header: str | None, lines: list[str]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(([header] if header else []) + lines) + "\n", encoding="utf-8")
    return path
