from __future__ import annotations

import pytest

from munjang.errors import InputError, UsageError
from munjang.train.examples import DataShape
from munjang.train.objectives.base import parse_columns_needed
from munjang.train.objectives.registry import choose_objective, make_objective

SHAPES = [
    (DataShape(columns=2, label_kind="class", classes=3), "classification"),
    (DataShape(columns=2, label_kind="class"), "classification"),
    (DataShape(columns=2, label_kind="score", label_range=(0, 5)), "cosent"),
    (DataShape(columns=2, label_kind="binary", classes=2), "online_contrastive"),
    (DataShape(columns=2), "in_batch"),
    (DataShape(columns=3), "in_batch"),
    (DataShape(columns=5), "in_batch"),
    (DataShape(columns=3, label_kind="margins"), "margin_mse"),
    (DataShape(columns=1, label_kind="vectors"), "distillation"),
    (DataShape(columns=2, label_kind="vectors"), "distillation"),
]


@pytest.mark.parametrize(("shape", "name"), SHAPES, ids=str)
def test_the_shape_of_the_data_decides_and_the_reason_is_one_line(shape: DataShape, name: str) -> None:
    choice = choose_objective(shape)
    assert choice.name == name
    assert choice.reason
    assert "\n" not in choice.reason


@pytest.mark.parametrize(("shape", "_name"), SHAPES, ids=str)
def test_the_chosen_objective_takes_data_of_that_shape(shape: DataShape, _name: str) -> None:
    choice = choose_objective(shape)
    objective = make_objective(choice.name, choice.settings, dimension=8, num_labels=shape.classes or 2)
    least, open_ended = parse_columns_needed(objective.columns_needed)
    assert shape.columns == least or (shape.columns > least and open_ended)
    assert objective.label_kind == shape.label_kind


@pytest.mark.parametrize(
    ("shape", "error", "message"),
    [
        (DataShape(columns=2, label_kind="class", classes=1), InputError, "1 class, expected two"),
        (DataShape(columns=2, label_kind="binary", classes=1), InputError, "1 class, expected two"),
        (DataShape(columns=2, label_kind="score", label_range=(1.0, 1.0)), InputError, "every score is 1"),
        (DataShape(columns=1), UsageError, "munjang adapt"),
        (DataShape(columns=3, label_kind="score"), UsageError, "no objective takes"),
        (DataShape(columns=2, label_kind="margins"), UsageError, "three text columns"),
    ],
    ids=str,
)
def test_data_that_can_teach_nothing_is_refused(shape: DataShape, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        choose_objective(shape)
