"""A vocabulary that grows by the domain's own words, with embeddings that start as the mean of their old pieces'.

In: an encoder and the domain's texts. Out: the same encoder with new pieces, and their list. Nothing else changes: a text without the new
words keeps its vector. A text with them has fewer tokens, and its new pieces have to be trained before they are worth anything.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import nn

from munjang.errors import InputError
from munjang.train.adapt.domain_words import domain_words
from munjang.train.adapt.extend_tokenizer import NewPiece, add_words, kind_of, plain_backend
from munjang.train.encoder import TrainableEncoder


def extend_vocabulary(encoder: TrainableEncoder, texts: Sequence[str], *, words: int) -> list[NewPiece]:
    """Add up to `words` words that are frequent in the texts and split into many pieces; texts that have none are refused."""
    kind = kind_of(encoder.tokenizer)
    read = [text.lower() for text in texts] if encoder.text.lowercase else texts
    chosen = domain_words(read, plain_backend(encoder.tokenizer), most=words, spaced=kind == "unigram", whole=kind == "other")
    made = add_words(encoder.tokenizer, chosen, total=sum(len(text.split()) for text in read)) if chosen else []
    if not made:
        raise InputError(
            "no word of the text is frequent and split into pieces, so there is nothing to add\n  leave the vocabulary as it is"
        )
    _grow(encoder, made)
    return made


def _grow(encoder: TrainableEncoder, made: Sequence[NewPiece]) -> None:
    """Give each new piece the mean of its old pieces' embeddings."""
    whole = encoder.words
    assert isinstance(whole, nn.Embedding)
    old_VD = whole.weight.detach()
    size = max(len(old_VD), len(encoder.tokenizer), 1 + max(piece.id for piece in made))
    # a row that no piece has stays the mean of all, as harmless as any
    new_VD = old_VD.mean(dim=0).repeat(size, 1)
    new_VD[: len(old_VD)] = old_VD
    for piece in made:
        new_VD[piece.id] = old_VD[torch.tensor(piece.pieces)].mean(dim=0)
    encoder.set_words(nn.Embedding(size, old_VD.shape[1], padding_idx=whole.padding_idx, _weight=new_VD))
    backbone: Any = encoder.backbone
    backbone.config.vocab_size = size
