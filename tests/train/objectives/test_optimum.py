"""Each objective is (almost) zero exactly where the vectors are as wanted."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from munjang.train.objectives.labelled import Classification
from munjang.train.objectives.registry import make_objective

AXES = torch.eye(8, dtype=torch.float64)
FOUR, OTHERS = AXES[:4], AXES[[1, 2, 3, 0]]
HALF_MATCH = torch.cat([FOUR[:2], OTHERS[2:]])  # rows 0 and 1 equal FOUR's, rows 2 and 3 are orthogonal to them
MATCHES = torch.tensor([1, 1, 0, 0])


@pytest.mark.parametrize(
    ("name", "settings", "columns", "labels"),
    [
        ("regression", {}, [FOUR, HALF_MATCH], MATCHES),
        ("triplet", {}, [FOUR, FOUR, 2 * OTHERS], None),
        ("triplet", {"distance": "cosine"}, [FOUR, FOUR, OTHERS], None),
        ("in_batch", {}, [FOUR, FOUR], None),
        ("in_batch", {"symmetric": True}, [FOUR, 3 * FOUR, AXES[4:]], None),
        ("cosent", {}, [FOUR, HALF_MATCH], MATCHES),
        ("angle", {}, [FOUR, HALF_MATCH], MATCHES),
        ("contrastive", {}, [FOUR, HALF_MATCH], MATCHES),
        ("online_contrastive", {}, [FOUR, HALF_MATCH], MATCHES),
        ("distillation", {}, [FOUR, FOUR], FOUR),
        ("distillation", {"compare": "cosine"}, [FOUR, 5 * FOUR], FOUR),
        ("score_distillation", {}, [FOUR, HALF_MATCH], torch.stack([3 * OTHERS, HALF_MATCH[[1, 2, 3, 0]]], dim=1).roll(1, 0)),
        ("margin_mse", {}, [FOUR, FOUR, OTHERS], torch.ones(4)),
        ("matryoshka", {"around": "in_batch", "dims": [8, 4]}, [FOUR, FOUR], None),
        ("matryoshka", {"around": "distillation", "dims": [8, 4]}, [FOUR, FOUR], FOUR),
    ],
)
def test_the_loss_is_near_zero_where_vectors_are_as_wanted(
    name: str, settings: dict[str, object], columns: list[Tensor], labels: Tensor | None
) -> None:
    assert float(make_objective(name, settings, dimension=8)(columns, labels)) < 1e-6


@pytest.mark.parametrize("name", ["regression", "cosent", "angle", "contrastive", "online_contrastive"])
def test_the_loss_is_large_where_labels_are_inverted(name: str) -> None:
    assert float(make_objective(name, {}, dimension=8)([FOUR, HALF_MATCH], 1 - MATCHES)) > 0.1


def test_a_classifier_that_reads_the_class_off_u_has_no_loss_and_full_accuracy() -> None:
    objective = make_objective("classification", {}, dimension=8, num_labels=4).double()
    assert isinstance(objective, Classification)
    with torch.no_grad():
        objective.head.weight.zero_()
        objective.head.bias.zero_()
        objective.head.weight[:, :4] = 50 * torch.eye(4)
    classes = torch.arange(4)
    assert float(objective([FOUR, OTHERS], classes).detach()) < 1e-6
    assert torch.equal(objective.logits([FOUR, OTHERS]).argmax(dim=1), classes)


def test_cosent_reads_only_the_order_of_scores() -> None:
    torch.manual_seed(0)
    columns, scores = [torch.randn(6, 8), torch.randn(6, 8)], torch.rand(6)
    objective = make_objective("cosent", {}, dimension=8)
    torch.testing.assert_close(objective(columns, scores), objective(columns, scores * 5 - 2))


def test_hard_negatives_make_the_in_batch_task_harder() -> None:
    torch.manual_seed(0)
    objective = make_objective("in_batch", {}, dimension=8)
    anchors, positives, negatives = torch.randn(3, 6, 8)
    assert objective([anchors, positives, negatives], None) > objective([anchors, positives], None)


def test_temperature_is_one_over_scale() -> None:
    columns = list(torch.randn(2, 6, 8))
    cold, scaled = (make_objective("in_batch", values, dimension=8) for values in ({"temperature": 0.1}, {"scale": 10}))
    torch.testing.assert_close(cold(columns, None), scaled(columns, None))


def test_matryoshka_gives_a_head_to_each_dimension_and_says_when_the_full_one_is_left_out() -> None:
    objective = make_objective("matryoshka", {"around": "classification", "dims": [2, 4]}, dimension=8, num_labels=3)
    assert sorted(tuple(p.shape) for p in objective.parameters() if p.ndim == 2) == [(3, 6), (3, 12)]
    assert "full 8 dimensions are not trained" in objective.describe()
