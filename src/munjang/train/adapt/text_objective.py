"""An objective over plain text: it guesses pieces of the text itself, so there are no labels.

In: token ids of one text a row. Out: one column with two numbers a row, the sum of its pieces' losses and their count, so that the loss is
the mean over all pieces of the batch, however the batch is cut into parts or spread over processes. Heads are made when the encoder is
known (`attach`), learn with it, and are thrown away with the objective.

`MlmHead` is dense, activation, norm, then the word embeddings themselves as the last layer. Every family has this shape under its own
names; a folder that was saved with its head (as BERT's and XLM-R's are) gives its weights, another gets fresh ones.

Shapes: B rows, M pieces that are guessed, A candidates for each of them, D width.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

import torch
import torch.nn.functional as F
from safetensors import safe_open
from torch import Tensor, nn

from munjang.train.encoder import CompactEmbedding, TrainableEncoder
from munjang.train.objectives.base import Objective


def get_hidden_width(encoder: TrainableEncoder) -> int:
    """Return the width of hidden rows."""
    config: Any = encoder.backbone.config
    return int(config.hidden_size)


def get_embedding_width(encoder: TrainableEncoder) -> int:
    """Return the width of word embeddings."""
    return int(encoder.words.embedding_dim)  # type: ignore[arg-type]


def get_vocabulary_size(encoder: TrainableEncoder) -> int:
    """Return how many rows the word embedding has."""
    words = encoder.words
    return int(words.num_embeddings)  # type: ignore[arg-type]


_NAMES = (
    ("cls.predictions.transform.dense", "cls.predictions.transform.LayerNorm", "cls.predictions.bias"),
    ("lm_head.dense", "lm_head.layer_norm", "lm_head.bias"),
    ("vocab_transform", "vocab_layer_norm", "vocab_projector.bias"),
    ("generator_predictions.dense", "generator_predictions.LayerNorm", "generator_lm_head.bias"),
)
"""Where BERT; RoBERTa, XLM-R, CamemBERT and MPNet; DistilBERT; ELECTRA keep dense, norm and bias."""


class MlmHead(nn.Module):
    """Turns hidden rows into guesses that are compared with word embeddings."""

    def __init__(self, encoder: TrainableEncoder, pieces: int) -> None:
        super().__init__()
        config: Any = encoder.backbone.config
        width = get_embedding_width(encoder)
        self.dense = nn.Linear(get_hidden_width(encoder), width)
        self.norm = nn.LayerNorm(width, eps=float(getattr(config, "layer_norm_eps", 1e-12)))
        self.bias_V = nn.Parameter(torch.zeros(pieces))
        self.activation = get_activation(config)
        nn.init.normal_(self.dense.weight, std=float(getattr(config, "initializer_range", 0.02)))
        nn.init.zeros_(self.dense.bias)
        self.is_fresh = encoder.folder is None or not self._load(encoder.folder / "model.safetensors")

    def forward(self, hidden_MD: Tensor) -> Tensor:
        """Return the guesses."""
        guesses: Tensor = self.norm(self.activation(self.dense(hidden_MD)))
        return guesses

    def _load(self, path: Path) -> bool:
        """Take the head that was saved with the model; say whether there was one."""
        if not path.is_file():
            return False
        with safe_open(path, framework="pt") as held:
            there = set(held.keys())
            for dense, norm, bias in _NAMES:
                wanted = (f"{dense}.weight", f"{dense}.bias", f"{norm}.weight", f"{norm}.bias", bias)
                if not there.issuperset(wanted):
                    continue
                found = [held.get_tensor(name).float() for name in wanted]
                own = (self.dense.weight, self.dense.bias, self.norm.weight, self.norm.bias)
                if any(mine.shape != theirs.shape for mine, theirs in zip(own, found, strict=False)):
                    return False
                with torch.no_grad():
                    for mine, theirs in zip(own, found, strict=False):
                        mine.copy_(theirs)
                    # a vocabulary that was extended has more pieces than the saved bias
                    count = min(len(self.bias_V), len(found[-1]))
                    self.bias_V[:count] = found[-1][:count]
                return True
        return False


def get_activation(config: Any) -> nn.Module:
    """Return the activation that a configuration names."""
    from transformers.activations import ACT2FN

    made: nn.Module = ACT2FN[str(getattr(config, "hidden_act", None) or getattr(config, "activation", "gelu"))]
    return made


Candidates: TypeAlias = Literal["data", "all"]
"""Which pieces a guess chooses among: those of the data, so that the others keep their embeddings, or the whole vocabulary as BERT does."""


@dataclass(frozen=True)
class Guesses:
    """A row in the space of word embeddings for each piece that is guessed, the piece it must name, and the batch's row it belongs to."""

    guesses_MD: Tensor
    targets_M: Tensor
    rows_M: Tensor


class TextObjective(Objective):
    """The mean loss of guessed pieces."""

    columns_needed = 1
    compares_rows = True
    least_rows = 1

    def __init__(self, candidates: Candidates) -> None:
        super().__init__()
        self._candidates = candidates
        self.candidates_A: Tensor
        self.places_V: Tensor
        self.register_buffer("candidates_A", torch.empty(0, dtype=torch.long), persistent=False)
        self.register_buffer("places_V", torch.empty(0, dtype=torch.long), persistent=False)

    def attach(self, encoder: TrainableEncoder, used: Sequence[int]) -> None:
        """Take the candidates; a subclass makes its head."""
        count = get_vocabulary_size(encoder)
        chosen = range(count) if self._candidates == "all" else sorted({*used, *self.own_pieces(encoder)})
        self.candidates_A = torch.tensor(list(chosen), dtype=torch.long)
        self.places_V = torch.full((count,), -1, dtype=torch.long)
        self.places_V[self.candidates_A] = torch.arange(len(self.candidates_A))

    def own_pieces(self, encoder: TrainableEncoder) -> Sequence[int]:  # noqa: ARG002
        """Return pieces that it puts into the text itself."""
        return ()

    def pieces(self, used: Sequence[int]) -> Sequence[int] | None:  # noqa: ARG002
        """Return the candidates, all of which learn."""
        return None if self._candidates == "all" else self.candidates_A.tolist()

    def loss(self, columns: list[Tensor], labels: Tensor) -> Tensor:  # noqa: ARG002
        """Return the mean over the batch's guessed pieces; 0 where there are none."""
        sums_and_counts_B2 = columns[0]
        total_2 = sums_and_counts_B2.sum(dim=0)
        return total_2[0] / total_2[1].clamp(min=1)

    def score_guesses(self, encoder: TrainableEncoder, guesses: Guesses, *, bias_V: Tensor, rows: int) -> Tensor:
        """Return each row's sum and count of losses: the guess's product with every candidate's embedding must name the target."""
        logits_MA = F.linear(guesses.guesses_MD, get_word_rows(encoder, self.candidates_A), bias_V[self.candidates_A])
        losses_M = F.cross_entropy(logits_MA.float(), self.places_V[guesses.targets_M], reduction="none")
        sums_B = losses_M.new_zeros(rows).index_add(0, guesses.rows_M, losses_M)
        counts_B = torch.bincount(guesses.rows_M, minlength=rows).to(sums_B.dtype)
        return torch.stack([sums_B, counts_B], dim=1)


def get_word_rows(encoder: TrainableEncoder, ids_A: Tensor) -> Tensor:
    """Return the embeddings of some pieces, tied: their gradient is that of the encoder's own table."""
    words = encoder.words
    if isinstance(words, CompactEmbedding):
        return words.weight[words.slots_V[ids_A]]
    weight_VD: Tensor = words.weight  # type: ignore[assignment]
    return weight_VD if len(ids_A) == len(weight_VD) else weight_VD[ids_A]


def make_no_rows(encoder: TrainableEncoder) -> list[Tensor]:
    """Return the column of a process that got no rows."""
    return [torch.zeros(0, 2, device=encoder.device, requires_grad=True)]
