"""Unsupervised SimCSE (Gao et al. 2021): a sentence, encoded twice with different dropout, must find itself among the batch's others.

The two vectors of a text are a pair, so the loss is that of in-batch negatives (sentence-transformers' MultipleNegativesRankingLoss on
duplicated texts). Dropout is all that tells the two apart, so a model without any is refused.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn

from munjang.errors import InputError, UsageError
from munjang.report.training_words import TrainingWord
from munjang.report.words import Message
from munjang.train.encoder import TrainableEncoder
from munjang.train.objectives.in_batch import InBatch, InBatchSettings
from munjang.train.settings import read_settings, refuse_unless


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
