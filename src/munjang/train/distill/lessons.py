"""What a student learns: for each row of the data, the teacher's vector of its source, in the space that the student's vectors live in.

In: a stage's `teacher`, the source texts of its data, and the student. Out: `Lessons`, whose `labels_of` gives for a data set what an
objective with labels of kind "vectors" compares with. Where the student normalises, the teacher's vectors are brought to length one too;
where the teacher has more dimensions, they are projected (`axes.py`). A teacher with fewer dimensions is refused.

Shapes: B rows of a batch, K the student's dimensions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from munjang.errors import InputError
from munjang.report.words import Message, Word
from munjang.train.distill.axes import kept_axes, share_kept
from munjang.train.distill.cache import VectorBlocks, teacher_vectors
from munjang.train.distill.teacher import PromptedEncoder, TeacherRecipe, load_teacher
from munjang.train.encoder import TrainableEncoder
from munjang.train.tail import Normalize
from munjang.types import Vectors
from munjang.vectors.similarity import normalize


@dataclass(frozen=True)
class Target:
    """How the teacher's vectors become the student's target: `axes_DK` projects them, `unit` brings them to length one."""

    axes_DK: Vectors | None = None
    unit: bool = False

    def of(self, vectors_ND: Vectors) -> Vectors:
        """Return the targets of the teacher's vectors."""
        made = vectors_ND if self.axes_DK is None else vectors_ND @ self.axes_DK
        return np.asarray(normalize(made), np.float32) if self.unit else made


@dataclass(frozen=True)
class TeacherLabels:
    """The targets of a data set's rows, read from disk when they are asked for."""

    blocks: VectorBlocks
    rows_N: NDArray[np.int64]
    """Each example's row in `blocks`."""
    target: Target

    def __len__(self) -> int:
        return len(self.rows_N)

    def __getitem__(self, at: Tensor) -> Tensor:
        """Return the targets of some examples, shape (B, K)."""
        return torch.from_numpy(self.target.of(self.blocks.rows(self.rows_N[at.numpy()])))


@dataclass(frozen=True)
class Lessons:
    """The teacher's vectors of every source text of a stage."""

    blocks: VectorBlocks
    places: dict[str, int]
    target: Target
    said: tuple[str, ...]

    def labels_of(self, sources: Sequence[str]) -> TeacherLabels:
        """Return the targets of rows with these source texts."""
        return TeacherLabels(self.blocks, np.fromiter((self.places[text] for text in sources), np.int64, len(sources)), self.target)


def prepare_lessons(
    recipe: TeacherRecipe, sources: Sequence[str], student: TrainableEncoder, folder: Path, *, said: Callable[[str], None] = lambda _: None
) -> Lessons:
    """Let the teacher encode the sources, each once, or find its vectors in the folder (or in the recipe's cache)."""
    unique = list(dict.fromkeys(sources))
    teacher = load_teacher(recipe)
    refuse_narrow(teacher, student.dimension)
    kept = Path(recipe.cache) if recipe.cache else folder
    blocks = teacher_vectors(teacher, unique, kept, said=said)
    remarks = [Message(Word.TEACHER_VECTORS, name=teacher.name, count=len(unique), dimension=teacher.dimension)]
    axes_DK = None
    if teacher.dimension > student.dimension:
        axes_DK = kept_axes(blocks, student.dimension, kept)
        share = share_kept(np.asarray(blocks.blocks[0]), axes_DK)
        remarks.append(Message(Word.TEACHER_PROJECTED, wide=teacher.dimension, narrow=student.dimension, share=100 * share))
    target = Target(axes_DK, is_unit(student))
    return Lessons(blocks, {text: place for place, text in enumerate(unique)}, target, tuple(remarks))


def is_unit(student: TrainableEncoder) -> bool:
    """Tell whether the student's vectors have length one by its own making."""
    return len(student.tail) > 0 and isinstance(student.tail[-1], Normalize)


def refuse_narrow(teacher: PromptedEncoder, dimension: int) -> None:
    """Refuse a teacher with fewer dimensions than the student."""
    if teacher.dimension < dimension:
        raise InputError(
            f"the teacher {teacher.name} has {teacher.dimension} dimensions, the student {dimension}\n"
            f"  give the student a dense layer to the teacher's (dense = {teacher.dimension} in [model])"
        )
