"""A sentence encoder that can learn: tokenizer, backbone, pooling, and the modules after it (dense, layer norm, normalisation).

`TrainableEncoder` turns token ids into vectors with a gradient, packed without padding where the family allows it. It also satisfies
`types.Encoder` (`encode`, `dimension`, `fingerprint`), so that evaluation takes it as it is. Loading is in `load_folder.py`, saving in
`save_folder.py`.

Shapes: N texts, D dimensions, T tokens, V pieces of the vocabulary, A pieces that the data uses.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from munjang.engine.modules import Activation
from munjang.errors import FolderError
from munjang.limits import LIMITS
from munjang.train.packed import pool, run_packed
from munjang.train.packing import PackedTexts, Parts, find_parts, pack
from munjang.types import Pooling, Vectors
from munjang.wording import count, name_facts, quote_place

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

    def expand(self) -> nn.Embedding:
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


MAX_LENGTH = 128
"""Tokens of one text where neither folder nor recipe says a number, as the paper trains."""


@dataclass(frozen=True)
class TextSettings:
    """How texts become tokens."""

    max_length: int
    lowercase: bool = False


class TrainableModel(nn.Module):
    """What the trainer calls on a model of either kind. A subclass sets `_parts` by `_find_parts` once its modules are there."""

    messages: tuple[str, ...] = ()
    """What is worth knowing about how it was made."""
    _parts: Parts | None = None

    @property
    def base(self) -> Any:
        """The transformer that holds the word embedding."""
        raise NotImplementedError

    @property
    def dimension(self) -> int:
        """How many numbers a text (or a pair) gets."""
        raise NotImplementedError

    @property
    def is_packed(self) -> bool:
        """Whether the family has the pass without padding."""
        return self._parts is not None

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return next(self.parameters()).device

    def tokens(self, texts: Sequence[str]) -> list[list[int]]:
        """Return the ids of texts, in the form that `columns` takes."""
        raise NotImplementedError

    def columns(self, columns: Sequence[Sequence[Sequence[int]]]) -> list[Tensor]:
        """Return what the objective reads, one tensor per column of it."""
        raise NotImplementedError

    def empty(self, columns: int) -> list[Tensor]:
        """Return what `columns` gives for no rows."""
        return [torch.zeros(0, self.dimension, device=self.device, requires_grad=True) for _ in range(columns)]

    def train_rows(self, used: Tensor) -> None:
        """Train only the word embedding's rows in `used`, and those that the model adds itself; see `CompactEmbedding`."""
        whole = self.words
        rows = torch.unique(torch.cat([used, torch.tensor(self._own_pieces(), dtype=torch.long)]))
        if isinstance(whole, nn.Embedding) and whole.weight.requires_grad and len(rows) < whole.num_embeddings:
            self.set_words(CompactEmbedding(whole, rows))

    def train_all_rows(self) -> None:
        """Put the whole word embedding back, with the trained rows in it."""
        if isinstance(self.words, CompactEmbedding):
            self.set_words(self.words.expand())

    @property
    def words(self) -> nn.Module:
        """The word embedding."""
        words: nn.Module = self.base.get_input_embeddings()
        return words

    def set_words(self, words: nn.Module) -> None:
        """Put another word embedding in."""
        self.base.set_input_embeddings(words)
        self._parts = self._find_parts()

    def _find_parts(self) -> Parts | None:
        """Return the modules of the pass without padding; None where the family has none."""
        return find_parts(self.base)

    def _own_pieces(self) -> list[int]:
        """Return pieces that stand in a batch although no text of the data has them."""
        return []


class TrainableEncoder(TrainableModel):
    """Texts or token ids → sentence vectors, with a gradient."""

    def __init__(
        self, backbone: nn.Module, tokenizer: Any, *, modes: Sequence[Pooling], text: TextSettings, tail: Sequence[nn.Module] = ()
    ) -> None:
        super().__init__()
        self.backbone = backbone
        self.tail = nn.Sequential(*tail)
        self.tokenizer, self.modes, self.text = tokenizer, tuple(modes), text
        self.prompts: dict[str, str] = {}
        self.folder: Path | None = None
        """Where the backbone was loaded from, if it was."""
        pooler = getattr(backbone, "pooler", None)
        if isinstance(pooler, nn.Module):
            # the sentence vector never passes the pooler: without this it would only cost the optimiser
            pooler.requires_grad_(False)
        self._parts = self._find_parts()

    def __repr__(self) -> str:
        made = [] if self.folder is None else [quote_place(self.folder)]
        size = f"{sum(each.numel() for each in self.parameters()):,} parameters"
        return name_facts("TrainableEncoder", [*made, count(self.dimension, "dimension"), size, f"{'+'.join(self.modes)} pooling"])

    @property
    def base(self) -> Any:
        """The backbone."""
        return self.backbone

    @property
    def dimension(self) -> int:
        """The number of dimensions of a vector."""
        for module in reversed(self.tail):
            if hasattr(module, "out_features"):
                return int(module.out_features)  # type: ignore[arg-type]
        config: Any = self.backbone.config
        return int(config.hidden_size) * len(self.modes)

    @property
    def fingerprint(self) -> str:
        """Changes whenever a weight does."""
        digest = hashlib.sha256()
        for name, tensor in self.state_dict().items():
            digest.update(name.encode() + tensor.detach().cpu().contiguous().view(torch.uint8).numpy().tobytes())
        return digest.hexdigest()

    def tokens(self, texts: Sequence[str]) -> list[list[int]]:
        """Return token ids, special ones included, cut to the maximal length."""
        if not texts:
            return []
        made = [text.lower() for text in texts] if self.text.lowercase else list(texts)
        found: list[list[int]] = self.tokenizer(
            made, truncation=True, max_length=self.text.max_length, return_attention_mask=False, return_token_type_ids=False
        )["input_ids"]
        return found

    def forward(self, ids: Sequence[Sequence[int]]) -> Tensor:
        """Return one vector per list of token ids, shape (N, D)."""
        return self.hidden_and_vectors(ids)[2]

    def hidden_and_vectors(self, ids: Sequence[Sequence[int]]) -> tuple[Tensor, PackedTexts, Tensor]:
        """Return what `hidden` returns, and one vector per list of token ids, of the same pass."""
        hidden_TD, packed = self.hidden(ids)
        vectors_ND: Tensor = self.tail(pool(hidden_TD, packed, self.modes))
        return hidden_TD, packed, vectors_ND

    def hidden(self, ids: Sequence[Sequence[int]]) -> tuple[Tensor, PackedTexts]:
        """Return the last layer's row of each token, shape (T, width), in the order of the plan that comes with it."""
        packed = pack(ids).to(self.device)
        return self._run_padded(packed, ids) if self._parts is None else run_packed(self._parts, packed), packed

    def columns(self, columns: Sequence[Sequence[Sequence[int]]]) -> list[Tensor]:
        """Return one tensor of vectors per column, all columns in one pass."""
        vectors_ND = self([ids for column in columns for ids in column])
        return list(vectors_ND.split([len(column) for column in columns]))

    def encode(self, texts: Iterable[str], /) -> Vectors:
        """Return one float32 row per text, in the caller's order, dropout off; a text that stands there twice is encoded once."""
        listed = list(texts)
        unique = list(dict.fromkeys(listed))
        if not unique:
            return np.zeros((0, self.dimension), np.float32)
        was_training = self.training
        self.eval()
        rows_UD = np.empty((len(unique), self.dimension), np.float32)
        ids = self.tokens(unique)
        with torch.no_grad():
            for batch in _plan_batches(ids, LIMITS.batch_tokens * 8):
                rows_UD[batch] = self([ids[index] for index in batch]).float().cpu().numpy()
        self.train(was_training)
        place = {text: index for index, text in enumerate(unique)}
        return np.ascontiguousarray(rows_UD[[place[text] for text in listed]])

    def _own_pieces(self) -> list[int]:
        return [] if self.is_packed else [self._padding]

    @property
    def _padding(self) -> int:
        return int(self.tokenizer.pad_token_id or 0)

    @property
    def parts(self) -> Parts | None:
        """The modules of the pass without padding."""
        return self._parts

    def _run_padded(self, packed: PackedTexts, ids: Sequence[Sequence[int]]) -> Tensor:
        """Run a family that packing does not know the usual way, and take the real tokens out."""
        longest = int(packed.lengths_N[0])
        lengths_N = packed.lengths_N[packed.order_N]
        table_NL = torch.tensor([[*row, *[self._padding] * (longest - len(row))] for row in ids], device=self.device)
        mask_NL = (torch.arange(longest, device=self.device)[None, :] < lengths_N[:, None]).long()
        hidden_NLD = self.backbone(input_ids=table_NL, attention_mask=mask_NL).last_hidden_state
        sorted_NLD = hidden_NLD[packed.order_N.argsort()]
        real_NL = torch.arange(longest, device=self.device)[None, :] < packed.lengths_N[:, None]
        hidden_TD: Tensor = sorted_NLD[real_NL]
        return hidden_TD


def _plan_batches(ids: Sequence[Sequence[int]], budget: int) -> Iterator[list[int]]:
    """Yield indices of texts of like length, up to `budget` tokens at a time."""
    batch: list[int] = []
    held = 0
    for index in sorted(range(len(ids)), key=lambda at: -len(ids[at])):
        if batch and held + len(ids[index]) > budget:
            yield batch
            batch, held = [], 0
        batch.append(index)
        held += len(ids[index])
    yield batch
