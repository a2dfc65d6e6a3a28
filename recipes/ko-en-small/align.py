"""A teacher of another space → the same teacher in the student's space: what it knows hardly changes, and less is to be learnt.

    python recipes/ko-en-small/align.py runs/gte-stsb --student ko-en-small --texts runs/ko-en-small/data/texts-en.tsv -o runs/gte-aligned

Adds a linear layer to the teacher: t → s (t − μ) R + ν. R is the orthogonal matrix that brings its centred vectors of some texts nearest to
the student's (Procrustes: of TᵀS = U Σ Vᵀ, R = U Vᵀ), s makes both spread alike, and μ and ν are the means of both. So two sets of vectors,
the teacher's and those that the student had, can be learnt side by side: unrelated texts have the same cosine in both. Of a wider one, R
leaves out the directions that matter least to the student.

Shapes: N texts, D the teacher's dimensions, K the student's.
"""

from __future__ import annotations

import argparse
import random
import shutil
from pathlib import Path

import numpy as np
from safetensors.numpy import save_file

from munjang import SentenceEncoder
from munjang.engine.folder import read_folder
from munjang.engine.modules import DenseModule, NormalizeModule, TransformerModule
from munjang.engine.write_folder import write_modules
from munjang.text.readers import read_rows
from munjang.types import Vectors
from munjang.vectors.similarity import normalize

SEED = 1
LEFT_OUT = ("training", "report.html", "manifest.json", "modules.json", "config_sentence_transformers.json", "*_Pooling", "*_Normalize")


def main() -> None:
    """Write the turned teacher and say how near it is."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("teacher", type=Path)
    parser.add_argument("--student", required=True)
    parser.add_argument("--texts", type=Path, required=True, help="texts in the teacher's language, column text")
    parser.add_argument("--count", type=int, default=6_000)
    parser.add_argument("-o", "--output", type=Path, required=True)
    chosen = parser.parse_args()
    texts = sorted({str(row.values["text"]) for row in read_rows(chosen.texts)})
    texts = random.Random(SEED).sample(texts, min(chosen.count, len(texts)))
    teacher, student = SentenceEncoder.load(chosen.teacher), SentenceEncoder.load(chosen.student)
    taught_ND, own_NK = (normalize(model.encode(texts)) for model in (teacher, student))
    half = len(texts) // 2
    weight_DK, bias_K = find_map(taught_ND[:half], own_NK[:half])
    other_NK = normalize(taught_ND[half:] @ weight_DK + bias_K)
    print(f"{len(texts) - half:,} other texts: cosine of teacher and student {mean_cosine(other_NK, own_NK[half:]):.3f}")
    for name, vectors in (("teacher", taught_ND[half:]), ("teacher, aligned", other_NK), ("student", own_NK[half:])):
        print(f"  of unrelated texts, {name}: {mean_cosine(vectors, np.roll(vectors, 1, axis=0)):.3f}")
    write(chosen.teacher, *find_map(taught_ND, own_NK), chosen.output)


def find_map(taught_ND: Vectors, own_NK: Vectors) -> tuple[Vectors, Vectors]:
    """Return matrix and offset that bring the teacher's vectors nearest to the student's without bending them."""
    middle_D, own_middle_K = taught_ND.mean(axis=0), own_NK.mean(axis=0)
    centred_ND, own_centred_NK = (taught_ND - middle_D).astype(np.float64), own_NK - own_middle_K
    left_DK, _, right_KK = np.linalg.svd(centred_ND.T @ own_centred_NK, full_matrices=False)
    turn_DK = left_DK @ right_KK
    scale = np.sqrt(np.square(own_centred_NK).sum() / np.square(centred_ND @ turn_DK).sum())
    weight_DK = np.asarray(scale * turn_DK, np.float32)
    return weight_DK, own_middle_K - middle_D @ weight_DK


def mean_cosine(a_NK: Vectors, b_NK: Vectors) -> float:
    """Return the mean cosine of rows, which have length one."""
    return float((a_NK * b_NK).sum(axis=1).mean())


def write(teacher: Path, weight_DK: Vectors, bias_K: Vectors, target: Path) -> None:
    """Write the teacher with the map behind its own normalising."""
    shutil.copytree(teacher, target, ignore=shutil.ignore_patterns(*LEFT_OUT))
    kept = read_folder(teacher).modules
    base = kept[0]
    if not isinstance(base, TransformerModule) or not isinstance(kept[-1], NormalizeModule):
        raise SystemExit(f"{teacher}: expected a transformer whose vectors have length one")
    folder = target / f"{len(kept)}_Dense"
    folder.mkdir()
    save_file({"linear.weight": np.ascontiguousarray(weight_DK.T), "linear.bias": bias_K}, folder / "model.safetensors")
    wide, narrow = weight_DK.shape
    dense = DenseModule(folder, wide, narrow, True, "identity")
    width = int(base.config["hidden_size"])
    write_modules(target, [*kept, dense, NormalizeModule()], width=width, max_length=base.max_length, lowercase=base.lowercase)


if __name__ == "__main__":
    main()
