"""Labels, vectors and settings that do not fit an objective are named with what was expected."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
import torch

from munjang.errors import InputError, UsageError
from munjang.train.examples import DataShape
from munjang.train.objectives.registry import choose_score_loss, make_objective, make_score_loss
from munjang.train.objectives.score_losses import ScoreObjective
from munjang.train.settings import read_settings

COLUMNS = [torch.randn(4, 8, generator=torch.Generator().manual_seed(seed)) for seed in (1, 2)]


def test_more_than_one_label_a_row_is_refused() -> None:
    objective = make_objective("regression", {}, dimension=8, num_labels=None)
    with pytest.raises(InputError, match=r"objective 'regression': labels have shape \(4, 2\), expected one label a row"):
        objective(COLUMNS, torch.zeros(4, 2))


def test_a_teacher_of_another_dimension_is_refused() -> None:
    objective = make_objective("distillation", {}, dimension=8, num_labels=None)
    with pytest.raises(InputError, match=r"the teacher's vectors are \(4, 6\), the student's \(4, 8\)\n  give the student a Dense layer"):
        objective(COLUMNS[:1], torch.zeros(4, 6))


def test_vectors_of_another_dimension_are_refused_by_matryoshka() -> None:
    objective = make_objective("matryoshka", {"around": "in_batch", "dims": [16, 4]}, dimension=16, num_labels=None)
    with pytest.raises(InputError, match="objective 'matryoshka': vectors have 8 dimensions, expected 16"):
        objective(COLUMNS, None)


def test_documents_are_ordered_by_one_score() -> None:
    objective = ScoreObjective(make_score_loss("listnet", {}))
    with pytest.raises(InputError, match="loss 'listnet' orders documents by one score, the model has 3 labels"):
        objective([torch.zeros(4, 3), torch.zeros(4, 3)], torch.zeros(4, 2))


@pytest.mark.parametrize("shape", [(4,), (3, 2)], ids=str)
def test_logits_of_another_shape_are_refused_by_cross_entropy(shape: tuple[int, ...]) -> None:
    with pytest.raises(InputError, match=r"loss 'cross_entropy': logits have shape .*, expected \(4, classes\)"):
        make_score_loss("cross_entropy", {})(torch.zeros(shape), torch.zeros(4))


def test_a_loss_of_pairs_takes_no_padding() -> None:
    with pytest.raises(InputError, match="loss 'bce' takes no padding"):
        make_score_loss("bce", {})(torch.zeros(2), torch.zeros(2), mask=torch.tensor([True, False]))


def test_one_column_is_no_pair() -> None:
    with pytest.raises(UsageError, match="one text column, and a cross-encoder scores pairs\n  add a second column"):
        choose_score_loss(DataShape(columns=1, label_kind="class", classes=3))


@dataclass(frozen=True)
class _Options:
    steps: int | None = 3


def test_none_is_taken_where_it_is_allowed() -> None:
    assert read_settings(_Options, {"steps": None}, where="stage").steps is None
    assert read_settings(_Options, {"steps": 4}, where="stage").steps == 4
