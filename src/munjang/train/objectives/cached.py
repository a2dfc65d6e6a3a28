"""Gradient cache: the loss of a large batch, with the memory of a small one (GradCache, Gao et al. 2021).

In: mini-batches of rows, a function that encodes one, and an objective over the whole batch. Out: the loss as a number, with `.grad`
filled in as one large backward pass would have done. How: encode all without a graph, take the loss's gradient at the vectors, then encode
each mini-batch again, with the random numbers of the first time, and push its share of that gradient through. Costs one more forward pass.
Left to the trainer: zeroing gradients before, the optimiser's step after, and gathering over processes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar

import torch
from torch import Tensor

from munjang.errors import InputError
from munjang.train.objectives.base import Objective

M = TypeVar("M")


@dataclass(frozen=True)
class RandomState:
    """Where torch's random number generators stood: the CPU's and each CUDA device's."""

    cpu: Tensor
    cuda: tuple[Tensor, ...]

    @classmethod
    def now(cls) -> RandomState:
        """Take the present state."""
        cuda = tuple(torch.cuda.get_rng_state_all()) if torch.cuda.is_available() else ()
        return cls(cpu=torch.get_rng_state(), cuda=cuda)

    def restore(self) -> None:
        """Make the next random numbers those that followed `now`."""
        torch.set_rng_state(self.cpu)
        if self.cuda:
            torch.cuda.set_rng_state_all(list(self.cuda))


@contextmanager
def replay(state: RandomState) -> Iterator[None]:
    """Run the block with the random numbers that followed `state`, then go on as if it had not run."""
    before = RandomState.now()
    state.restore()
    try:
        yield
    finally:
        before.restore()


def run_cached_step(
    encode: Callable[[M], Sequence[Tensor]], minibatches: Sequence[M], objective: Objective, labels: Tensor | None, *, weight: float = 1.0
) -> float:
    """Return the loss of all rows together and add its gradient, times `weight`, to every parameter's `.grad`.

    `encode` takes one mini-batch (some rows, all columns) and returns one tensor of vectors per column; both sides of a pair may share a
    forward pass. `labels` are those of all rows, in the order of the mini-batches. `weight` is 1 / steps when gradients are accumulated.
    """
    states, parts = _encode_without_graph(encode, minibatches)
    columns = [torch.cat(column).requires_grad_() for column in zip(*parts, strict=True)]
    loss = objective(columns, labels)
    (loss * weight).backward()
    sizes = [len(part[0]) for part in parts]
    shares = zip(*(torch.split_with_sizes(_get_gradient(column), sizes) for column in columns), strict=True)
    for minibatch, state, share in zip(minibatches, states, shares, strict=True):
        with replay(state):
            vectors = encode(minibatch)
        torch.autograd.backward(list(vectors), list(share))
    return float(loss.detach())


def _encode_without_graph(
    encode: Callable[[M], Sequence[Tensor]], minibatches: Sequence[M]
) -> tuple[list[RandomState], list[list[Tensor]]]:
    if not minibatches:
        raise InputError("a cached step got no mini-batches, expected one or more")
    states, parts = [], []
    with torch.no_grad():
        for minibatch in minibatches:
            states.append(RandomState.now())
            parts.append([vectors.detach() for vectors in encode(minibatch)])
    # in older torch, autocast keeps weights cast under no_grad, which have no gradient, and hands them to the second pass
    torch.clear_autocast_cache()
    return states, parts


def _get_gradient(column_BD: Tensor) -> Tensor:
    return torch.zeros_like(column_BD) if column_BD.grad is None else column_BD.grad
