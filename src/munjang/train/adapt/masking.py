"""Which pieces of a text are hidden, and what stands in their place: BERT's 80 / 10 / 10.

In: all pieces of a batch end to end. Out: the pieces that the model sees, and which of them it must guess. Of the chosen, 80 % become the
mask, 10 % a random piece, 10 % stay. Special tokens are never chosen. With whole words the draw is per word: all of its pieces or none.

Shapes: T pieces of all texts, A pieces that random ones are drawn from.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

MASKED, RANDOM = 0.8, 0.1


@dataclass(frozen=True)
class Masked:
    """What the model sees, and where it must guess."""

    ids_T: Tensor
    chosen_T: Tensor


def mask_pieces(ids_T: Tensor, *, special_T: Tensor, share: float, mask: int, drawn_A: Tensor, starts_T: Tensor | None = None) -> Masked:
    """Hide `share` of the pieces; `starts_T` says which pieces begin a word, where words are hidden whole."""
    if starts_T is None:
        chance_T = torch.rand(len(ids_T), device=ids_T.device)
    else:
        word_T = (starts_T | special_T).long().cumsum(0)
        chance_T = torch.rand(int(word_T[-1]) + 1, device=ids_T.device)[word_T]
    chosen_T = (chance_T < share) & ~special_T
    kind_T = torch.rand(len(ids_T), device=ids_T.device)
    random_T = drawn_A[torch.randint(len(drawn_A), (len(ids_T),), device=ids_T.device)]
    seen_T = torch.where(chosen_T & (kind_T < MASKED), torch.full_like(ids_T, mask), ids_T)
    seen_T = torch.where(chosen_T & (kind_T >= MASKED) & (kind_T < MASKED + RANDOM), random_T, seen_T)
    return Masked(seen_T, chosen_T)


def word_starts(tokenizer: Any, count: int) -> Tensor:
    """Return for each piece of a vocabulary of `count` whether it begins a word, by the mark of its kind: ##, ▁ or Ġ."""
    vocabulary: dict[str, int] = tokenizer.get_vocab()
    starts_V = torch.ones(count, dtype=torch.bool)
    marked = [mark for mark in ("▁", "Ġ") if sum(piece.startswith(mark) for piece in vocabulary) > 1]
    for piece, number in vocabulary.items():
        if number < count:
            starts_V[number] = piece.startswith(marked[0]) if marked else not piece.startswith("##")
    return starts_V
