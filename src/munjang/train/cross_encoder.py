"""A cross-encoder that can learn: pairs of token ids → logits, with a gradient.

In: a Hugging Face model for sequence classification and a tokenizer of ours. Out: `TrainableCrossEncoder`. Pairs run packed without padding
where the family allows it, the last layer for the first token alone, then the model's own head. It satisfies
`types.Scorer` (`predict`). Loading is in `load_folder.py`, saving in `cross_task.py`.

Shapes: B pairs, K labels, D width.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from munjang.errors import UsageError
from munjang.limits import LIMITS
from munjang.models.cross_encoder import FEWEST_DOCUMENT_TOKENS, fit_pair
from munjang.text.batching import plan_batches
from munjang.text.tokenizer import Tokenizer
from munjang.train.encoder import TrainableModel
from munjang.train.packed import run_packed_first
from munjang.train.packing import Parts, find_parts, pack
from munjang.train.stage import ABSENT
from munjang.types import Vectors

ScoreActivation = Literal["sigmoid", "identity"]
PairIds = tuple[Sequence[int], Sequence[int]]


class TrainableCrossEncoder(TrainableModel):
    """Pairs of texts, or of plain token ids, → one row of logits each."""

    def __init__(self, model: Any, tokenizer: Tokenizer, *, labels: Sequence[str], max_length: int, messages: Sequence[str] = ()) -> None:
        super().__init__()
        self.model = model
        self.tokenizer, self.labels, self.max_length = tokenizer, tuple(labels), max_length
        self.messages = tuple(messages)
        self.activation: ScoreActivation = "sigmoid" if len(self.labels) == 1 else "identity"
        """What turns a logit into a score; the last stage's loss decides."""
        self._head = _get_head(model)
        self._parts = self._find_parts()
        room = max_length - tokenizer.pair_special_count
        if room < FEWEST_DOCUMENT_TOKENS:
            raise UsageError(f"model: max_length of {max_length} tokens leaves no room for two texts")
        self._room = room

    @property
    def base(self) -> Any:
        """The transformer under the head."""
        return self.model.base_model

    @property
    def dimension(self) -> int:
        """How many logits a pair has."""
        return len(self.labels)

    def tokens(self, texts: Sequence[str]) -> list[list[int]]:
        """Return each text's ids without special tokens, whole; a pair is cut when it is put together."""
        return self.tokenizer.encode_plain(texts)

    def forward(self, pairs: Sequence[PairIds]) -> Tensor:
        """Return the logits of pairs of plain ids, shape (B, K)."""
        wrapped = [self.tokenizer.wrap_pair(*fit_pair(first, second, self._room)) for first, second in pairs]
        ids, types = [row for row, _ in wrapped], [row for _, row in wrapped]
        if self._parts is None or self._head is None:
            return self._run_padded(ids, types)
        packed = pack(ids, types).to(self.device)
        logits_BK: Tensor = self._head(run_packed_first(self._parts, packed))
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
        return super().empty(columns - 1)

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
            for batch in plan_batches(lengths, budget=LIMITS.batch_tokens * 8) if ids else []:
                made[batch] = self([ids[index] for index in batch]).float().cpu().numpy()
        self.train(was_training)
        return made

    def predict(self, pairs: Sequence[tuple[str, str]], /) -> Vectors:
        """Return one score per pair, shape (n,), or one row of label scores per pair, shape (n, K)."""
        logits = self.logits(pairs)
        scores: Vectors = 0.5 * (1 + np.tanh(0.5 * logits)) if self.activation == "sigmoid" else logits
        return scores[:, 0] if self.dimension == 1 else scores

    def _find_parts(self) -> Parts | None:
        return find_parts(self.base) if self._head else None

    def _own_pieces(self) -> list[int]:
        return [*self.tokenizer.wrap_pair([], [])[0], self.tokenizer.pad_id]

    def _run_padded(self, ids: Sequence[Sequence[int]], types: Sequence[Sequence[int]]) -> Tensor:
        """Run a family that packing does not know the usual way."""
        longest = max(len(row) for row in ids)

        def table(rows: Sequence[Sequence[int]], filler: int) -> Tensor:
            return torch.tensor([[*row, *[filler] * (longest - len(row))] for row in rows], device=self.device)

        inputs = {"input_ids": table(ids, self.tokenizer.pad_id), "attention_mask": table([[1] * len(row) for row in ids], 0)}
        if getattr(self.model.config, "type_vocab_size", 0) > 1:
            inputs["token_type_ids"] = table(types, 0)
        logits_BK: Tensor = self.model(**inputs).logits
        return logits_BK


def _get_head(model: Any) -> Callable[[Tensor], Tensor] | None:
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
