"""Questions with their passages → the same with a hard negative each, and the vectors of a teacher of search for all of them.

    python recipes/ko-en-small/search_teacher.py ../shared/data runs/ko-en-small/data --teacher runs/e5-small-pruned \
        -o runs/ko-en-small/search

The teacher, multilingual-e5-small, knows search from far more questions than are here; the student learns its scores (score_distillation).
It writes one .tsv per source (question, passage, negative; the negative is one of the passages of that source that the teacher ranks
highest for the question) and vectors.parquet (text, vector), with the teacher's prompts for questions and for passages. Of documentation in
two languages, the Korean heading and section get the vectors of the English ones: the student learns to search across languages as the
teacher does within English.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow
from documentation import sections
from prepare import leak_key, reported_texts
from pyarrow import parquet

from munjang import SentenceEncoder
from munjang.atomic import make_folder
from munjang.data.files import write_rows
from munjang.text.readers import read_rows
from munjang.types import Vectors
from munjang.vectors.similarity import normalize
from munjang.vectors.topk import top_k

SEED = 1
LONGEST = 260
"""Characters of a passage: about 140 tokens. Training on longer ones costs more than it gives."""

RANKS = 10
"""A negative is drawn from this many of the best others."""

SOURCES = {"passages.tsv": 2_000, "asked.tsv": 5_000, "headings.tsv": 4_000, "cloze.tsv": 2_500}
"""Files of prepare.py, and how many rows of each are drawn."""

Row = tuple[str, str]
Twin = tuple[str, str]
"""A text, and the text whose vector stands for it."""


def main() -> None:
    """Write the mined rows and the vectors."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("data", type=Path, help="the folder of data sets")
    parser.add_argument("made", type=Path, help="the folder that prepare.py wrote")
    parser.add_argument("--teacher", type=Path, required=True)
    parser.add_argument("-o", "--output", type=Path, required=True)
    chosen = parser.parse_args()
    make_folder(chosen.output)
    teacher = SentenceEncoder.load(chosen.teacher, compute="int8")
    vectors: dict[str, Vectors] = {}
    for name, count in SOURCES.items():
        rows = draw(chosen.made / name, count)
        mine(chosen.output / name, [((question, question), (passage, passage)) for question, passage in rows], teacher, vectors)
    mine(chosen.output / "crossed.tsv", list(crossed(chosen.data)), teacher, vectors)
    texts = pyarrow.array(list(vectors), pyarrow.string())
    flat = pyarrow.array(np.concatenate(list(vectors.values())), pyarrow.float32())
    dimension = len(next(iter(vectors.values())))
    table = pyarrow.table({"text": texts, "vector": pyarrow.FixedSizeListArray.from_arrays(flat, dimension)})
    parquet.write_table(table, chosen.output / "vectors.parquet")


def draw(path: Path, count: int) -> list[Row]:
    """Return some rows of a file, passages cut."""
    rows = [tuple(str(value).strip() for value in row.values.values()) for row in read_rows(path)]
    rows = random.Random(SEED).sample(rows, min(count, len(rows)))
    return [(question, passage[:LONGEST].strip()) for question, passage in rows]


def crossed(data: Path) -> Iterator[tuple[Twin, Twin]]:
    """Yield headings with their section: Korean to English, English to Korean, Korean to Korean; vectors are the English ones'."""
    reported = reported_texts(data)
    for section in sections(data, held_out=False):
        heading, texts = section.heading, (section.en, section.ko)
        if any(leak_key(text) in reported for text in (heading.en, heading.ko, *texts)):
            continue
        en, ko = (" ".join(text.split())[:LONGEST].strip() for text in texts)
        yield (heading.ko, heading.en), (en, en)
        yield (heading.en, heading.en), (ko, en)
        yield (heading.ko, heading.en), (ko, en)


def mine(path: Path, rows: Sequence[tuple[Twin, Twin]], teacher: SentenceEncoder, vectors: dict[str, Vectors]) -> None:
    """Write each row with a negative, and add the vectors of its texts."""
    questions_ND = normalize(teacher.encode([question[1] for question, _ in rows], prompt_name="query"))
    passages_ND = normalize(teacher.encode([passage[1] for _, passage in rows], prompt_name="passage"))
    hits_NK = top_k(questions_ND, passages_ND, k=min(len(rows), 3 * RANKS))[1]
    made = []
    for at, (question, passage) in enumerate(rows):
        others = [hit for hit in hits_NK[at].tolist() if rows[hit][1][1] != passage[1]][:RANKS]
        if others:
            made.append((question[0], passage[0], rows[random.Random(f"{SEED} {at}").choice(others)][1][0]))
        vectors.setdefault(question[0], questions_ND[at])
        vectors.setdefault(passage[0], passages_ND[at])
    random.Random(SEED).shuffle(made)
    print(f"{path.name}: {write_rows(path, ('question', 'passage', 'negative'), made):,} rows", flush=True)


if __name__ == "__main__":
    main()
