"""On the same vectors, every loss equals sentence-transformers' one, and so does its gradient."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from munjang.train.objectives.base import Objective
from munjang.train.objectives.labelled import Classification
from munjang.train.objectives.registry import make_objective

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    pytest.importorskip("sentence_transformers", reason="the authority is not installed")
    from sentence_transformers.sentence_transformer import losses
    from sentence_transformers.sentence_transformer.losses.contrastive import SiameseDistanceMetric
    from sentence_transformers.sentence_transformer.losses.triplet import TripletDistanceMetric
    from sentence_transformers.util import cos_sim, dot_score, pairwise_cos_sim

ROWS, DIMENSION = 7, 12
SCORES = torch.tensor([0.1, 0.9, 0.5, 0.5, 0.0, 1.0, 0.3])
BINARY = torch.tensor([1, 0, 1, 1, 0, 0, 1])
CLASSES = torch.tensor([0, 1, 2, 0, 1, 2, 0])


class GivenVectors(nn.Module):
    """Stands in for a model: returns the vectors it is handed."""

    device = torch.device("cpu")

    def forward(self, features: dict[str, Tensor]) -> dict[str, Tensor]:
        return {"sentence_embedding": features["vectors"]}

    def get_embedding_dimension(self) -> int:
        return DIMENSION


def vectors(columns: int) -> list[Tensor]:
    torch.manual_seed(columns)
    return [torch.randn(ROWS, DIMENSION) + 0.3 for _ in range(columns)]


def value_and_gradients(loss_of: Callable[[list[Tensor]], Tensor], columns: int) -> tuple[float, list[Tensor]]:
    leaves = [column.requires_grad_() for column in vectors(columns)]
    loss = loss_of(leaves)
    loss.backward()
    return float(loss.detach()), [leaf.grad for leaf in leaves if leaf.grad is not None]


def assert_equal(ours: Objective, theirs: nn.Module, columns: int, labels: Tensor | None) -> None:
    mine, my_gradients = value_and_gradients(lambda leaves: ours(leaves, labels), columns)
    their, their_gradients = value_and_gradients(lambda leaves: theirs([{"vectors": leaf} for leaf in leaves], labels), columns)
    assert mine == pytest.approx(their, rel=1e-6, abs=1e-6)
    for one, other in zip(my_gradients, their_gradients, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-6)


def symmetric(model: nn.Module) -> nn.Module:
    return losses.MultipleNegativesRankingLoss(model, directions=("query_to_doc", "doc_to_query"), partition_mode="per_direction")


def deprecated_symmetric(model: nn.Module) -> nn.Module:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return losses.MultipleNegativesSymmetricRankingLoss(model)


def matryoshka(inner: Callable[[Any], nn.Module], **options: Any) -> Callable[[Any], nn.Module]:
    return lambda model: losses.MatryoshkaLoss(model, inner(model), **options)


@pytest.mark.parametrize(
    ("name", "values", "theirs", "columns", "labels"),
    [
        ("regression", {}, losses.CosineSimilarityLoss, 2, SCORES),
        ("triplet", {}, lambda m: losses.TripletLoss(m, triplet_margin=1), 3, None),
        ("triplet", {"distance": "cosine", "margin": 0.5}, lambda m: losses.TripletLoss(m, TripletDistanceMetric.COSINE, 0.5), 3, None),
        ("triplet", {"distance": "manhattan", "margin": 5}, lambda m: losses.TripletLoss(m, TripletDistanceMetric.MANHATTAN), 3, None),
        ("in_batch", {}, losses.MultipleNegativesRankingLoss, 2, None),
        ("in_batch", {}, losses.MultipleNegativesRankingLoss, 4, None),
        ("in_batch", {"temperature": 0.1}, lambda m: losses.MultipleNegativesRankingLoss(m, scale=10), 3, None),
        ("in_batch", {"similarity": "dot"}, lambda m: losses.MultipleNegativesRankingLoss(m, scale=1, similarity_fct=dot_score), 3, None),
        ("in_batch", {"symmetric": True}, symmetric, 2, None),
        ("in_batch", {"symmetric": True}, symmetric, 3, None),
        ("in_batch", {"symmetric": True}, deprecated_symmetric, 2, None),
        ("cosent", {}, losses.CoSENTLoss, 2, SCORES),
        ("cosent", {"scale": 5}, lambda m: losses.CoSENTLoss(m, scale=5), 2, SCORES * 5),
        ("angle", {}, losses.AnglELoss, 2, SCORES),
        ("contrastive", {}, losses.ContrastiveLoss, 2, BINARY),
        (
            "contrastive",
            {"distance": "euclidean", "margin": 6},
            lambda m: losses.ContrastiveLoss(m, SiameseDistanceMetric.EUCLIDEAN, 6),
            2,
            BINARY,
        ),
        ("online_contrastive", {}, losses.OnlineContrastiveLoss, 2, BINARY),
        ("online_contrastive", {}, losses.OnlineContrastiveLoss, 2, torch.ones(ROWS)),
        ("online_contrastive", {}, losses.OnlineContrastiveLoss, 2, torch.zeros(ROWS)),
        (
            "online_contrastive",
            {"distance": "manhattan", "margin": 20},
            lambda m: losses.OnlineContrastiveLoss(m, SiameseDistanceMetric.MANHATTAN, 20),
            2,
            BINARY,
        ),
        ("distillation", {"compare": "mse"}, losses.MSELoss, 2, vectors(1)[0]),
        ("distillation", {"compare": "mse"}, losses.MSELoss, 1, vectors(1)[0] * 2),
        ("distillation", {"compare": "cosine"}, losses.EmbedDistillLoss, 2, vectors(1)[0]),
        ("margin_mse", {}, losses.MarginMSELoss, 3, SCORES),
        ("margin_mse", {}, losses.MarginMSELoss, 4, torch.stack([SCORES, -SCORES], dim=1)),
        (
            "margin_mse",
            {"similarity": "cosine"},
            lambda m: losses.MarginMSELoss(m, pairwise_cos_sim),
            3,
            torch.stack([SCORES, -SCORES], dim=1),
        ),
        (
            "matryoshka",
            {"dims": [6, 12, 3], "weights": [0.5, 1, 2]},
            matryoshka(losses.MultipleNegativesRankingLoss, matryoshka_dims=[6, 12, 3], matryoshka_weights=[0.5, 1, 2]),
            3,
            None,
        ),
        ("matryoshka", {"around": "cosent", "dims": [12, 5]}, matryoshka(losses.CoSENTLoss, matryoshka_dims=[12, 5]), 2, SCORES),
    ],
)
def test_loss_and_gradient_are_equal(
    name: str, values: dict[str, object], theirs: Callable[[Any], nn.Module], columns: int, labels: Tensor | None
) -> None:
    assert_equal(make_objective(name, values, dimension=DIMENSION), theirs(GivenVectors()), columns, labels)


@pytest.mark.parametrize(
    ("parts", "flags"),
    [
        (["u", "v", "|u-v|"], (True, True, False)),
        (["u", "v"], (True, False, False)),
        (["|u-v|"], (False, True, False)),
        (["u*v"], (False, False, True)),
        (["u*v", "|u-v|"], (False, True, True)),
        (["u", "v", "u*v"], (True, False, True)),
        (["u", "v", "|u-v|", "u*v"], (True, True, True)),
    ],
)
def test_classification_is_equal_on_the_same_head_for_the_seven_concatenations(parts: list[str], flags: tuple[bool, bool, bool]) -> None:
    ours = make_objective("classification", {"parts": parts}, dimension=DIMENSION, num_labels=3)
    theirs = losses.SoftmaxLoss(GivenVectors(), DIMENSION, 3, *flags)
    assert isinstance(ours, Classification)
    ours.head.load_state_dict(theirs.classifier.state_dict())
    assert_equal(ours, theirs, 2, CLASSES)
    torch.testing.assert_close(ours.head.weight.grad, theirs.classifier.weight.grad)


def test_angle_is_equal_for_an_odd_dimension() -> None:
    columns = [column[:, :7] for column in vectors(2)]
    ours = make_objective("angle", {}, dimension=7)(columns, SCORES)
    theirs = losses.AnglELoss(GivenVectors())([{"vectors": column} for column in columns], SCORES)
    torch.testing.assert_close(ours, theirs)


@pytest.mark.parametrize("columns", [1, 2])
def test_distillation_by_squared_distance_is_mse_times_the_dimension(columns: int) -> None:
    given = [column.requires_grad_() for column in vectors(columns)]
    teacher = vectors(1)[0].detach() * 2
    ours = make_objective("distillation", {}, dimension=DIMENSION)(given, teacher)
    mine = torch.autograd.grad(ours, given)
    theirs = losses.MSELoss(GivenVectors())([{"vectors": column} for column in given], teacher)
    torch.testing.assert_close(ours, DIMENSION * theirs)
    for one, other in zip(mine, torch.autograd.grad(theirs, given), strict=True):
        torch.testing.assert_close(one, DIMENSION * other)


def test_score_distillation_is_the_divergence_of_every_candidate_of_the_batch() -> None:
    given, taught = [column.requires_grad_() for column in vectors(3)], torch.stack(vectors(3), dim=1).detach().flip(0)
    ours = make_objective("score_distillation", {"scale": 7, "teacher_scale": 3}, dimension=DIMENSION)(given, taught)
    mine = torch.autograd.grad(ours, given)
    candidates = [row.expand(ROWS, DIMENSION) for column in given[1:] for row in column]
    wanted = 3 * cos_sim(taught[:, 0], torch.cat([taught[:, 1], taught[:, 2]]))
    loss = losses.DistillKLDivLoss(GivenVectors(), lambda u, v: 7 * pairwise_cos_sim(u, v), temperature=1.0)
    theirs = loss([{"vectors": vectors} for vectors in (given[0], *candidates)], wanted)
    torch.testing.assert_close(ours, theirs)
    for one, other in zip(mine, torch.autograd.grad(theirs, given), strict=True):
        torch.testing.assert_close(one, other)
