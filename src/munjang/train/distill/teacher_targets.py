"""What a student learns: for each row of the data, the teacher's vector of its source, in the space that the student's vectors live in.

In: a stage's `teacher`, the source texts of its data, and the student. Out: `TeacherTargets`, whose `get_labels` gives for a data set what
an objective with labels of kind "vectors" compares with. The teacher runs in the engine, without torch. Where the student normalises, the
teacher's vectors are brought to length one too. A teacher with fewer dimensions is refused; one with more is projected by PCA without
centring: of all projections to K dimensions it keeps the most of the vectors' squared length, and so changes scalar products the least. A
student that learns the projected vectors keeps its own small dimension and needs no further layer at inference.

The teacher's vectors are computed once and kept on disk as `VectorBlocks`, which read like one array and hold nothing in memory. Each block
is a .npy file named by the teacher's fingerprint and its texts, with its checksum beside it; it appears whole or not at all. So an
interrupted run goes on at the first block that is missing, a damaged block is computed again, other texts or another teacher never find a
wrong file, and files added at the end of a list cost only themselves.

Shapes: N rows, B rows of a batch, D the teacher's dimensions, K the student's.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from munjang.atomic import make_folder
from munjang.errors import InputError
from munjang.limits import LIMITS
from munjang.models.prompted_encoder import PromptedEncoder
from munjang.report.training_words import TrainingWord
from munjang.report.words import Message
from munjang.train.distill.stored_teacher import StoredTeacher, read_stored_teacher
from munjang.train.durable import clear_partial, hash_file, write_file, write_text
from munjang.train.encoder import Normalize, TrainableEncoder
from munjang.train.examples import VECTOR_FILES, TeacherRecipe
from munjang.types import Encoder, Vectors
from munjang.vectors.similarity import normalize

SECONDS_BETWEEN_NEWS = 30.0


@dataclass(frozen=True)
class VectorBlocks:
    """Rows of several arrays, all of `size` rows but the last."""

    blocks: tuple[Vectors, ...]
    size: int
    key: str
    """Stands for the teacher and all texts in order."""

    def __len__(self) -> int:
        return sum(len(block) for block in self.blocks)

    @property
    def dimension(self) -> int:
        """How many numbers one row has."""
        return int(self.blocks[0].shape[1])

    def rows(self, at_N: NDArray[np.int64]) -> Vectors:
        """Return copies of some rows, in the order asked for."""
        made_ND = np.empty((len(at_N), self.dimension), np.float32)
        for place, row in enumerate(at_N.tolist()):
            made_ND[place] = self.blocks[row // self.size][row % self.size]
        return made_ND


def encode_with_teacher(
    teacher: Encoder,
    texts: Sequence[str],
    folder: Path,
    *,
    show: Callable[[str], None] = lambda _: None,
    block: int = LIMITS.stream_texts,
    clock: Callable[[], float] = time.monotonic,
) -> VectorBlocks:
    """Return the teacher's vectors of the texts; what is in the folder already and whole is not computed again."""
    if not texts:
        raise InputError("no texts for the teacher to encode")
    make_folder(folder)
    clear_partial(folder)
    parts = [texts[start : start + block] for start in range(0, len(texts), block)]
    keys = [_make_key(teacher.fingerprint, part) for part in parts]
    found = [open_array(folder / f"{key}.npy", (len(part), teacher.dimension)) for key, part in zip(keys, parts, strict=True)]
    missing = [number for number, array in enumerate(found) if array is None]
    total, done, started = sum(len(parts[number]) for number in missing), 0, clock()
    if missing:
        show(f"teacher: encodes {total:,} texts ({len(texts) - total:,} were encoded before)")
    told = started
    for number in missing:
        found[number] = store_array(folder / f"{keys[number]}.npy", partial(_encode_finite, teacher, parts[number]))
        done += len(parts[number])
        if clock() - told > SECONDS_BETWEEN_NEWS and done < total:
            told = clock()
            show(f"teacher: {done:,} of {total:,} texts, {done / (told - started):,.0f} texts/s")
    made = tuple(array for array in found if array is not None)
    return VectorBlocks(made, block, hashlib.sha256(" ".join(keys).encode()).hexdigest())


def open_array(path: Path, shape: tuple[int, ...]) -> Vectors | None:
    """Map a float32 array that `store_array` wrote; None where it is missing, damaged or of another shape."""
    try:
        whole = _get_checksum_path(path).read_text(encoding="ascii").strip() == hash_file(path)
        found = np.load(path, mmap_mode="r", allow_pickle=False) if whole else None
    except (OSError, ValueError):
        return None
    return found if found is not None and found.shape == shape and found.dtype == np.float32 else None


def store_array(path: Path, make: Callable[[], Vectors]) -> Vectors:
    """Write an array with its checksum, each in one step, and return it mapped."""
    array = np.ascontiguousarray(make(), np.float32)

    def fill(draft: Path) -> None:
        with draft.open("wb") as stream:
            np.save(stream, array, allow_pickle=False)

    _get_checksum_path(path).unlink(missing_ok=True)
    write_file(path, fill)
    write_text(_get_checksum_path(path), hash_file(path) + "\n")
    mapped: Vectors = np.load(path, mmap_mode="r", allow_pickle=False)
    return mapped


def _get_checksum_path(path: Path) -> Path:
    return path.with_suffix(".sha256")


def _make_key(fingerprint: str, texts: Sequence[str]) -> str:
    made = hashlib.sha256(fingerprint.encode())
    for text in texts:
        data = text.encode("utf-8", "surrogatepass")
        made.update(len(data).to_bytes(8, "little") + data)
    return made.hexdigest()


def _encode_finite(teacher: Encoder, texts: Sequence[str]) -> Vectors:
    vectors = teacher.encode(texts)
    if not np.isfinite(vectors).all():
        raise InputError("the teacher gives vectors that are not finite numbers\n  check its folder, or name another teacher")
    return vectors


def load_teacher(recipe: TeacherRecipe) -> PromptedEncoder | StoredTeacher:
    """Load the teacher that a recipe names, a model or a file of vectors."""
    from munjang.models.sentence_encoder import SentenceEncoder

    if recipe.model.endswith(VECTOR_FILES):
        return read_stored_teacher(recipe)
    model = SentenceEncoder.load(recipe.model, compute=recipe.compute)
    prompt = None if recipe.prompt is None else model.prompts.get(recipe.prompt, recipe.prompt)
    return model.with_prompt(prompt, warn=False)


ROWS = 65_536
"""Rows that the directions are computed from, evenly spaced."""


def find_principal_axes(rows_ND: Vectors, dimension: int) -> Vectors:
    """Return the K orthonormal directions that keep the most of the rows, shape (D, K), most important first, signs fixed."""
    if len(rows_ND) < dimension:
        raise InputError(
            f"{len(rows_ND):,} texts for the teacher, and its vectors are to be brought from {rows_ND.shape[1]} to {dimension} dimensions\n"
            f"  give {dimension} texts or more, or a student of the teacher's dimension (a dense layer)"
        )
    precise_ND = rows_ND.astype(np.float64)
    _, vectors_DD = np.linalg.eigh(precise_ND.T @ precise_ND)
    axes_DK = vectors_DD[:, ::-1][:, :dimension]
    largest_K = np.abs(axes_DK).argmax(axis=0)
    signs_K = np.sign(axes_DK[largest_K, np.arange(dimension)])
    return np.ascontiguousarray(axes_DK * signs_K, np.float32)


def load_axes(blocks: VectorBlocks, dimension: int, folder: Path) -> Vectors:
    """Return the directions for these vectors, computed once and kept in the folder: a resumed run gets the same bits."""
    name = hashlib.sha256(f"axes {blocks.key} {dimension}".encode()).hexdigest()
    path = folder / f"{name}.npy"
    found = open_array(path, (blocks.dimension, dimension))
    return found if found is not None else store_array(path, lambda: find_principal_axes(_sample_rows(blocks), dimension))


def share_kept(rows_ND: Vectors, axes_DK: Vectors) -> float:
    """Return the share of the rows' squared length that the directions keep."""
    return float(np.square(rows_ND @ axes_DK).sum() / max(float(np.square(rows_ND).sum()), 1e-30))


def _sample_rows(blocks: VectorBlocks) -> Vectors:
    return blocks.rows(np.unique(np.linspace(0, len(blocks) - 1, min(ROWS, len(blocks))).astype(np.int64)))


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
    """Each example's row in `blocks`, or (N, C): the row of each of its texts."""
    target: Target

    def __len__(self) -> int:
        return len(self.rows_N)

    def __getitem__(self, at: Tensor) -> Tensor:
        """Return the targets of some examples, shape (B, K), or (B, C, K) for all of their texts."""
        rows = self.rows_N[at.numpy()]
        made = torch.from_numpy(self.target.of(self.blocks.rows(rows.reshape(-1))))
        return made.view(*rows.shape, made.shape[1])


@dataclass(frozen=True)
class TeacherTargets:
    """The teacher's vectors of every source text of a stage."""

    blocks: VectorBlocks
    places: dict[str, int]
    target: Target
    messages: tuple[str, ...]

    def get_labels(self, sources: Sequence[Sequence[str]], *, all_columns: bool = False) -> TeacherLabels:
        """Return the targets of rows with these source texts: of each row's first, or of all."""
        rows_NC = np.array([[self.places[text] for text in row] for row in sources], np.int64)
        return TeacherLabels(self.blocks, rows_NC if all_columns else rows_NC[:, 0], self.target)


def prepare_targets(
    recipe: TeacherRecipe, sources: Sequence[str], student: TrainableEncoder, folder: Path, *, show: Callable[[str], None] = lambda _: None
) -> TeacherTargets:
    """Let the teacher encode the sources, each once, or find its vectors in the folder (or in the recipe's cache)."""
    unique = list(dict.fromkeys(sources))
    teacher = load_teacher(recipe)
    refuse_narrow(teacher, student.dimension)
    kept = Path(recipe.cache) if recipe.cache else folder
    blocks = encode_with_teacher(teacher, unique, kept, show=show)
    remarks = [Message(TrainingWord.TEACHER_VECTORS, name=teacher.name, count=len(unique), dimension=teacher.dimension)]
    axes_DK = None
    if teacher.dimension > student.dimension:
        axes_DK = load_axes(blocks, student.dimension, kept)
        share = share_kept(np.asarray(blocks.blocks[0]), axes_DK)
        remarks.append(Message(TrainingWord.TEACHER_PROJECTED, wide=teacher.dimension, narrow=student.dimension, share=100 * share))
    target = Target(axes_DK, is_unit(student))
    return TeacherTargets(blocks, {text: place for place, text in enumerate(unique)}, target, tuple(remarks))


def is_unit(student: TrainableEncoder) -> bool:
    """Tell whether the student's vectors have length one by its own making."""
    return len(student.tail) > 0 and isinstance(student.tail[-1], Normalize)


def refuse_narrow(teacher: PromptedEncoder | StoredTeacher, dimension: int) -> None:
    """Refuse a teacher with fewer dimensions than the student."""
    if teacher.dimension < dimension:
        raise InputError(
            f"the teacher {teacher.name} has {teacher.dimension} dimensions, the student {dimension}\n"
            f"  give the student a dense layer to the teacher's (dense = {teacher.dimension} in [model])"
        )
