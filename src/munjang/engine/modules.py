"""What the modules of a model folder can be: a closed table, declared as data.

A module is known by the last component of its dotted type name, in every dialect of the sentence-transformers format. Nothing is imported
by name: a type that is not in the table is an error.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args

from munjang.errors import FolderError, UsageError, quote
from munjang.types import Pooling

HIDDEN_ACTIVATIONS: dict[str, Activation] = {
    "gelu": "gelu",
    "gelu_new": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
    "gelu_fast": "gelu_tanh",
    "relu": "relu",
    "tanh": "tanh",
    "silu": "silu",
    "swish": "silu",
    "swiglu": "silu",
    "geglu": "gelu",
}
"""`hidden_act` of a config.json."""

TORCH_ACTIVATIONS: dict[str, Activation] = {
    "torch.nn.modules.activation.Tanh": "tanh",
    "torch.nn.modules.activation.GELU": "gelu",
    "torch.nn.modules.activation.ReLU": "relu",
    "torch.nn.modules.activation.Sigmoid": "sigmoid",
    "torch.nn.modules.linear.Identity": "identity",
}
"""`activation_function` of a Dense module, `activation_fn` of a cross-encoder: names to recognise, never to import."""

TORCH_NAMES: dict[Activation, str] = {activation: name for name, activation in TORCH_ACTIVATIONS.items()}
"""The name under which each activation is saved."""


POOLINGS: tuple[Pooling, ...] = get_args(Pooling)
"""In the order in which several are concatenated."""


def check_pooling(pooling: str) -> None:
    """Refuse a pooling that there is not."""
    if pooling not in POOLINGS:
        raise UsageError(f"pooling={quote(str(pooling))}, expected one of {', '.join(POOLINGS)}")


Activation: TypeAlias = Literal["identity", "tanh", "gelu", "gelu_tanh", "relu", "sigmoid", "silu"]
"""What may stand between layers; see `activations.py` for the names that folders use."""


@dataclass(frozen=True)
class TransformerModule:
    """The encoder itself: where its files are and its `config.json`."""

    folder: Path
    config: dict[str, Any]
    max_length: int | None
    lowercase: bool = False


@dataclass(frozen=True)
class PoolingModule:
    """Token vectors → one vector; several modes are concatenated."""

    modes: tuple[Pooling, ...]
    include_prompt: bool = True


@dataclass(frozen=True)
class DenseModule:
    """A linear layer with an activation after pooling."""

    folder: Path
    in_features: int
    out_features: int
    bias: bool
    activation: Activation
    residual: bool = False


@dataclass(frozen=True)
class LayerNormModule:
    """A layer normalisation after pooling."""

    folder: Path
    dimension: int


@dataclass(frozen=True)
class NormalizeModule:
    """Scale each vector to length one."""


@dataclass(frozen=True)
class StaticModule:
    """One vector per token, averaged; no encoder at all."""

    folder: Path
    normalize: bool = False
    words: str = ""
    """The file with the list of words that texts are split into at spaces (`WordEmbeddings`, `BoW`); empty: there is a tokenizer."""
    counts: bool = False
    """Whether a vector counts the words of that list (`BoW`) instead of averaging their vectors."""
    max_length: int | None = None


@dataclass(frozen=True)
class LayerMixModule:
    """A weighted mean of the last layers' token vectors, instead of the last layer's alone (`WeightedLayerPooling`)."""

    folder: Path
    first_layer: int
    layers: int
    """Layers of the encoder; the embedding's output counts as layer 0."""


@dataclass(frozen=True)
class RouterModule:
    """Several ways through a model, such as one for queries and one for documents (`Router`, first called `Asym`)."""

    routes: dict[str, tuple[Module, ...]]
    default: str


Module: TypeAlias = (
    TransformerModule | PoolingModule | DenseModule | LayerNormModule | NormalizeModule | StaticModule | LayerMixModule | RouterModule
)


TASKS_KEY = "lora_adaptations"
MOST_TASKS = 64


def list_tasks(module: TransformerModule) -> tuple[str, ...]:
    """Return the names of the tasks that a model has adapters for, in the order of their stacks."""
    names = module.config.get(TASKS_KEY)
    if names is None:
        return ()
    known = isinstance(names, list) and all(isinstance(name, str) and name for name in names)
    if not known or not 1 <= len(names) <= MOST_TASKS or len(set(names)) != len(names):
        raise FolderError(f"{module.folder / 'config.json'}: {TASKS_KEY} is {quote(str(names))}, expected 1 to {MOST_TASKS} names of tasks")
    return tuple(names)
