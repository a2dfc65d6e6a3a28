"""The rows of a word embedding that the training data can reach, as a parameter of their own.

A piece that stands in no training text gets no gradient, so without weight decay no optimiser moves its row. Leaving those rows out of the
parameter gives the same weights with less gradient to clear, clip and step over. `expanded` puts all rows together again.

Shapes: V pieces of the vocabulary, A pieces that the data uses, D dimensions.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class CompactEmbedding(nn.Module):
    """Stands in for an nn.Embedding; trains the used rows only, and still knows the others."""

    def __init__(self, whole: nn.Embedding, used: Tensor) -> None:
        super().__init__()
        self.embedding_dim, self.num_embeddings, self.padding_idx = whole.embedding_dim, whole.num_embeddings, whole.padding_idx
        self.weight = nn.Parameter(whole.weight.detach()[used].clone())
        self.whole_VD: Tensor
        self.slots_V: Tensor
        self.register_buffer("whole_VD", whole.weight.detach().clone(), persistent=False)
        slots_V = torch.full((whole.num_embeddings,), -1, dtype=torch.long)
        slots_V[used] = torch.arange(len(used))
        self.register_buffer("slots_V", slots_V.to(whole.weight.device), persistent=False)

    def forward(self, ids: Tensor) -> Tensor:
        """Return each id's row. In training every id must be one that the data uses."""
        slots = self.slots_V[ids]
        if self.training:
            return F.embedding(slots, self.weight)
        rows = self.whole_VD[ids]
        known = slots >= 0
        rows[known] = self.weight.detach()[slots[known]]
        return rows

    def whole(self) -> Tensor:
        """Return a copy of the whole table with the trained rows in their places, shape (V, D)."""
        whole_VD = self.whole_VD.clone()
        used = self.slots_V >= 0
        whole_VD[used] = self.weight.detach()[self.slots_V[used]]
        return whole_VD

    def expanded(self) -> nn.Embedding:
        """Return a whole embedding with the trained rows in their places."""
        whole_VD = self.whole()
        return nn.Embedding(self.num_embeddings, self.embedding_dim, padding_idx=self.padding_idx, _weight=whole_VD)

    def _save_to_state_dict(self, destination: dict[str, Any], prefix: str, keep_vars: bool) -> None:  # noqa: ARG002
        # saved as the embedding it stands for, so that a checkpoint does not depend on which rows were trained
        destination[prefix + "weight"] = self.whole()

    def _load_from_state_dict(self, state_dict: dict[str, Tensor], prefix: str, *_: object) -> None:
        whole_VD = state_dict[prefix + "weight"]
        with torch.no_grad():
            self.whole_VD.copy_(whole_VD)
            used = self.slots_V >= 0
            self.weight[self.slots_V[used]] = whole_VD[used].to(self.weight)
