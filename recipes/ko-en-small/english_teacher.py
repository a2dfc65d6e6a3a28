"""Several English encoders → one teacher: their vectors of English texts, joined, brought to the student's size and turned into its space.

    python recipes/ko-en-small/english_teacher.py runs/gte-stsb=1 runs/mpnet-stsb=0.7 --student ko-en-small \
        --texts runs/ko-en-small/data/parallel.tsv … -o runs/ko-en-small/english.parquet

Each encoder's vectors have length one times its weight; side by side they are one long vector, of which the principal directions remain,
as many as the student has dimensions. Then t → s t R + ν: R is the orthogonal matrix that brings them nearest to the
student's own vectors (Procrustes: of TᵀS = U Σ Vᵀ, R = U Vᵀ), s makes both spread alike, and ν is the student's mean. So the teacher's
vectors and those that the student had can be learnt side by side: unrelated texts have the same cosine in both. With `--sts` it prints the
Spearman of each encoder and of all together on scored pairs.

Shapes: N texts, M of them to find the map with, D the encoders' dimensions, K the student's.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow
from pyarrow import parquet

from munjang import SentenceEncoder
from munjang.data import read_scored_pairs
from munjang.evaluate.sts import score_sts
from munjang.text.readers import read_rows
from munjang.train.distill.teacher_targets import encode_with_teacher
from munjang.types import Vectors
from munjang.vectors.similarity import normalize

SEED = 1
SAMPLE = 8_000
"""Texts that the map is found with."""


@dataclass(frozen=True)
class Part:
    """One encoder's vectors of all texts, and its weight."""

    name: str
    weight: float
    rows_ND: Vectors


def main() -> None:
    """Write the teacher's vectors and say how near they are to the student's."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("encoders", nargs="+", help="folder=weight")
    parser.add_argument("--student", required=True)
    parser.add_argument("--texts", type=Path, nargs="+", required=True, help="files with a column en or text")
    parser.add_argument("--sts", type=Path, help="scored pairs to measure with")
    parser.add_argument("--cache", type=Path, default=Path("runs/ko-en-small/cache"))
    parser.add_argument("-o", "--output", type=Path, required=True)
    chosen = parser.parse_args()
    texts = list(dict.fromkeys(text for path in chosen.texts for text in read_texts(path)))
    scored = read_scored_pairs(chosen.sts).rows if chosen.sts else []
    asked = [*texts, *(text for pair in scored for text in (pair.a, pair.b))]
    parts = [encode(name, float(weight), asked, chosen.cache) for name, weight in (each.rsplit("=", 1) for each in chosen.encoders)]
    some = sorted(random.Random(SEED).sample(range(len(texts)), min(SAMPLE, len(texts))))
    own_MK = normalize(SentenceEncoder.load(chosen.student, compute="int8").encode([texts[at] for at in some]))
    made_NK = turn(join(parts, some, own_MK.shape[1]), some, own_MK)
    print(f"cosine of teacher and student {mean_cosine(made_NK[some], own_MK):.3f}")
    for name, rows in (("teacher", made_NK[some]), ("student", own_MK)):
        print(f"  of unrelated texts, {name}: {mean_cosine(rows, np.roll(rows, 1, axis=0)):.3f}")
    for name, rows in [*((part.name, part.rows_ND) for part in parts), ("together", made_NK)]:
        pairs = rows[len(texts) :]
        if scored:
            score = score_sts(pairs[::2], pairs[1::2], [pair.score for pair in scored], resamples=0, worst=0).scores["spearman_cosine"]
            print(f"  {chosen.sts.name}, {name}: {100 * score:.2f}")
    flat = pyarrow.array(made_NK[: len(texts)].reshape(-1), pyarrow.float32())
    vectors = pyarrow.FixedSizeListArray.from_arrays(flat, made_NK.shape[1])
    parquet.write_table(pyarrow.table({"text": pyarrow.array(texts, pyarrow.string()), "vector": vectors}), chosen.output)


def read_texts(path: Path) -> list[str]:
    """Return the English texts of a file."""
    return [str(row.values["en"] if "en" in row.values else row.values["text"]).strip() for row in read_rows(path)]


def encode(name: str, weight: float, texts: Sequence[str], cache: Path) -> Part:
    """Return an encoder's vectors of texts; what was computed before is read."""
    blocks = encode_with_teacher(SentenceEncoder.load(name, compute="int8"), texts, cache, show=lambda line: print(line, flush=True))
    return Part(name, weight, normalize(blocks.rows(np.arange(len(texts)))))


def join(parts: Sequence[Part], some: Sequence[int], dimension: int) -> Vectors:
    """Return the principal directions of all vectors side by side; not centred, which costs gte-small 0.8 points on STSb dev."""
    joined_ND = np.concatenate([part.weight * part.rows_ND for part in parts], axis=1)
    _, _, directions_DD = np.linalg.svd(joined_ND[some].astype(np.float64), full_matrices=False)
    return normalize(np.asarray(joined_ND @ directions_DD[:dimension].T, np.float32))


def turn(rows_NK: Vectors, some: Sequence[int], own_MK: Vectors) -> Vectors:
    """Return the vectors in the student's space, turned, scaled and moved, not bent."""
    middle_K, own_middle_K = rows_NK[some].mean(axis=0), own_MK.mean(axis=0)
    centred_MK, own_centred_MK = (rows_NK[some] - middle_K).astype(np.float64), own_MK - own_middle_K
    left_KK, _, right_KK = np.linalg.svd(centred_MK.T @ own_centred_MK)
    scale = np.sqrt(np.square(own_centred_MK).sum() / np.square(centred_MK).sum())
    return normalize(np.asarray(scale * (rows_NK - middle_K) @ left_KK @ right_KK + own_middle_K, np.float32))


def mean_cosine(a_NK: Vectors, b_NK: Vectors) -> float:
    """Return the mean cosine of rows, which have length one."""
    return float((a_NK * b_NK).sum(axis=1).mean())


if __name__ == "__main__":
    main()
