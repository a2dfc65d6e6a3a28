"""The sizes of an encoder that heads are made for: hidden rows, word embeddings (ELECTRA's may be narrower), vocabulary."""

from __future__ import annotations

from typing import Any

from munjang.train.encoder import TrainableEncoder


def hidden_width(encoder: TrainableEncoder) -> int:
    """Return the width of hidden rows."""
    config: Any = encoder.backbone.config
    return int(config.hidden_size)


def embedding_width(encoder: TrainableEncoder) -> int:
    """Return the width of word embeddings."""
    return int(encoder.words.embedding_dim)  # type: ignore[arg-type]


def vocabulary_size(encoder: TrainableEncoder) -> int:
    """Return how many rows the word embedding has."""
    words = encoder.words
    return int(words.num_embeddings)  # type: ignore[arg-type]
