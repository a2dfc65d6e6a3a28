"""Takes named tensors and settings out of a transformer's folder and checks them on the way.

What it leaves to others: which parts a family has (`backbone.py`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from munjang.engine.adapters import AdapterReader, LowRank
from munjang.engine.families import FamilyNames, NormKind
from munjang.engine.modules import HIDDEN_ACTIVATIONS, Activation, TransformerModule
from munjang.engine.weights import Weights
from munjang.errors import FolderError, quote
from munjang.types import Floats

LARGEST_COUNT = 10_000
LARGEST_SIZE = 10_000_000


@dataclass(frozen=True)
class Linear:
    """y = x @ w + b."""

    w: Floats
    b: Floats
    low: LowRank | None = None
    """What the tasks of a model with adapters add to it."""

    @property
    def bias(self) -> Floats | None:
        """The bias, or None where it adds nothing."""
        return self.b if self.b.any() else None


@dataclass(frozen=True)
class Norm:
    """A normalisation of rows; `kind` says which."""

    w: Floats
    b: Floats
    epsilon: float
    kind: NormKind = "layer"


class TensorReader:
    """One folder's tensors and settings, under the names of one family."""

    def __init__(self, module: TransformerModule, weights: Weights, family: str, names: FamilyNames) -> None:
        self.where, self.config_file = module.folder, module.folder / "config.json"
        self.config: dict[str, Any] = module.config
        self.weights, self.family, self.names = weights, family, names
        self.prefix = next((prefix for prefix in names.prefixes if prefix + names.words in weights), "")
        self.epsilon = self.small(names.epsilon_key, default=names.epsilon)
        self.adapters = AdapterReader(module, weights)

    def has(self, name: str) -> bool:
        """Say whether the folder holds a tensor."""
        return self.prefix + name in self.weights

    def table(self, name: str, width: int | None = None) -> Floats:
        """Return a tensor of rows."""
        table = self.tensor(name)
        if table.ndim != 2 or 0 in table.shape or (width is not None and table.shape[1] != width):
            raise FolderError(f"{self.where}: {name} has shape {table.shape}, expected rows of {'one' if width is None else width} width")
        return table

    def linear(self, name: str, *, bias: bool | str = True) -> Linear:
        """Return a linear layer; `bias` says whether it has one, or which setting says so."""
        w = self.tensor(name + ".weight")
        b = self.bias(name, len(w) if w.ndim else 0, bias)
        if w.ndim != 2 or 0 in w.shape or b.shape != (w.shape[0],):
            raise FolderError(f"{self.where}: {name} has shapes {w.shape} and {b.shape}, which do not fit each other")
        return Linear(w.T, b, self.adapters.read(self.prefix + name, w.shape))

    def split(self, name: str, parts: int | tuple[int, ...], *, bias: bool | str = True) -> list[Linear]:
        """Return the linear layers that one matrix holds one below the other: so many alike, or of these widths."""
        both = self.linear(name, bias=bias)
        total = both.w.shape[1]
        widths = (total // parts,) * parts if isinstance(parts, int) else parts
        if sum(widths) != total or 0 in widths:
            raise FolderError(f"{self.where}: {name} has {total} rows, which do not make parts of {', '.join(map(str, widths))}")
        stops = np.cumsum(widths)
        spans = [(int(stop) - width, int(stop)) for stop, width in zip(stops, widths, strict=True)]
        return [Linear(both.w[:, a:b], both.b[a:b], both.low and both.low.columns(a, b)) for a, b in spans]

    def low_rank_rows(self, name: str, table: Floats | None) -> LowRank | None:
        """Return what the tasks of a model with adapters add to the rows of a table."""
        if table is None:
            return None
        return self.adapters.read(self.prefix + name.removesuffix(".weight"), (table.shape[0], table.shape[1]), table=True)

    def norm(self, name: str, width: int) -> Norm:
        """Return a norm of rows of `width`."""
        kind = self.names.norm_kind
        w = self.tensor(name + ".weight")
        b = self.bias(name, width, self.names.norm_bias if kind == "layer" else False)
        if w.shape != (width,) or b.shape != (width,):
            raise FolderError(f"{self.where}: {name} has shapes {w.shape} and {b.shape}, expected ({width},)")
        return Norm(w, b, self.epsilon, kind)

    def bias(self, name: str, width: int, bias: bool | str) -> Floats:
        """Return the bias that stands beside a weight, or zeros where there must be none."""
        if self.flag(bias) if isinstance(bias, str) else bias:
            return self.tensor(name + ".bias")
        if self.has(name + ".bias"):
            said = f"{bias} is false" if isinstance(bias, str) else f"a {self.family} encoder has none there"
            raise FolderError(f"{self.where}: the weights hold {quote(name + '.bias')}, but {said}")
        return np.zeros(width, np.float32)

    def tensor(self, name: str) -> Floats:
        """Return a tensor of floating-point numbers."""
        try:
            return self.weights.floats(self.prefix + name)
        except KeyError:
            old = name.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta")
            if self.prefix + old in self.weights:
                return self.weights.floats(self.prefix + old)
            raise FolderError(
                f"{self.where}: the weights have no tensor {self.prefix + name!r}; this is not a {self.family} encoder"
            ) from None

    def flag(self, key: str, *, default: bool = False) -> bool:
        """Return a setting that is true or false."""
        value = self.config.get(key)
        if value is None:
            return default
        if not isinstance(value, bool):
            raise FolderError(f"{self.config_file}: {key} is {quote(str(value))}, expected true or false")
        return value

    def whole(self, key: str, *, default: int | None = None) -> int:
        """Return a setting that counts something."""
        value = self.config.get(key, default)
        if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < LARGEST_COUNT:
            raise FolderError(f"{self.config_file}: {key} is {quote(str(value))}, expected a whole number")
        return value

    def size(self, key: str, *, default: int | None = None) -> int:
        """Return a setting that is a positive length."""
        found = self.config.get(key)
        value = default if found is None else found
        if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= LARGEST_SIZE:
            raise FolderError(f"{self.config_file}: {key} is {quote(str(value))}, expected a positive whole number")
        return value

    def small(self, key: str, *, default: float) -> float:
        """Return a setting between 0 and 1."""
        found = self.config.get(key)
        value = default if found is None else found
        if not isinstance(value, int | float) or not 0 < value < 1:
            raise FolderError(f"{self.config_file}: {key} is {quote(str(value))}, expected a small positive number")
        return float(value)

    def activation(self, key: str) -> Activation:
        """Return the activation that a setting names."""
        name = self.config.get(key)
        if not isinstance(name, str) or name not in HIDDEN_ACTIVATIONS:
            raise FolderError(f"{self.config_file}: activation {quote(str(name))} is unknown; known are {', '.join(HIDDEN_ACTIVATIONS)}")
        return HIDDEN_ACTIVATIONS[name]
