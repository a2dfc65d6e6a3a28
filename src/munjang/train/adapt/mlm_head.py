"""The head of a masked language model: dense, activation, norm, then the word embeddings themselves as the last layer.

In: hidden rows. Out: rows in the space of the word embeddings, and a bias for each piece. Every family has this shape under its own names;
a folder that was saved with its head (as BERT's and XLM-R's are) gives its weights, another gets fresh ones.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from torch import Tensor, nn

from munjang.train.adapt.widths import embedding_width, hidden_width
from munjang.train.encoder import TrainableEncoder

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
        width = embedding_width(encoder)
        self.dense = nn.Linear(hidden_width(encoder), width)
        self.norm = nn.LayerNorm(width, eps=float(getattr(config, "layer_norm_eps", 1e-12)))
        self.bias_V = nn.Parameter(torch.zeros(pieces))
        self.activation = activation_of(config)
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


def activation_of(config: Any) -> nn.Module:
    """Return the activation that a configuration names."""
    from transformers.activations import ACT2FN

    made: nn.Module = ACT2FN[str(getattr(config, "hidden_act", None) or getattr(config, "activation", "gelu"))]
    return made
