"""What may stand after pooling: a dense layer, a layer norm, normalisation; as torch modules that know their description.

Each module can say what it is in the words of `engine.modules`, so that a folder is written from what was trained.
"""

from __future__ import annotations

from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from munjang.engine.modules import Activation

_ACTIVATIONS: dict[Activation, nn.Module] = {
    "identity": nn.Identity(),
    "tanh": nn.Tanh(),
    "gelu": nn.GELU(),
    "gelu_tanh": nn.GELU(approximate="tanh"),
    "relu": nn.ReLU(),
    "sigmoid": nn.Sigmoid(),
}


class Dense(nn.Module):
    """activation(W x + b), with x added, or its projection, where the folder says residual."""

    def __init__(
        self, in_features: int, out_features: int, *, bias: bool = True, activation: Activation = "tanh", residual: bool = False
    ) -> None:
        super().__init__()
        self.linear = nn.Linear(in_features, out_features, bias=bias)
        self.in_features, self.out_features = in_features, out_features
        self.activation, self.residual_used = activation, residual
        self.residual = nn.Linear(in_features, out_features, bias=False) if residual and in_features != out_features else nn.Identity()

    def forward(self, vectors_ND: Tensor) -> Tensor:
        """Return the vectors after the layer."""
        made: Tensor = _ACTIVATIONS[self.activation](self.linear(vectors_ND))
        return made + self.residual(vectors_ND) if self.residual_used else made


class Normalize(nn.Module):
    """Scale each vector to length one."""

    def forward(self, vectors_ND: Tensor) -> Tensor:
        """Return vectors of length one."""
        return F.normalize(vectors_ND, dim=-1)


class TailNorm(nn.LayerNorm):
    """A layer normalisation of the sentence vector."""


def load_tensors(module: nn.Module, folder: Path) -> None:
    """Fill a tail module from its folder's safetensors file; names that do not fit are refused."""
    from safetensors.torch import load_file

    from munjang.errors import FolderError

    path = folder / "model.safetensors"
    if not path.is_file():
        raise FolderError(f"{path}: missing, expected the weights of a {type(module).__name__} module")
    found: dict[str, Tensor] = load_file(path)
    if isinstance(module, TailNorm):
        found = {name.removeprefix("norm."): tensor for name, tensor in found.items()}
    try:
        module.load_state_dict({name: tensor.to(torch.float32) for name, tensor in found.items()})
    except RuntimeError as error:
        raise FolderError(f"{path}: the weights do not fit the module: {str(error).splitlines()[-1].strip()}") from None
