"""One suite over every objective: the laws they all keep."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from munjang.errors import InputError, UsageError
from munjang.train.objectives.base import Objective, parse_columns_needed
from munjang.train.objectives.registry import OBJECTIVES, make_objective

DIMENSION = 8
CLASSES = 3


@dataclass(frozen=True)
class Case:
    name: str
    settings: dict[str, object]
    columns: int

    def objective(self) -> Objective:
        torch.manual_seed(7)
        return make_objective(self.name, self.settings, dimension=DIMENSION, num_labels=CLASSES).double()

    def batch(self, rows: int, seed: int = 0) -> tuple[list[Tensor], Tensor | None]:
        random = torch.Generator().manual_seed(seed)
        columns = [torch.randn(rows, DIMENSION, generator=random, dtype=torch.float64) for _ in range(self.columns)]
        kind = self.objective().label_kind
        columns_taught = (self.columns,) if self.objective().learns_all_columns else ()
        labels: dict[str | None, Callable[[], Tensor | None]] = {
            None: lambda: None,
            "class": lambda: torch.randint(CLASSES, (rows,), generator=random),
            "score": lambda: torch.rand(rows, generator=random, dtype=torch.float64),
            "binary": lambda: (torch.arange(rows) % 2).double(),
            "margins": lambda: torch.randn(rows, self.columns - 2, generator=random, dtype=torch.float64),
            "vectors": lambda: torch.randn(rows, *columns_taught, DIMENSION, generator=random, dtype=torch.float64),
        }
        return columns, labels[kind]()


CASES = [
    Case("classification", {}, 2),
    Case("classification", {"parts": ["|u-v|", "u*v"]}, 2),
    Case("regression", {}, 2),
    Case("triplet", {}, 3),
    Case("triplet", {"distance": "cosine", "margin": 0.5}, 3),
    Case("triplet", {"distance": "manhattan"}, 3),
    Case("in_batch", {}, 2),
    Case("in_batch", {"symmetric": True}, 2),
    Case("in_batch", {"symmetric": True, "temperature": 0.1}, 4),
    Case("in_batch", {"similarity": "dot"}, 3),
    Case("cosent", {}, 2),
    Case("angle", {}, 2),
    Case("contrastive", {}, 2),
    Case("contrastive", {"distance": "euclidean", "margin": 4}, 2),
    Case("online_contrastive", {}, 2),
    Case("online_contrastive", {"distance": "manhattan", "margin": 9}, 2),
    Case("distillation", {}, 2),
    Case("distillation", {"compare": "cosine"}, 1),
    Case("score_distillation", {}, 3),
    Case("score_distillation", {"scale": 5, "teacher_scale": 9}, 1),
    Case("matryoshka", {"around": "score_distillation", "dims": [8, 4]}, 2),
    Case("margin_mse", {}, 3),
    Case("margin_mse", {"similarity": "cosine"}, 4),
    Case("matryoshka", {"around": "in_batch", "dims": [8, 4]}, 2),
    Case("matryoshka", {"around": "classification", "dims": [8, 4], "weights": [1, 0.5]}, 2),
    Case("matryoshka", {"around": "distillation", "dims": [4, 8]}, 2),
]
every_case = pytest.mark.parametrize(
    "case", CASES, ids=lambda case: f"{case.name}-{case.columns}-{'-'.join(map(str, case.settings.values()))}"
)


def test_every_objective_is_in_the_suite() -> None:
    # their columns are not sentence vectors: distill/test_token_objectives.py, test_multi_vector.py
    of_tokens = {"late_interaction", "token_distillation", "maxsim", "maxsim_scores"}
    assert {case.name for case in CASES} == set(OBJECTIVES) - of_tokens


@every_case
def test_the_loss_is_one_finite_number_that_is_not_negative(case: Case) -> None:
    loss = case.objective()(*case.batch(6))
    assert loss.shape == ()
    assert torch.isfinite(loss)
    assert loss >= 0


@every_case
def test_the_gradient_is_the_slope(case: Case) -> None:
    objective = case.objective()
    columns, labels = case.batch(4, seed=3)
    leaves = [column.requires_grad_() for column in columns]
    assert torch.autograd.gradcheck(lambda *vectors: objective(list(vectors), labels), leaves)


@every_case
@given(seed=st.integers(0, 10_000), data=st.data())
@settings(max_examples=8, deadline=None)
def test_the_order_of_rows_does_not_matter(case: Case, seed: int, data: st.DataObject) -> None:
    objective = case.objective()
    columns, labels = case.batch(5, seed=seed)
    order = torch.tensor(data.draw(st.permutations(range(5))))
    shuffled = objective([column[order] for column in columns], None if labels is None else labels[order])
    torch.testing.assert_close(shuffled, objective(columns, labels), rtol=1e-9, atol=1e-9)


@every_case
def test_a_batch_of_one_row_is_finite_and_has_a_finite_gradient(case: Case) -> None:
    columns, labels = case.batch(1)
    leaves = [column.requires_grad_() for column in columns]
    loss = case.objective()(leaves, labels)
    loss.backward()
    assert torch.isfinite(loss)
    assert all(leaf.grad is not None and torch.isfinite(leaf.grad).all() for leaf in leaves)


@every_case
def test_equal_and_zero_vectors_have_finite_gradients(case: Case) -> None:
    _, labels = case.batch(4)
    leaves = [torch.zeros(4, DIMENSION, dtype=torch.float64) for _ in range(case.columns)]
    for leaf in leaves:
        leaf[:2] = 1.0
        leaf.requires_grad_()
    case.objective()(leaves, labels).backward()
    assert all(torch.isfinite(leaf.grad).all() for leaf in leaves if leaf.grad is not None)


@every_case
def test_half_precision_vectors_give_a_float32_loss(case: Case) -> None:
    columns, labels = case.batch(4)
    loss = case.objective().float()([column.bfloat16() for column in columns], labels)
    assert loss.dtype == torch.float32
    assert torch.isfinite(loss)


@pytest.mark.parametrize("case", [case for case in CASES if not case.objective().compares_rows], ids=str)
def test_a_loss_that_does_not_compare_rows_is_the_mean_of_its_halves(case: Case) -> None:
    objective = case.objective()
    columns, labels = case.batch(6)
    halves = [objective([c[part] for c in columns], None if labels is None else labels[part]) for part in (slice(3), slice(3, 6))]
    torch.testing.assert_close(torch.stack(halves).mean(), objective(columns, labels))


@every_case
def test_it_says_what_it_does_in_one_line(case: Case) -> None:
    assert case.objective().describe()
    assert "\n" not in case.objective().describe()


@every_case
def test_too_few_columns_are_refused(case: Case) -> None:
    columns, labels = case.batch(4)
    least, _ = parse_columns_needed(case.objective().columns_needed)
    with pytest.raises(InputError, match="columns"):
        case.objective()(columns[: least - 1], labels)


@every_case
def test_columns_of_different_shapes_and_empty_batches_are_refused(case: Case) -> None:
    columns, labels = case.batch(4)
    if case.columns > 1:
        with pytest.raises(InputError, match="shapes"):
            case.objective()([columns[0][:3], *columns[1:]], labels)
    with pytest.raises(InputError, match="shapes"):
        case.objective()([column[:0] for column in columns], None if labels is None else labels[:0])


@every_case
def test_missing_or_unwanted_labels_are_refused(case: Case) -> None:
    columns, labels = case.batch(4)
    wrong = torch.zeros(4) if labels is None else None
    with pytest.raises(InputError, match="label"):
        case.objective()(columns, wrong)
    if labels is not None:
        with pytest.raises(InputError, match="labels have shape"):
            case.objective()(columns, labels[:3])


@pytest.mark.parametrize("name", sorted(OBJECTIVES))
def test_an_unknown_setting_is_a_usage_error(name: str) -> None:
    with pytest.raises(UsageError, match="unknown setting 'marginn'"):
        make_objective(name, {"marginn": 1}, dimension=DIMENSION, num_labels=CLASSES)


def test_an_unknown_objective_names_the_nearest() -> None:
    with pytest.raises(UsageError, match="did you mean triplet"):
        make_objective("tripplet", {}, dimension=DIMENSION)


@pytest.mark.parametrize(
    ("name", "label", "expected"),
    [
        ("regression", 5.0, "-1 … 1"),
        ("contrastive", 0.5, "0 or 1"),
        ("online_contrastive", 2, "0 or 1"),
        ("classification", 3, "0 … 2"),
        ("cosent", float("nan"), "finite"),
    ],
)
def test_a_label_out_of_range_is_named_with_its_row(name: str, label: float, expected: str) -> None:
    columns, _ = Case(name, {}, 2).batch(3)
    labels = torch.tensor([0, 1, label])
    with pytest.raises(InputError, match=r"row 2 .*" + expected):
        Case(name, {}, 2).objective()(columns, labels)
