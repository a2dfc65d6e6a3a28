"""A cross-encoder that can learn: pairs of token ids → logits, with a gradient.

In: a Hugging Face model for sequence classification and a tokenizer of ours. Out: `TrainableCrossEncoder`. Pairs run packed without padding
where the family allows it, the last layer for the first token alone, then the model's own head. It has the parts of `TrainableEncoder` that
the trainer calls, and satisfies `types.Scorer` (`predict`). Loading is in `cross_load.py`, saving in `cross_finish.py`.

Shapes: B pairs, K labels, D width.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor, nn

from munjang.errors import UsageError
from munjang.limits import LIMITS
from munjang.models.cross_encoder import FEWEST_DOCUMENT_TOKENS, fitted_pair
from munjang.text.batching import plan_batches
from munjang.text.tokenizer import Tokenizer
from munjang.train.compact import CompactEmbedding
from munjang.train.packed import packed_first
from munjang.train.packed_parts import find_parts
from munjang.train.packing import pack
from munjang.train.table import ABSENT
from munjang.types import Vectors

ScoreActivation = Literal["sigmoid", "identity"]
PairIds = tuple[Sequence[int], Sequence[int]]


class TrainableCrossEncoder(nn.Module):
    """Pairs of texts, or of plain token ids, → one row of logits each."""

    def __init__(self, model: Any, tokenizer: Tokenizer, *, labels: Sequence[str], max_length: int, said: Sequence[str] = ()) -> None:
        super().__init__()
        self.model = model
        self.tokenizer, self.labels, self.max_length = tokenizer, tuple(labels), max_length
        self.said = tuple(said)
        """What is worth knowing about where the head came from."""
        self.activation: ScoreActivation = "sigmoid" if len(self.labels) == 1 else "identity"
        """What turns a logit into a score; the last stage's loss decides."""
        self._head = _head_of(model)
        self._parts = find_parts(model.base_model) if self._head else None
        room = max_length - tokenizer.pair_special_count
        if room < FEWEST_DOCUMENT_TOKENS:
            raise UsageError(f"model: max_length of {max_length} tokens leaves no room for two texts")
        self._room = room

    @property
    def dimension(self) -> int:
        """How many logits a pair has."""
        return len(self.labels)

    @property
    def is_packed(self) -> bool:
        """Whether the family has the pass without padding."""
        return self._parts is not None

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return next(self.parameters()).device

    def tokens(self, texts: Sequence[str]) -> list[list[int]]:
        """Return each text's ids without special tokens, whole; a pair is cut when it is put together."""
        return self.tokenizer.encode_plain(texts)

    def forward(self, pairs: Sequence[PairIds]) -> Tensor:
        """Return the logits of pairs of plain ids, shape (B, K)."""
        wrapped = [self.tokenizer.wrap_pair(*fitted_pair(first, second, self._room)) for first, second in pairs]
        ids, types = [row for row, _ in wrapped], [row for _, row in wrapped]
        if self._parts is None or self._head is None:
            return self._padded(ids, types)
        packed = pack(ids, types).to(self.device)
        logits_BK: Tensor = self._head(packed_first(self._parts, packed))
        return logits_BK[packed.order_N]

    def columns(self, columns: Sequence[Sequence[Sequence[int]]]) -> list[Tensor]:
        """Return the logits of the first column's texts with each other column's, (B, K) a column; 0 where a document is ABSENT."""
        queries, documents = columns[0], columns[1:]
        present = [[row for row, ids in enumerate(column) if ids is not ABSENT] for column in documents]
        pairs = [(queries[row], column[row]) for column, rows in zip(documents, present, strict=True) for row in rows]
        parts = self(pairs).split([len(rows) for rows in present])
        made = []
        for rows, part in zip(present, parts, strict=True):
            whole = len(rows) == len(queries)
            made.append(
                part if whole else part.new_zeros(len(queries), self.dimension).index_copy(0, torch.tensor(rows, device=part.device), part)
            )
        return made

    def empty(self, columns: int) -> list[Tensor]:
        """Return what `columns` gives for no rows."""
        return [torch.zeros(0, self.dimension, device=self.device, requires_grad=True) for _ in range(columns - 1)]

    def logits(self, pairs: Sequence[tuple[str, str]]) -> Vectors:
        """Return the logits of pairs of texts, dropout off, shape (n, K)."""
        unique = list(dict.fromkeys(text for pair in pairs for text in pair))
        plain = dict(zip(unique, self.tokens(unique), strict=True))
        ids = [(plain[first], plain[second]) for first, second in pairs]
        made = np.zeros((len(pairs), self.dimension), np.float32)
        was_training = self.training
        self.eval()
        with torch.no_grad():
            lengths = [min(len(first) + len(second), self._room) + 1 for first, second in ids]
            for batch in plan_batches(lengths, budget=LIMITS.batch_tokens * 4) if ids else []:
                made[batch] = self([ids[index] for index in batch]).float().cpu().numpy()
        self.train(was_training)
        return made

    def predict(self, pairs: Sequence[tuple[str, str]], /) -> Vectors:
        """Return one score per pair, shape (n,), or one row of label scores per pair, shape (n, K)."""
        logits = self.logits(pairs)
        scores: Vectors = 0.5 * (1 + np.tanh(0.5 * logits)) if self.activation == "sigmoid" else logits
        return scores[:, 0] if self.dimension == 1 else scores

    def train_rows(self, used: Tensor) -> None:
        """Train only the word embedding's rows in `used` and those of special tokens; see `compact.py`."""
        special = torch.tensor([*self.tokenizer.wrap_pair([], [])[0], self.tokenizer.pad_id])
        rows = torch.unique(torch.cat([used, special]))
        whole = self.model.base_model.get_input_embeddings()
        if isinstance(whole, nn.Embedding) and whole.weight.requires_grad and len(rows) < whole.num_embeddings:
            self._set_words(CompactEmbedding(whole, rows))

    def train_all_rows(self) -> None:
        """Put the whole word embedding back, with the trained rows in it."""
        words = self.model.base_model.get_input_embeddings()
        if isinstance(words, CompactEmbedding):
            self._set_words(words.expanded())

    def _set_words(self, words: nn.Module) -> None:
        self.model.base_model.set_input_embeddings(words)
        self._parts = find_parts(self.model.base_model) if self._head else None

    def _padded(self, ids: Sequence[Sequence[int]], types: Sequence[Sequence[int]]) -> Tensor:
        """Run a family that packing does not know the usual way."""
        longest = max(len(row) for row in ids)

        def table(rows: Sequence[Sequence[int]], filler: int) -> Tensor:
            return torch.tensor([[*row, *[filler] * (longest - len(row))] for row in rows], device=self.device)

        inputs = {"input_ids": table(ids, self.tokenizer.pad_id), "attention_mask": table([[1] * len(row) for row in ids], 0)}
        if getattr(self.model.config, "type_vocab_size", 0) > 1:
            inputs["token_type_ids"] = table(types, 0)
        logits_BK: Tensor = self.model(**inputs).logits
        return logits_BK


def _head_of(model: Any) -> Callable[[Tensor], Tensor] | None:
    """Return the head as a function of the first tokens' states (B, D); None where it is not one that reads those alone."""
    name = type(model).__name__
    if name in ("ElectraForSequenceClassification", "MPNetForSequenceClassification", *_LIKE_ROBERTA):
        return lambda first_BD: model.classifier(first_BD[:, None])
    if name == "BertForSequenceClassification":
        return lambda first_BD: model.classifier(model.dropout(model.bert.pooler(first_BD[:, None])))
    if name == "DistilBertForSequenceClassification":
        return lambda first_BD: model.classifier(model.dropout(model.pre_classifier(first_BD).relu()))
    return None


_LIKE_ROBERTA = tuple(f"{family}ForSequenceClassification" for family in ("Roberta", "XLMRoberta", "Camembert"))
