"""Large collections to measure with: real texts and vectors, repeated with noise until there are enough.

    python benchmarks/scale_data.py FOLDER

encodes 60,000 Korean texts (headlines, sections of documentation, film reviews) once into FOLDER/real.npy and FOLDER/real.jsonl. The
functions below make millions of them: every new vector is a real one moved by noise in the space that real vectors take up, and its text
is a real text of the same kind. The same seed gives the same rows, in whatever blocks they are asked for.
"""

from __future__ import annotations

import csv
import gzip
import json
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
SOURCES = (
    ("klue-ynat-headlines/train.tsv.gz", "title", 30_000),
    ("ms-docs-ko/sections.tsv.gz", "text", 20_000),
    ("nsmc-raw/reviews.tsv.gz", "review", 10_000),
)
NOISE = 0.35
"""Length of the noise beside a vector of length one: neighbours of a row are other copies of its text, and other texts."""
BLOCK = 16_384


def real_texts() -> list[str]:
    """Return the texts that everything is made of."""
    texts: dict[str, None] = {}
    for name, column, count in SOURCES:
        with gzip.open(DATA / name, "rt", encoding="utf-8", newline="") as lines:
            rows = (row[column] for row in csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE))
            found = dict.fromkeys(" ".join(text.split())[:300] for text in rows if text and text.strip())
        texts |= dict.fromkeys(list(found)[:count])
    return list(texts)


def make_real(folder: Path) -> None:
    """Encode the real texts, unless that was done."""
    if (folder / "real.npy").is_file():
        return
    from munjang import SentenceEncoder

    folder.mkdir(parents=True, exist_ok=True)
    texts = real_texts()
    vectors = SentenceEncoder.load(compute="int8").encode(texts, progress=True)
    (folder / "real.jsonl").write_text("".join(json.dumps(text, ensure_ascii=False) + "\n" for text in texts), encoding="utf-8")
    np.save(folder / "real.npy", vectors / np.linalg.norm(vectors, axis=1, keepdims=True))


class Tiled:
    """Rows made of real ones."""

    def __init__(self, folder: Path, *, noise: float = NOISE, seed: int = 0) -> None:
        self.real_ND = np.load(folder / "real.npy")
        self.texts = [json.loads(line) for line in (folder / "real.jsonl").read_text(encoding="utf-8").splitlines()]
        centred_ND = self.real_ND - self.real_ND.mean(axis=0)
        values, axes_DD = np.linalg.eigh(centred_ND.T @ centred_ND / len(centred_ND))
        shape_D = np.sqrt(np.maximum(values, 0))
        self._shape_DD = (axes_DD * (shape_D / np.linalg.norm(shape_D))).T.astype(np.float32)  # noise of length one, as real vectors differ
        self.folder, self._noise, self._seed = folder, noise, seed

    def block(self, number: int, rows: int = BLOCK) -> tuple[np.ndarray, np.ndarray]:
        """Return which real row each row of a block is made of, and unit vectors."""
        random = np.random.default_rng((self._seed, number))
        source_N = random.integers(0, len(self.real_ND), rows)
        moved_ND = self._draw(random, rows)
        moved_ND *= np.float32(self._noise)
        moved_ND += self.real_ND[source_N]
        moved_ND /= np.linalg.norm(moved_ND, axis=1, keepdims=True)
        return source_N, moved_ND

    def noise(self, number: int, rows: int) -> np.ndarray:
        """Return noise of about length one."""
        return self._draw(np.random.default_rng((self._seed, number)), rows)

    def _draw(self, random: np.random.Generator, rows: int) -> np.ndarray:
        return random.standard_normal((rows, self.real_ND.shape[1]), dtype=np.float32) @ self._shape_DD

    def blocks(self, rows: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield so many rows in blocks."""
        for number, start in enumerate(range(0, rows, BLOCK)):
            source_N, vectors_ND = self.block(number)
            yield source_N[: rows - start], vectors_ND[: rows - start]


if __name__ == "__main__":
    make_real(Path(sys.argv[1]))
