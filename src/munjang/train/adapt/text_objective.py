"""What objectives over plain text share, and the smallest of them, unsupervised SimCSE.

A text objective guesses pieces of the text itself, so there are no labels. In: token ids of one text a row. Out: one column with two
numbers a row, the sum of its pieces' losses and their count, so that the loss is the mean over all pieces of the batch, however the batch
is cut into parts or spread over processes. Heads are made when the encoder is known (`attach`), learn with it, and are thrown away with the
objective.

`MlmHead` is dense, activation, norm, then the word embeddings themselves as the last layer. Every family has this shape under its own
names; a folder that was saved with its head (as BERT's and XLM-R's are) gives its weights, another gets fresh ones.

SimCSE (Gao et al. 2021): a sentence, encoded twice with different dropout, must find itself among the batch's others. The two vectors of a
text are a pair, so the loss is that of in-batch negatives. Dropout is all that tells the two apart, so a model without any is refused.

Shapes: B rows, M pieces that are guessed, A candidates for each of them, D width.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

import torch
import torch.nn.functional as F
from safetensors import safe_open
from torch import Tensor, nn

from munjang.errors import InputError, UsageError
from munjang.report.training_words import TrainingWord
from munjang.report.words import Message
from munjang.train.encoder import CompactEmbedding, TrainableEncoder
from munjang.train.objectives.base import Objective
from munjang.train.objectives.contrastive import InBatch, InBatchSettings
from munjang.train.settings import read_settings, refuse_unless


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


@dataclass(frozen=True)
class SimCseSettings:
    """Cosines are divided by `temperature`; the paper's is 0.05."""

    temperature: float = 0.05

    def __post_init__(self) -> None:
        refuse_unless(self.temperature > 0, "objective 'simcse': temperature must be more than 0")


class SimCse(InBatch):
    """Cross-entropy of a text's second vector against those of the batch's other texts."""

    name = "simcse"
    settings_type = SimCseSettings

    @classmethod
    def build(cls, values: Mapping[str, object], *, dimension: int, num_labels: int | None) -> SimCse:  # noqa: ARG003
        """Make the objective; it has no head."""
        made = read_settings(SimCseSettings, values, where="objective 'simcse'")
        return cls(InBatchSettings(temperature=made.temperature))

    def attach(self, encoder: TrainableEncoder, used: Sequence[int]) -> None:  # noqa: ARG002
        """Refuse a model whose two passes would be the same."""
        rates = [module.p for module in encoder.modules() if isinstance(module, nn.Dropout)]
        config: Any = encoder.backbone.config
        rates += [float(getattr(config, name, None) or 0.0) for name in ("attention_probs_dropout_prob", "attention_dropout")]
        if not any(rates):
            raise UsageError("objective 'simcse': the model has no dropout, so a text's two vectors are the same\n  set dropout to 0.1")

    def encode(self, encoder: TrainableEncoder, ids: Sequence[Sequence[Sequence[int]]]) -> list[Tensor]:
        """Return two vectors of each text."""
        if len(ids) != 1:
            raise InputError(f"objective 'simcse': found rows of {len(ids)} texts, expected one text a row")
        twice = [*ids, *ids]
        return encoder.columns(twice) if ids[0] else encoder.empty(2)

    def describe(self) -> str:
        """Say the temperature."""
        return Message(TrainingWord.OBJECTIVE_SIMCSE, temperature=self.settings.temperature)
