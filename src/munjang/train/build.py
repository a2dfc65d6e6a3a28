"""A recipe's model, ready to be trained: loaded from a folder, or made from nothing with a tokenizer of the data's own.

`build` gives an encoder of sentences or a cross-encoder, as the recipe says; a cross-encoder has a score for each label of the data.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias

import torch

from munjang.engine.modules import Pooling
from munjang.errors import shown
from munjang.models.registry import resolve
from munjang.report.words import Message, Word
from munjang.train.adapt.extend import extend_vocabulary
from munjang.train.cross import TrainableCrossEncoder
from munjang.train.cross_load import CrossOptions, cross_from_parts, load_cross_encoder
from munjang.train.cross_plan import data_labels
from munjang.train.durable import write_file
from munjang.train.encoder import MAX_LENGTH, TextSettings, TrainableEncoder
from munjang.train.examples import read_examples
from munjang.train.load_folder import EncoderOptions, load_encoder, set_dropout
from munjang.train.recipe import Recipe
from munjang.train.scratch import ScratchRecipe, make_backbone, make_tokenizer, wrapped
from munjang.train.tail import Dense, Normalize

Trainable: TypeAlias = TrainableEncoder | TrainableCrossEncoder


def build(recipe: Recipe, *, keep: Path | None = None) -> Trainable:
    """Return the model that a recipe starts from, of the recipe's kind."""
    return build_cross_encoder(recipe, keep=keep) if recipe.kind == "cross" else build_encoder(recipe, keep=keep)


def build_cross_encoder(recipe: Recipe, *, keep: Path | None = None) -> TrainableCrossEncoder:
    """Return the cross-encoder that a recipe starts from, with the labels of its data; what is made fresh follows the recipe's seed."""
    labels = data_labels(recipe)
    model = recipe.model
    options = CrossOptions(model.head, model.max_length, model.dropout)
    torch.manual_seed(recipe.seed)
    if model.scratch is None:
        return load_cross_encoder(resolve(model.base).path, labels, options)
    start = _from_scratch(recipe, keep)
    torch.manual_seed(recipe.seed)
    return cross_from_parts(start.backbone, start.tokenizer, labels, replace(options, max_length=start.text.max_length))


def build_encoder(recipe: Recipe, *, keep: Path | None = None) -> TrainableEncoder:
    """Return the encoder that a recipe starts from; what is made fresh follows the recipe's seed.

    A tokenizer made from the data is kept in the folder `keep`, and taken from there the next time.
    """
    torch.manual_seed(recipe.seed)
    model = recipe.model
    if model.scratch is None:
        options = EncoderOptions(model.pooling, model.max_length, model.normalize, model.dropout, model.layers)
        encoder = load_encoder(resolve(model.base).path, replace(options, normalize=False) if model.dense else options)
    else:
        encoder = _from_scratch(recipe, keep)
    if not model.prompts:
        encoder.prompts = {}
    if model.extend_vocabulary:
        _extend(encoder, recipe, model.extend_vocabulary)
    if model.dense:
        encoder.tail.append(Dense(encoder.dimension, model.dense, activation=model.dense_activation))
        if model.normalize:
            encoder.tail.append(Normalize())
    return encoder


def _from_scratch(recipe: Recipe, keep: Path | None) -> TrainableEncoder:
    model = recipe.model
    assert model.scratch is not None
    length = min(model.max_length or MAX_LENGTH, model.scratch.positions)
    tokenizer = _tokenizer(recipe, model.scratch, length, keep / "tokenizer.json" if keep else None)
    torch.manual_seed(recipe.seed)
    backbone = make_backbone(model.scratch, len(tokenizer))
    pooling: Pooling = model.pooling or "mean"
    if model.dropout is not None:
        set_dropout(backbone.config, model.dropout)
        for module in backbone.modules():
            if isinstance(module, torch.nn.Dropout):
                module.p = model.dropout
    tail = [Normalize()] if model.normalize and not model.dense else []
    return TrainableEncoder(backbone, tokenizer, modes=(pooling,), text=TextSettings(length), tail=tail)


def _tokenizer(recipe: Recipe, scratch: ScratchRecipe, length: int, kept: Path | None) -> Any:
    if kept is not None and kept.is_file():
        from tokenizers import Tokenizer

        return wrapped(Tokenizer.from_file(str(kept)), max_length=length)
    made = make_tokenizer(scratch, _texts(recipe), max_length=length)
    if kept is not None:
        write_file(kept, lambda path: made.backend_tokenizer.save(str(path)))
    return made


def _texts(recipe: Recipe) -> list[str]:
    """Return every text of every stage."""
    sources = [source for stage in recipe.stages for source in stage.data]
    return [text for source in sources for example in read_examples(source, seed=recipe.seed).examples for text in example.texts]


def _extend(encoder: TrainableEncoder, recipe: Recipe, words: int) -> None:
    made = extend_vocabulary(encoder, list(dict.fromkeys(_texts(recipe))), words=words)
    first = ", ".join(shown(piece.word) for piece in made[:5])
    encoder.said = (Message(Word.WORDS_ADDED, count=len(made), first=f"{first}{' …' if len(made) > 5 else ''}"),)
