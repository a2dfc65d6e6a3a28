"""What an objective is: one vector tensor per column, and labels → one number to make smaller.

In: `columns`, one tensor of shape (B, D) per column of the data ([u, v], or [anchor, positive, negative …]), and labels or None.
Out: a scalar loss with a gradient. Left to others: encoding (the trainer's), reading and scaling labels (the examples'), optimising.

Shapes: B rows of the batch, D dimensions, N negatives, K classes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, Self, TypeAlias

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from munjang.errors import InputError
from munjang.report.training_words import TrainingWord
from munjang.report.words import Message
from munjang.train.examples import LabelKind
from munjang.train.settings import read_settings


@dataclass(frozen=True)
class NoSettings:
    """Nothing to set."""


class Objective(nn.Module):
    """Turns sentence vectors and labels into a loss. Subclasses write `loss`; `forward` checks what comes in first."""

    name: str
    settings_type: type = NoSettings
    """The dataclass that a recipe's settings are read into."""
    word: TrainingWord
    """The line of reports that describes it; the settings are its values."""
    columns_needed: int | str
    """Exactly this many columns, or "2+" for two and more."""

    label_kind: LabelKind | None = None
    learns_all_columns: bool = False
    """Labels of kind "vectors" hold the teacher's vectors of every column, (B, C, K), not only of the first."""
    needs_teacher_model: bool = False
    """The teacher runs beside the student; `attach_teacher` gets it."""
    needs_no_duplicates: bool = False
    """Other rows are taken as wrong answers, so one text must not stand in a batch twice."""

    compares_rows: bool = False
    """The loss is not a mean over rows: a batch cut into parts gives another loss, and a batch of one row may teach nothing (loss 0)."""

    def __init__(self, settings: Any = None) -> None:
        super().__init__()
        self.settings = settings

    @property
    def least_rows(self) -> int:
        """Batches with fewer rows are left out."""
        return 2 if self.compares_rows else 1

    @classmethod
    def build(cls, values: Mapping[str, object], *, dimension: int, num_labels: int | None) -> Self:  # noqa: ARG003
        """Make the objective from a recipe's settings; an unknown or wrong setting is a UsageError."""
        return cls(read_settings(cls.settings_type, values, where=f"objective {cls.name!r}"))

    def attach(self, encoder: Any, used: Sequence[int]) -> None:
        """Take the encoder's sizes, and the pieces that the data uses, for heads that need them; called once, before training."""

    def attach_teacher(self, teacher: Any, encoder: Any) -> None:
        """Take the teacher's model, where the objective needs one; called once, before training."""

    def pieces(self, used: Sequence[int]) -> Sequence[int] | None:
        """Return the pieces whose embeddings it trains, of data that uses `used`; None is the whole vocabulary."""
        return used

    def encode(self, encoder: Any, ids: Sequence[Sequence[Sequence[int]]]) -> list[Tensor]:
        """Return the columns that `forward` takes, made of token ids, column by column; the usual ones are sentence vectors."""
        made: list[Tensor] = encoder.columns(ids) if ids[0] else encoder.empty(len(ids))
        return made

    def forward(self, columns: Sequence[Tensor], labels: Tensor | None) -> Tensor:
        """Return the scalar loss of one batch; refuse columns or labels that do not fit with an InputError."""
        vectors = self._check_columns(columns)
        return self.loss(vectors, self._check_labels(labels, vectors[0]))

    def loss(self, columns: list[Tensor], labels: Tensor) -> Tensor:
        """Return the loss of checked columns; `labels` is empty where `label_kind` is None."""
        raise NotImplementedError

    def describe(self) -> str:
        """Say in one line what is made smaller, with the settings in force."""
        return Message(self.word, **(asdict(self.settings) if self.settings is not None else {}))

    def _check_columns(self, columns: Sequence[Tensor]) -> list[Tensor]:
        least, open_ended = parse_columns_needed(self.columns_needed)
        if len(columns) < least or (len(columns) > least and not open_ended):
            raise InputError(f"objective {self.name!r}: found {len(columns)} text columns, expected {self.columns_needed}")
        shapes = {tuple(column.shape) for column in columns}
        if len(shapes) > 1 or columns[0].ndim != 2 or columns[0].shape[0] == 0:
            raise InputError(
                f"objective {self.name!r}: columns have shapes {sorted(shapes)}, expected one shape (rows, dimension), rows > 0"
            )
        return [to_float32(column) for column in columns]

    def _check_labels(self, labels: Tensor | None, like_BD: Tensor) -> Tensor:
        if self.label_kind is None:
            if labels is not None:
                raise InputError(
                    f"objective {self.name!r} reads no labels, the data has them\n  drop the label column, or name another objective"
                )
            return like_BD.new_empty(0)
        if labels is None:
            raise InputError(f"objective {self.name!r} needs a label of kind {self.label_kind!r} for each row, the data has none")
        if labels.ndim == 0 or labels.shape[0] != like_BD.shape[0]:
            raise InputError(f"objective {self.name!r}: labels have shape {tuple(labels.shape)}, expected {like_BD.shape[0]} rows")
        if self.label_kind in ("margins", "vectors"):
            return labels.detach().to(like_BD)
        if labels.numel() != like_BD.shape[0]:
            raise InputError(f"objective {self.name!r}: labels have shape {tuple(labels.shape)}, expected one label a row")
        labels_B = labels.detach().to(like_BD.device).reshape(-1)
        return labels_B if self.label_kind == "class" else labels_B.to(like_BD.dtype)


def to_float32(values: Tensor) -> Tensor:
    """Return half-precision values as float32: a softmax or a small difference in half precision loses the digits that matter."""
    return values.float() if values.dtype in (torch.float16, torch.bfloat16) else values


def parse_columns_needed(columns_needed: int | str) -> tuple[int, bool]:
    """Split "2+" into (2, True) and 3 into (3, False).

    >>> parse_columns_needed("2+"), parse_columns_needed(3)
    ((2, True), (3, False))
    """
    text = str(columns_needed)
    return int(text.rstrip("+")), text.endswith("+")


def refuse_labels_outside(name: str, labels_B: Tensor, *, allowed_B: Tensor, expected: str, remedy: str) -> None:
    """Raise an InputError that names the first label for which `allowed_B` is False."""
    if not bool(allowed_B.all()):
        row = int((~allowed_B).nonzero()[0])
        raise InputError(
            f"objective {name!r}: row {row} of the batch has the label {labels_B[row].item():g}, expected {expected}\n  {remedy}"
        )


Distance: TypeAlias = Literal["cosine", "euclidean", "manhattan"]
Similarity: TypeAlias = Literal["cosine", "dot"]


def cosine(u_BD: Tensor, v_BD: Tensor) -> Tensor:
    """Return the cosine of each row's two vectors."""
    return torch.cosine_similarity(u_BD, v_BD, dim=1)


def distance(kind: Distance, u_BD: Tensor, v_BD: Tensor, *, epsilon: float = 0.0) -> Tensor:
    """Return each row's distance; `epsilon` is added to the differences, which keeps the gradient alive where u = v."""
    if kind == "cosine":
        return 1 - cosine(u_BD, v_BD)
    norm_B: Tensor = torch.linalg.vector_norm(u_BD - v_BD + epsilon, ord=2 if kind == "euclidean" else 1, dim=1)
    return norm_B


def similarity(kind: Similarity, u_BD: Tensor, v_BD: Tensor) -> Tensor:
    """Return each row's similarity."""
    return cosine(u_BD, v_BD) if kind == "cosine" else (u_BD * v_BD).sum(dim=1)


def all_pairs(kind: Similarity, queries_BD: Tensor, candidates_CD: Tensor) -> Tensor:
    """Return the similarity of every query with every candidate, shape (B, C)."""
    if kind == "cosine":
        queries_BD, candidates_CD = F.normalize(queries_BD, dim=1), F.normalize(candidates_CD, dim=1)
    return queries_BD @ candidates_CD.T
