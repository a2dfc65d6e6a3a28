"""Documentation pages that no training has seen → retrieval sets: Korean → English, and to compare Korean → Korean and English → English.

    python recipes/ko-en-small/question_set.py ../shared/data -o runs/ko-en-sections
    munjang evaluate retrieval runs/ko-en-sections/test/ko-en runs/ko-en-sections/test/ko-ko

A question is the heading of a section, the passage that answers it the section itself, among those of the pages held out: half of them to
choose on (dev), half to measure with (test). The folders are in BEIR's layout; the difference of ko-en and ko-ko is what the change of
language costs.
"""

from __future__ import annotations

import argparse
import hashlib
import json
from pathlib import Path

from documentation import sections

from munjang.atomic import atomic_write, make_folder


def main() -> None:
    """Write both folders and say how many questions they have."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("data", type=Path, help="the folder of data sets")
    parser.add_argument("-o", "--output", type=Path, required=True)
    chosen = parser.parse_args()
    for part in ("dev", "test"):
        found = [section for section in sections(chosen.data, held_out=True) if part_of(section.page) == part]
        for question, answer in (("ko", "en"), ("ko", "ko"), ("en", "en")):
            questions = [getattr(section.heading, question) for section in found]
            write_beir(chosen.output / part / f"{question}-{answer}", questions, [getattr(section, answer) for section in found])
        print(f"{part}: {len(found):,} questions on as many sections of {len({section.page for section in found}):,} pages")


def part_of(page: str) -> str:
    """Return whether a page is to choose on or to measure with."""
    return ("dev", "test")[hashlib.sha256(page.encode()).digest()[4] % 2]


def write_beir(folder: Path, questions: list[str], texts: list[str]) -> None:
    """Write one set: each question's section is the only one that counts."""
    make_folder(folder / "qrels")
    corpus = [{"_id": f"d{at}", "title": "", "text": text} for at, text in enumerate(texts)]
    queries = [{"_id": f"q{at}", "text": question} for at, question in enumerate(questions)]
    for name, rows in (("corpus.jsonl", corpus), ("queries.jsonl", queries)):
        atomic_write(folder / name, "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))
    judged = "".join(f"q{at}\td{at}\t1\n" for at in range(len(texts)))
    atomic_write(folder / "qrels/test.tsv", "query-id\tcorpus-id\tscore\n" + judged)


if __name__ == "__main__":
    main()
