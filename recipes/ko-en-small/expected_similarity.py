"""What a model's cosine means to people: measure it on labelled pairs and write the curves into the model's folder.

    python recipes/ko-en-small/expected_similarity.py ../shared/data [--model ko-en-small]

Pairs: KorSTS dev (Korean), STS benchmark dev (English), and both crossed, row by row, for English against Korean. No row of them is in a
training file of ko-en-small, and none is a test row that docs/results.md reports; KorSTS dev did choose among its weights. KorSTS train,
STSb train and KLUE-STS cannot be used: the model was trained on them, and its cosines on them flatter it. Curves are isotonic
(`munjang.evaluate.calibrate`), kept at steps of 0.02; their error is measured on held-out folds of rows.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from munjang import SentenceEncoder
from munjang.atomic import atomic_write
from munjang.data import read_scored_pairs
from munjang.evaluate.calibrate import fit_rising_curve
from munjang.models.expected_similarity import FILE, FORMAT, SCALE
from munjang.vectors.similarity import similarity_pairwise

SOURCE = (
    "KorSTS dev (ko-ko) and STS benchmark dev (en-en), 1,500 pairs each, the rows aligned; en-ko: each sentence of a row with the other "
    "language's version of its counterpart, 3,000 pairs. Scores of people from 0 to 5."
)
PAIRS = {"ko-ko": (("ka", "kb"),), "en-en": (("ea", "eb"),), "en-ko": (("ea", "kb"), ("ka", "eb"))}
STEP = 0.02
FOLDS = 5

Floats = npt.NDArray[np.float64]


def main() -> None:
    """Measure in float32 and int8, write, and print the errors."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("data", type=Path)
    parser.add_argument("--model", default="ko-en-small", help="a model's name or folder")
    chosen = parser.parse_args()
    curves: list[dict[str, Any]] = []
    for compute in ("float32", "int8"):
        model = SentenceEncoder.load(chosen.model, compute=compute)
        curves += measure(model, *read_sides(chosen.data))
    folder = model.folder.path
    lines = ",\n  ".join(json.dumps(curve) for curve in curves)
    head = json.dumps({"format": FORMAT, "model": model.name, "source": SOURCE, "scale": SCALE}, indent=1)
    atomic_write(folder / FILE, f'{head[:-2]},\n "curves": [\n  {lines}\n ]\n}}\n')
    for curve in curves:
        print(f"{curve['compute']:8} {curve['languages']} {curve['pairs']:,} pairs, mean error {curve['error']:.2f} of 5")


def read_sides(data: Path) -> tuple[dict[str, list[str]], Floats]:
    """Return the four sides (Korean and English, first and second sentence) and the scores of people."""
    korean = read_scored_pairs(data / "korsts/sts-dev.tsv.gz").rows
    english = read_scored_pairs(data / "stsb-en/stsb-en-dev.csv.gz").rows
    if [round(row.score, 3) for row in korean] != [round(row.score, 3) for row in english]:
        raise SystemExit("the rows of KorSTS dev and STSb dev do not carry the same scores, expected aligned files")
    sides = {"ka": [r.a for r in korean], "kb": [r.b for r in korean], "ea": [r.a for r in english], "eb": [r.b for r in english]}
    low, high = SCALE
    return sides, np.asarray([low + (high - low) * row.score for row in korean], dtype=np.float64)


def measure(model: SentenceEncoder, sides: dict[str, list[str]], scores_N: Floats) -> list[dict[str, Any]]:
    """Return a curve for each pair of languages, with its error on held-out rows."""
    vectors = {side: model.encode(texts) for side, texts in sides.items()}
    fold_N = np.random.default_rng(0).permutation(len(scores_N)) % FOLDS
    curves = []
    for languages, combinations in PAIRS.items():
        cosines = np.concatenate([similarity_pairwise(vectors[a], vectors[b]) for a, b in combinations]).astype(np.float64)
        scores, fold = np.tile(scores_N, len(combinations)), np.tile(fold_N, len(combinations))
        errors = [np.abs(at_steps(cosines[fold != k], scores[fold != k], cosines[fold == k]) - scores[fold == k]) for k in range(FOLDS)]
        points = on_grid(cosines, scores)
        curves.append(
            {
                "compute": model.compute,
                "fingerprint": model.fingerprint,
                "languages": languages,
                "pairs": len(cosines),
                "error": round(float(np.concatenate(errors).mean()), 3),
                "points": points,
            }
        )
    return curves


def on_grid(cosines: Floats, scores: Floats) -> list[tuple[float, float]]:
    """Return the rising curve at steps of the cosine, without points between equal neighbours."""
    curve = fit_rising_curve(cosines, scores)
    grid = np.arange(np.floor(cosines.min() / STEP), np.ceil(min(cosines.max(), 1.0) / STEP) + 1) * STEP
    values = np.interp(grid, [x for x, _ in curve], [y for _, y in curve])
    points = [(round(float(x), 2), round(float(y), 3)) for x, y in zip(grid, values, strict=True)]
    inner = [b for a, b, c in zip(points, points[1:], points[2:], strict=False) if not a[1] == b[1] == c[1]]
    return [points[0], *inner, points[-1]]


def at_steps(cosines: Floats, scores: Floats, asked: Floats) -> Floats:
    """Return what the curve of some pairs says about other cosines."""
    points = on_grid(cosines, scores)
    return np.interp(asked, [x for x, _ in points], [y for _, y in points])


if __name__ == "__main__":
    main()
