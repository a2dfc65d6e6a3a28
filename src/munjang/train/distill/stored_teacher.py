"""A file of texts with their vectors, as `munjang encode --keep-text` writes it → a teacher that looks vectors up.

For a teacher that Munjang cannot load or that has no folder: vectors of several models side by side, or of another program. In: .jsonl or
.parquet with the columns "text" and "vector". It knows no other texts; the trainer asks for those that it learns from.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from munjang.errors import InputError, UsageError, quote
from munjang.text.readers import read_rows
from munjang.train.durable import hash_file
from munjang.train.examples import TeacherRecipe
from munjang.types import Vectors


@dataclass(frozen=True)
class StoredTeacher:
    """Vectors that were computed before."""

    name: str
    fingerprint: str
    places: dict[str, int]
    rows_ND: Vectors

    @property
    def dimension(self) -> int:
        """The number of dimensions of a vector."""
        return int(self.rows_ND.shape[1])

    def encode(self, texts: Iterable[str], /) -> Vectors:
        """Return the vectors of texts; a text that the file does not hold is refused."""
        wanted = list(texts)
        missing = next((text for text in wanted if text not in self.places), None)
        if missing is not None:
            raise InputError(f"{self.name}: has no vector of {quote(missing)}\n  encode every text of the training's first columns")
        return self.rows_ND[[self.places[text] for text in wanted]]


def read_stored_teacher(recipe: TeacherRecipe) -> StoredTeacher:
    """Return the teacher in a file; a prompt is refused, since nothing is encoded."""
    path = Path(recipe.model)
    if recipe.prompt is not None:
        raise UsageError(f"{path.name}: holds vectors, and a prompt would change nothing\n  leave it out")
    if not path.is_file():
        raise InputError(f"{recipe.model}: no such file")
    places: dict[str, int] = {}
    rows: list[Vectors] = []
    for row in read_rows(path):
        text, vector = row.values.get("text"), row.values.get("vector")
        if not isinstance(text, str) or not isinstance(vector, list):
            raise InputError(f"{row.where}: expected a text and its vector, columns are {', '.join(row.values)}")
        if places.setdefault(text, len(rows)) == len(rows):
            rows.append(_read_vector(vector, rows[0].size if rows else len(vector), row.where))
    if not rows:
        raise InputError(f"{recipe.model}: no rows, expected texts and their vectors")
    return StoredTeacher(path.name, hash_file(path), places, np.stack(rows))


def _read_vector(values: list[object], dimension: int, where: str) -> Vectors:
    try:
        made = np.asarray(values, np.float32)
    except (TypeError, ValueError):
        made = np.zeros((0, 0), np.float32)
    if made.shape != (dimension,) or not dimension:
        raise InputError(f"{where}: the vector has {len(values)} entries, expected {dimension or 'some'} numbers")
    return made
