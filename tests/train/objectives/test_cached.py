"""The gradient cache gives the gradients of the plain step."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from munjang.errors import InputError
from munjang.train.objectives.base import Objective
from munjang.train.objectives.cached import RandomState, replay, run_cached_step
from munjang.train.objectives.registry import make_objective


def small_encoder() -> nn.Module:
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Dropout(0.3), nn.Linear(16, 8)).double()


def rows(count: int, columns: int) -> Tensor:
    return torch.randn(count, columns, 6, dtype=torch.float64, generator=torch.Generator().manual_seed(2))


def encode_with(model: nn.Module):
    return lambda texts_BCF: list(model(texts_BCF.flatten(0, 1)).unflatten(0, texts_BCF.shape[:2]).unbind(dim=1))


def gradients(model: nn.Module, objective: Objective) -> list[Tensor]:
    return [parameter.grad for module in (model, objective) for parameter in module.parameters() if parameter.grad is not None]


def plain_step(model: nn.Module, minibatches: list[Tensor], objective: Objective, labels: Tensor | None) -> float:
    parts = [encode_with(model)(minibatch) for minibatch in minibatches]
    loss = objective([torch.cat(column) for column in zip(*parts, strict=True)], labels)
    loss.backward()
    return float(loss.detach())


CASES = [
    ("in_batch", {}, 2, None),
    ("in_batch", {"symmetric": True}, 3, None),
    ("cosent", {}, 2, torch.linspace(0, 1, 10)),
    ("classification", {}, 2, torch.arange(10) % 3),
    ("matryoshka", {"around": "in_batch", "dims": [8, 4]}, 2, None),
]


@pytest.mark.parametrize(("name", "values", "columns", "labels"), CASES, ids=lambda part: str(part)[:20])
@pytest.mark.parametrize("dropout", [False, True], ids=["eval", "dropout"])
def test_cached_gradients_equal_plain_ones(
    name: str, values: dict[str, object], columns: int, labels: Tensor | None, dropout: bool
) -> None:
    minibatches = list(rows(10, columns).split(4))  # 4, 4 and 2 rows
    results = []
    for step in (plain_step, lambda model, *rest: run_cached_step(encode_with(model), *rest)):
        model = small_encoder().train(dropout)
        objective = make_objective(name, values, dimension=8, num_labels=3).double()
        torch.manual_seed(5)
        results.append((step(model, minibatches, objective, labels), gradients(model, objective)))
    (plain_loss, plain), (cached_loss, cached) = results
    assert cached_loss == pytest.approx(plain_loss, abs=1e-12)
    assert len(plain) == len(cached) > 0
    for one, other in zip(plain, cached, strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-10)


@given(size=st.integers(1, 12))
@settings(max_examples=12, deadline=None)
def test_the_size_of_mini_batches_does_not_change_the_gradient(size: int) -> None:
    objective = make_objective("in_batch", {}, dimension=8)
    whole, parts = small_encoder().eval(), small_encoder().eval()
    run_cached_step(encode_with(whole), [rows(12, 2)], objective, None)
    run_cached_step(encode_with(parts), list(rows(12, 2).split(size)), objective, None)
    for one, other in zip(gradients(whole, objective), gradients(parts, objective), strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-10)


def test_weight_scales_the_gradient_and_steps_accumulate() -> None:
    objective = make_objective("in_batch", {}, dimension=8)
    once, twice = small_encoder().eval(), small_encoder().eval()
    run_cached_step(encode_with(once), list(rows(6, 2).split(2)), objective, None)
    for _ in range(2):
        run_cached_step(encode_with(twice), list(rows(6, 2).split(2)), objective, None, weight=0.5)
    for one, other in zip(gradients(once, objective), gradients(twice, objective), strict=True):
        torch.testing.assert_close(one, other)


def test_gradients_flow_under_autocast() -> None:
    objective = make_objective("in_batch", {}, dimension=8)
    model = small_encoder().float().eval()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        run_cached_step(encode_with(model), list(rows(6, 2).float().split(3)), objective, None)
    assert all(parameter.grad is not None and parameter.grad.abs().sum() > 0 for parameter in model.parameters() if parameter.ndim == 2)


def test_the_random_numbers_go_on_as_after_one_plain_pass() -> None:
    after = []
    for step in (plain_step, lambda model, *rest: run_cached_step(encode_with(model), *rest)):
        torch.manual_seed(9)
        model = small_encoder().train()
        step(model, list(rows(6, 2).split(2)), make_objective("in_batch", {}, dimension=8), None)
        after.append(torch.rand(3))
    assert torch.equal(*after)


def test_replayed_repeats_the_numbers_and_leaves_no_trace() -> None:
    state = RandomState.now()
    first = torch.rand(4)
    before = RandomState.now()
    with replay(state):
        assert torch.equal(torch.rand(4), first)
    assert torch.equal(RandomState.now().cpu, before.cpu)


def test_no_mini_batches_is_refused() -> None:
    with pytest.raises(InputError, match="no mini-batches"):
        run_cached_step(encode_with(small_encoder()), [], make_objective("in_batch", {}, dimension=8), None)
