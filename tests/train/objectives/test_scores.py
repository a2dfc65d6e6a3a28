"""Cross-encoder losses: laws, and equality with sentence-transformers' on the same scores."""

from __future__ import annotations

import warnings
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from munjang.errors import InputError
from munjang.train.objectives.registry import SCORE_LOSSES, make_score_loss
from munjang.train.objectives.score_losses import ScoreLoss

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    pytest.importorskip("sentence_transformers", reason="the authority is not installed")
    from sentence_transformers.cross_encoder import CrossEncoder, losses

LENGTHS = [4, 2, 5]
QUERIES, DOCUMENTS = len(LENGTHS), max(LENGTHS)
MASK = torch.arange(DOCUMENTS)[None, :] < torch.tensor(LENGTHS)[:, None]
LABELS = torch.tensor([[2.0, 0, 1, 0, 9], [0, 1, 9, 9, 9], [3, 0, 0, 1, 2]])


class GivenScores(CrossEncoder):
    """Stands in for a cross-encoder: the score of ("q", "d") stands in row q, column d of a table."""

    device = torch.device("cpu")

    def __init__(self, table: Tensor) -> None:
        nn.Module.__init__(self)
        self.table = table

    num_labels = property(lambda self: 1 if self.table.shape[1] == 1 else self.table.shape[1])

    def preprocess(self, pairs: list[tuple[str, str]], **_: Any) -> dict[str, Tensor]:
        return {"pairs": torch.tensor([[int(a), int(b)] for a, b in pairs])}

    def forward(self, features: dict[str, Tensor]) -> dict[str, Tensor]:
        return {"scores": self.table[features["pairs"][:, 0], features["pairs"][:, 1]][:, None]}


class OneScoreEach(GivenScores):
    num_labels = property(lambda self: 1)


class ManyScoresEach(GivenScores):
    def forward(self, features: dict[str, Tensor]) -> dict[str, Tensor]:
        return {"scores": self.table[features["pairs"][:, 0]]}


def table(rows: int = QUERIES, columns: int = DOCUMENTS) -> Tensor:
    torch.manual_seed(0)
    return torch.randn(rows, columns)


def compare(ours: Tensor, theirs: Tensor, leaf: Tensor) -> None:
    assert float(ours.detach()) == pytest.approx(float(theirs.detach()), rel=1e-6, abs=1e-6)
    (mine,), (their,) = torch.autograd.grad(ours, leaf), torch.autograd.grad(theirs, leaf)
    torch.testing.assert_close(mine, their, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("name", "values", "theirs"),
    [
        ("listnet", {}, losses.ListNetLoss),
        ("ranknet", {}, losses.RankNetLoss),
        ("ranknet", {"k": 2, "sigma": 3}, lambda m: losses.RankNetLoss(m, k=2, sigma=3)),
        ("lambdaloss", {}, losses.LambdaLoss),
        ("lambdaloss", {"k": 2}, lambda m: losses.LambdaLoss(m, k=2)),
        ("lambdaloss", {"weighting": "none"}, lambda m: losses.LambdaLoss(m, losses.NoWeightingScheme())),
        ("lambdaloss", {"weighting": "ndcg1"}, lambda m: losses.LambdaLoss(m, losses.NDCGLoss1Scheme())),
        ("lambdaloss", {"weighting": "ndcg2", "k": 3}, lambda m: losses.LambdaLoss(m, losses.NDCGLoss2Scheme(), k=3)),
        ("lambdaloss", {"weighting": "lambdarank"}, lambda m: losses.LambdaLoss(m, losses.LambdaRankScheme())),
        ("lambdaloss", {"mu": 2}, lambda m: losses.LambdaLoss(m, losses.NDCGLoss2PPScheme(mu=2.0))),
    ],
)
def test_listwise_losses_are_equal(name: str, values: dict[str, object], theirs: Any) -> None:
    leaf = table().requires_grad_()
    ours = make_score_loss(name, values)(leaf, LABELS, mask=MASK)
    inputs = [[str(q) for q in range(QUERIES)], [[str(d) for d in range(n)] for n in LENGTHS]]
    their = theirs(OneScoreEach(leaf))(inputs, [LABELS[q, :n] for q, n in enumerate(LENGTHS)])
    compare(ours, their, leaf)


@pytest.mark.parametrize(("name", "theirs"), [("mse", losses.MSELoss), ("bce", losses.BinaryCrossEntropyLoss)])
def test_pointwise_losses_are_equal(name: str, theirs: Any) -> None:
    leaf, labels = table(6, 1).requires_grad_(), torch.tensor([0, 1, 0.5, 1, 0, 0.2])
    their = theirs(OneScoreEach(leaf))([list("012345"), ["0"] * 6], labels)
    compare(make_score_loss(name, {})(leaf, labels), their, leaf)


def test_a_positive_weight_is_equal() -> None:
    leaf, labels = table(6, 1).requires_grad_(), torch.tensor([0, 1, 0, 1, 0, 0])
    their = losses.BinaryCrossEntropyLoss(OneScoreEach(leaf), pos_weight=torch.tensor(3.0))([list("012345"), ["0"] * 6], labels)
    compare(make_score_loss("bce", {"positive_weight": 3})(leaf, labels), their, leaf)


def test_cross_entropy_is_equal() -> None:
    leaf, labels = table(6, 3).requires_grad_(), torch.tensor([0, 1, 2, 2, 1, 0])
    their = losses.CrossEntropyLoss(ManyScoresEach(leaf))([list("012345"), ["0"] * 6], labels)
    compare(make_score_loss("cross_entropy", {})(leaf, labels), their, leaf)


def test_multiple_negatives_is_equal() -> None:
    leaf = table(4, 4).requires_grad_()
    their = losses.MultipleNegativesRankingLoss(OneScoreEach(leaf), num_negatives=None)([list("0123"), list("0123")], None)
    own_first = torch.stack([leaf[q, [q, *(d for d in range(4) if d != q)]] for q in range(4)])
    compare(make_score_loss("multiple_negatives", {})(own_first, None), their, leaf)


@pytest.mark.parametrize("labels", [torch.tensor([[1.0, 2], [0, 1], [3, -1]]), torch.tensor([[1.0, 0, 2], [0, 0, 1], [3, 0, 1]])])
def test_margin_mse_is_equal(labels: Tensor) -> None:
    leaf = table(3, 3).requires_grad_()
    their = losses.MarginMSELoss(OneScoreEach(leaf))([list("012"), ["0"] * 3, ["1"] * 3, ["2"] * 3], labels)
    compare(make_score_loss("margin_mse", {})(leaf, labels), their, leaf)


LISTWISE = ["listnet", "lambdaloss", "ranknet", "multiple_negatives"]


def labels_for(name: str, labels: Tensor) -> Tensor | None:
    return None if name == "multiple_negatives" else labels


@pytest.mark.parametrize("name", LISTWISE)
def test_what_stands_on_padding_never_counts(name: str) -> None:
    loss = make_score_loss(name, {})
    scores = table()
    noisy_scores, noisy_labels = scores.masked_fill(~MASK, 1e4), LABELS.masked_fill(~MASK, float("nan"))
    torch.testing.assert_close(
        loss(scores, labels_for(name, LABELS), mask=MASK), loss(noisy_scores, labels_for(name, noisy_labels), mask=MASK)
    )


@pytest.mark.parametrize("name", LISTWISE)
def test_more_padding_and_the_order_of_queries_change_nothing(name: str) -> None:
    loss = make_score_loss(name, {})
    before = loss(table(), labels_for(name, LABELS), mask=MASK)
    wide = [torch.nn.functional.pad(rows, (0, 3)) for rows in (table(), LABELS, MASK)]
    torch.testing.assert_close(loss(wide[0], labels_for(name, wide[1]), mask=wide[2]), before)
    torch.testing.assert_close(loss(table().flip(0), labels_for(name, LABELS.flip(0)), mask=MASK.flip(0)), before)


@pytest.mark.parametrize("name", ["listnet", "lambdaloss", "ranknet"])
def test_the_order_of_documents_changes_nothing(name: str) -> None:
    loss = make_score_loss(name, {})
    torch.testing.assert_close(loss(table().flip(1), LABELS.flip(1), mask=MASK.flip(1)), loss(table(), LABELS, mask=MASK))


@pytest.mark.parametrize("name", sorted(SCORE_LOSSES))
def test_gradients_are_the_slope_and_one_row_is_enough(name: str) -> None:
    loss = make_score_loss(name, {})
    for rows in (1, 3):
        assert torch.autograd.gradcheck(
            lambda scores, rows=rows: loss(scores, labels_like(loss, rows)), table(rows, width(loss)).double().requires_grad_()
        )


@pytest.mark.parametrize("name", ["lambdaloss", "ranknet", "multiple_negatives"])
def test_a_right_order_with_wide_gaps_costs_nothing(name: str) -> None:
    values: dict[str, object] = {"activation": "none"} if name == "multiple_negatives" else {}
    scores, labels = torch.tensor([[90.0, 50, 0]]), torch.tensor([[2.0, 1, 0]])
    assert float(make_score_loss(name, values)(scores, labels_for(name, labels))) < 1e-6


@pytest.mark.parametrize("name", sorted(SCORE_LOSSES))
def test_half_precision_scores_give_a_float32_loss(name: str) -> None:
    loss = make_score_loss(name, {})
    assert loss(table(3, width(loss)).bfloat16(), labels_like(loss, 3)).dtype == torch.float32


@pytest.mark.parametrize("name", sorted(set(SCORE_LOSSES) - {"multiple_negatives"}))
def test_missing_labels_are_refused(name: str) -> None:
    loss = make_score_loss(name, {})
    with pytest.raises(InputError, match=f"loss '{name}'"):
        loss(table(3, width(loss)), None)


def test_wrong_shapes_and_ranges_are_refused() -> None:
    with pytest.raises(InputError, match="one score a pair"):
        make_score_loss("mse", {})(table(3, 2), torch.zeros(3))
    with pytest.raises(InputError, match="outside 0 … 1"):
        make_score_loss("bce", {})(table(3, 1), torch.tensor([0, 1, 5.0]))
    with pytest.raises(InputError, match="outside 0 … 2"):
        make_score_loss("cross_entropy", {})(table(3, 3), torch.tensor([0, 1, 3]))
    with pytest.raises(InputError, match="no documents"):
        make_score_loss("listnet", {})(table(), LABELS, mask=MASK & torch.tensor([[True], [False], [True]]))
    with pytest.raises(InputError, match="reads no labels"):
        make_score_loss("multiple_negatives", {})(table(), LABELS)
    with pytest.raises(InputError, match="expected the positive"):
        make_score_loss("multiple_negatives", {})(table(), None, mask=MASK.flip(1))
    with pytest.raises(InputError, match="margins or"):
        make_score_loss("margin_mse", {})(table(3, 3), torch.zeros(3, 5))


def width(loss: ScoreLoss) -> int:
    return {"mse": 1, "bce": 1}.get(loss.name, 3)


def labels_like(loss: ScoreLoss, rows: int) -> Tensor | None:
    if loss.name == "multiple_negatives":
        return None
    return (torch.arange(rows) % 2).double() if loss.shape == "pair" else torch.tensor([[2.0, 0, 1]]).repeat(rows, 1)
