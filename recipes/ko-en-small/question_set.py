"""Documentation pages that no training has seen → two retrieval sets with the same questions: Korean → English, and Korean → Korean.

    python recipes/ko-en-small/question_set.py ../shared/data -o runs/ko-en-sections
    munjang evaluate retrieval runs/ko-en-sections/ko-en runs/ko-en-sections/ko-ko

A question is the Korean heading of a section, the passage that answers it the section itself, among those of all pages held out. Both
folders are in BEIR's layout; the difference of their scores is what the change of language costs.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from documentation import Section, sections

from munjang.atomic import atomic_write, make_folder


def main() -> None:
    """Write both folders and say how many questions they have."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("data", type=Path, help="the folder of data sets")
    parser.add_argument("-o", "--output", type=Path, required=True)
    chosen = parser.parse_args()
    found = list(sections(chosen.data, held_out=True))
    pages = len({section.page for section in found})
    write_beir(chosen.output / "ko-en", found, [section.en for section in found])
    write_beir(chosen.output / "ko-ko", found, [section.ko for section in found])
    print(f"{len(found):,} questions on as many sections of {pages:,} pages")


def write_beir(folder: Path, found: list[Section], texts: list[str]) -> None:
    """Write one set: each question's section is the only one that counts."""
    make_folder(folder / "qrels")
    corpus = [{"_id": f"d{at}", "title": "", "text": text} for at, text in enumerate(texts)]
    queries = [{"_id": f"q{at}", "text": section.heading.ko} for at, section in enumerate(found)]
    for name, rows in (("corpus.jsonl", corpus), ("queries.jsonl", queries)):
        atomic_write(folder / name, "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))
    judged = "".join(f"q{at}\td{at}\t1\n" for at in range(len(found)))
    atomic_write(folder / "qrels/test.tsv", "query-id\tcorpus-id\tscore\n" + judged)


if __name__ == "__main__":
    main()
