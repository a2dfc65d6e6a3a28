"""Two vectors a row → one distance or one similarity a row, differentiable, for objectives to share.

Every function takes tensors of shape (B, D) and returns shape (B,); `all_pairs` returns (B, C). A zero vector has cosine 0, not NaN.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

import torch
import torch.nn.functional as F
from torch import Tensor

Distance: TypeAlias = Literal["cosine", "euclidean", "manhattan"]
Similarity: TypeAlias = Literal["cosine", "dot"]


def cosine(u_BD: Tensor, v_BD: Tensor) -> Tensor:
    """Return the cosine of each row's two vectors."""
    return torch.cosine_similarity(u_BD, v_BD, dim=1)


def distance(kind: Distance, u_BD: Tensor, v_BD: Tensor, *, epsilon: float = 0.0) -> Tensor:
    """Return each row's distance; `epsilon` is added to the differences, which keeps the gradient alive where u = v."""
    if kind == "cosine":
        return 1 - cosine(u_BD, v_BD)
    norm_B: Tensor = torch.linalg.vector_norm(u_BD - v_BD + epsilon, ord=2 if kind == "euclidean" else 1, dim=1)
    return norm_B


def similarity(kind: Similarity, u_BD: Tensor, v_BD: Tensor) -> Tensor:
    """Return each row's similarity."""
    return cosine(u_BD, v_BD) if kind == "cosine" else (u_BD * v_BD).sum(dim=1)


def all_pairs(kind: Similarity, queries_BD: Tensor, candidates_CD: Tensor) -> Tensor:
    """Return the similarity of every query with every candidate, shape (B, C)."""
    if kind == "cosine":
        queries_BD, candidates_CD = F.normalize(queries_BD, dim=1), F.normalize(candidates_CD, dim=1)
    return queries_BD @ candidates_CD.T
