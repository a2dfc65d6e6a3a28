"""A recipe's model, ready to be trained: loaded from a folder, or made from nothing with a tokenizer of the data's own."""

from __future__ import annotations

from dataclasses import replace

import torch

from munjang.engine.modules import Pooling
from munjang.models.registry import resolve
from munjang.train.encoder import MAX_LENGTH, TextSettings, TrainableEncoder
from munjang.train.examples import read_examples
from munjang.train.load import EncoderOptions, load_encoder, set_dropout
from munjang.train.recipe import Recipe
from munjang.train.scratch import make_backbone, make_tokenizer
from munjang.train.tail import Dense, Normalize


def build_encoder(recipe: Recipe) -> TrainableEncoder:
    """Return the encoder that a recipe starts from; what is made fresh follows the recipe's seed."""
    torch.manual_seed(recipe.seed)
    model = recipe.model
    if model.scratch is None:
        options = EncoderOptions(pooling=model.pooling, max_length=model.max_length, normalize=model.normalize, dropout=model.dropout)
        encoder = load_encoder(resolve(model.base).path, replace(options, normalize=False) if model.dense else options)
    else:
        encoder = _from_scratch(recipe)
    if model.dense:
        encoder.tail.append(Dense(encoder.dimension, model.dense))
        if model.normalize:
            encoder.tail.append(Normalize())
    return encoder


def _from_scratch(recipe: Recipe) -> TrainableEncoder:
    model = recipe.model
    assert model.scratch is not None
    texts = [
        text
        for stage in recipe.stages
        for source in stage.data
        for example in read_examples(source, seed=recipe.seed).examples
        for text in example.texts
    ]
    length = min(model.max_length or MAX_LENGTH, model.scratch.positions)
    tokenizer = make_tokenizer(model.scratch, texts, max_length=length)
    backbone = make_backbone(model.scratch, len(tokenizer))
    pooling: Pooling = model.pooling or "mean"
    if model.dropout is not None:
        set_dropout(backbone.config, model.dropout)
        for module in backbone.modules():
            if isinstance(module, torch.nn.Dropout):
                module.p = model.dropout
    tail = [Normalize()] if model.normalize and not model.dense else []
    return TrainableEncoder(backbone, tokenizer, modes=(pooling,), text=TextSettings(length), tail=tail)
