"""A sentence encoder that can learn: tokenizer, backbone, pooling, and what stands after it.

In: a sentence-transformers folder, a plain Hugging Face folder, or a backbone and tokenizer made from scratch. Out: `TrainableEncoder`,
which turns token ids into vectors with a gradient, packed without padding where the family allows it. It also satisfies `types.Encoder`
(`encode`, `dimension`, `fingerprint`), so that evaluation takes it as it is. Saving is in `finish.py`.

Shapes: N texts, D dimensions, T tokens.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from munjang.engine.modules import Pooling
from munjang.limits import LIMITS
from munjang.train.compact import CompactEmbedding
from munjang.train.packed import packed_hidden
from munjang.train.packed_parts import Parts, find_parts
from munjang.train.packing import PackedTexts, pack
from munjang.train.pooling import pool
from munjang.types import Vectors
from munjang.wording import count, name_facts, quote_place

MAX_LENGTH = 128
"""Tokens of one text where neither folder nor recipe says a number, as the paper trains."""


@dataclass(frozen=True)
class TextSettings:
    """How texts become tokens."""

    max_length: int
    lowercase: bool = False


class TrainableEncoder(nn.Module):
    """Texts or token ids → sentence vectors, with a gradient."""

    def __init__(
        self, backbone: nn.Module, tokenizer: Any, *, modes: Sequence[Pooling], text: TextSettings, tail: Sequence[nn.Module] = ()
    ) -> None:
        super().__init__()
        self.backbone = backbone
        self.tail = nn.Sequential(*tail)
        self.tokenizer, self.modes, self.text = tokenizer, tuple(modes), text
        self.prompts: dict[str, str] = {}
        self.said: tuple[str, ...] = ()
        """What is worth knowing about how it was made."""
        self.folder: Path | None = None
        """Where the backbone was loaded from, if it was."""
        pooler = getattr(backbone, "pooler", None)
        if isinstance(pooler, nn.Module):
            # the sentence vector never passes the pooler: without this it would only cost the optimiser
            pooler.requires_grad_(False)
        self._parts = find_parts(backbone)

    def __repr__(self) -> str:
        made = [] if self.folder is None else [quote_place(self.folder)]
        size = f"{sum(each.numel() for each in self.parameters()):,} parameters"
        return name_facts("TrainableEncoder", [*made, count(self.dimension, "dimension"), size, f"{'+'.join(self.modes)} pooling"])

    @property
    def dimension(self) -> int:
        """How many numbers one vector has."""
        for module in reversed(self.tail):
            if hasattr(module, "out_features"):
                return int(module.out_features)  # type: ignore[arg-type]
        config: Any = self.backbone.config
        return int(config.hidden_size) * len(self.modes)

    @property
    def is_packed(self) -> bool:
        """Whether the family has the pass without padding."""
        return self._parts is not None

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
        hidden_TD, packed = self.hidden(ids)
        vectors_ND: Tensor = self.tail(pool(hidden_TD, packed, self.modes))
        return vectors_ND

    def hidden(self, ids: Sequence[Sequence[int]]) -> tuple[Tensor, PackedTexts]:
        """Return the last layer's row of each token, shape (T, width), in the order of the plan that comes with it."""
        packed = pack(ids).to(self.device)
        return self._padded_hidden(packed, ids) if self._parts is None else packed_hidden(self._parts, packed), packed

    def columns(self, columns: Sequence[Sequence[Sequence[int]]]) -> list[Tensor]:
        """Return one tensor of vectors per column, all columns in one pass."""
        vectors_ND = self([ids for column in columns for ids in column])
        return list(vectors_ND.split([len(column) for column in columns]))

    def empty(self, columns: int) -> list[Tensor]:
        """Return what `columns` gives for no rows."""
        return [torch.zeros(0, self.dimension, device=self.device, requires_grad=True) for _ in range(columns)]

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
            for batch in _by_tokens(ids, LIMITS.batch_tokens * 4):
                rows_UD[batch] = self([ids[index] for index in batch]).float().cpu().numpy()
        self.train(was_training)
        place = {text: index for index, text in enumerate(unique)}
        return np.ascontiguousarray(rows_UD[[place[text] for text in listed]])

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return next(self.parameters()).device

    def train_rows(self, used: Tensor) -> None:
        """Train only the word embedding's rows in `used`, and padding's where there is padding; see `compact.py`."""
        whole = self.words
        rows = used if self._parts is not None else torch.unique(torch.cat([used, torch.tensor([self._padding])]))
        if isinstance(whole, nn.Embedding) and whole.weight.requires_grad and len(rows) < whole.num_embeddings:
            self.set_words(CompactEmbedding(whole, rows))

    def train_all_rows(self) -> None:
        """Put the whole word embedding back, with the trained rows in it."""
        if isinstance(self.words, CompactEmbedding):
            self.set_words(self.words.expanded())

    @property
    def words(self) -> nn.Module:
        """The word embedding."""
        backbone: Any = self.backbone
        words: nn.Module = backbone.get_input_embeddings()
        return words

    @property
    def _padding(self) -> int:
        return int(self.tokenizer.pad_token_id or 0)

    @property
    def parts(self) -> Parts | None:
        """The modules of the pass without padding."""
        return self._parts

    def set_words(self, words: nn.Module) -> None:
        """Put another word embedding in."""
        backbone: Any = self.backbone
        backbone.set_input_embeddings(words)
        self._parts = find_parts(self.backbone)

    def _padded_hidden(self, packed: PackedTexts, ids: Sequence[Sequence[int]]) -> Tensor:
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


def _by_tokens(ids: Sequence[Sequence[int]], budget: int) -> Iterator[list[int]]:
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
