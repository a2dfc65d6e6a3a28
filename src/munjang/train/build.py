"""A recipe's model, ready to be trained: loaded from a folder, or made from nothing with a tokenizer of the data's own.

A cross-encoder has a score for each label of the data. From nothing, the backbone is a small BERT and the tokenizer WordPiece (as BERT) or
Unigram (as XLM-R and most Korean models), made by the tokenizers library; weights follow the recipe's seed.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

from munjang.errors import quote
from munjang.models.registry import resolve
from munjang.report.training_words import TrainingWord
from munjang.report.words import Message
from munjang.train.adapt.vocabulary import extend_vocabulary
from munjang.train.cross_encoder import TrainableCrossEncoder
from munjang.train.durable import write_file
from munjang.train.encoder import MAX_LENGTH, Dense, Normalize, TextSettings, TrainableEncoder
from munjang.train.examples import read_examples
from munjang.train.load_folder import CrossOptions, EncoderOptions, load_cross_encoder, load_encoder, make_cross_encoder, set_dropout
from munjang.train.recipe import SPECIAL, Recipe, ScratchRecipe
from munjang.types import Pooling


def build_cross_encoder(recipe: Recipe, labels: Sequence[str], *, keep: Path | None = None) -> TrainableCrossEncoder:
    """Return the cross-encoder that a recipe starts from, with these labels; what is made fresh follows the recipe's seed."""
    model = recipe.model
    options = CrossOptions(model.head, model.max_length, model.dropout)
    torch.manual_seed(recipe.seed)
    if model.scratch is None:
        return load_cross_encoder(resolve(model.base).path, labels, options)
    start = _build_from_scratch(recipe, keep)
    torch.manual_seed(recipe.seed)
    return make_cross_encoder(start.backbone, start.tokenizer, labels, replace(options, max_length=start.text.max_length))


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
        encoder = _build_from_scratch(recipe, keep)
    if not model.prompts:
        encoder.prompts = {}
    if model.extend_vocabulary:
        _extend_vocabulary(encoder, recipe, model.extend_vocabulary)
    if model.dense:
        encoder.tail.append(Dense(encoder.dimension, model.dense, activation=model.dense_activation))
        if model.normalize:
            encoder.tail.append(Normalize())
    return encoder


def _build_from_scratch(recipe: Recipe, keep: Path | None) -> TrainableEncoder:
    model = recipe.model
    assert model.scratch is not None
    length = min(model.max_length or MAX_LENGTH, model.scratch.positions)
    tokenizer = _make_tokenizer(recipe, model.scratch, length, keep / "tokenizer.json" if keep else None)
    torch.manual_seed(recipe.seed)
    backbone = make_backbone(model.scratch, len(tokenizer))
    pooling: Pooling = model.pooling or "mean"
    set_dropout(backbone, model.dropout)
    tail = [Normalize()] if model.normalize and not model.dense else []
    return TrainableEncoder(backbone, tokenizer, modes=(pooling,), text=TextSettings(length), tail=tail)


def _make_tokenizer(recipe: Recipe, scratch: ScratchRecipe, length: int, kept: Path | None) -> Any:
    if kept is not None and kept.is_file():
        return wrap_tokenizer(Tokenizer.from_file(str(kept)), max_length=length)
    made = make_tokenizer(scratch, _list_texts(recipe), max_length=length)
    if kept is not None and kept.parent.is_dir():  # a process on another machine, with a disk of its own, makes the same again
        write_file(kept, lambda path: made.backend_tokenizer.save(str(path)))
    return made


def _list_texts(recipe: Recipe) -> list[str]:
    """Return every text of every stage."""
    sources = [source for stage in recipe.stages for source in stage.data]
    return [text for source in sources for example in read_examples(source, seed=recipe.seed).examples for text in example.texts]


def _extend_vocabulary(encoder: TrainableEncoder, recipe: Recipe, words: int) -> None:
    made = extend_vocabulary(encoder, list(dict.fromkeys(_list_texts(recipe))), words=words)
    first = ", ".join(quote(piece.word) for piece in made[:5])
    encoder.messages = (Message(TrainingWord.WORDS_ADDED, count=len(made), first=f"{first}{' …' if len(made) > 5 else ''}"),)


def make_backbone(recipe: ScratchRecipe, pieces: int) -> Any:
    """Return a BERT with fresh weights."""
    from transformers import BertConfig, BertModel

    config = BertConfig(
        vocab_size=pieces,
        hidden_size=recipe.width,
        num_hidden_layers=recipe.layers,
        num_attention_heads=recipe.heads,
        intermediate_size=recipe.inner,
        max_position_embeddings=recipe.positions,
        pad_token_id=0,
    )
    return BertModel(config, add_pooling_layer=False)


def make_tokenizer(recipe: ScratchRecipe, texts: Iterable[str], *, max_length: int) -> Any:
    """Return a tokenizer trained on these texts; the same texts give the same one."""
    # a set's order would make the vocabulary differ from run to run
    ordered = sorted(set(texts))
    return wrap_tokenizer(
        _train_wordpiece(recipe, ordered) if recipe.tokenizer == "wordpiece" else _train_unigram(recipe, ordered), max_length=max_length
    )


def wrap_tokenizer(tokenizer: Any, *, max_length: int) -> Any:
    """Return a tokenizer of the tokenizers library as transformers has them."""
    from transformers import PreTrainedTokenizerFast

    names = dict(zip(("pad_token", "unk_token", "cls_token", "sep_token", "mask_token"), SPECIAL, strict=True))
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, model_max_length=max_length, **names)


def _train_wordpiece(recipe: ScratchRecipe, texts: list[str]) -> Any:
    normalizer = normalizers.BertNormalizer(lowercase=recipe.lowercase, strip_accents=False)
    splitter = pre_tokenizers.BertPreTokenizer()
    draft = Tokenizer(models.WordPiece(unk_token="[UNK]"))  # noqa: S106
    draft.normalizer, draft.pre_tokenizer = normalizer, splitter
    # the library numbers inner letters in the order of a hash map, which then decides between merges of equal count; numbering them first
    # makes the vocabulary the same every time
    letters = sorted({letter for text in texts for letter in normalizer.normalize_str(text) if not letter.isspace()})
    first = [*SPECIAL, *(f"##{letter}" for letter in letters)]
    size = max(recipe.vocabulary, len(first) + len(letters))
    draft.train_from_iterator(texts, trainers.WordPieceTrainer(vocab_size=size, special_tokens=first, show_progress=False))
    made = Tokenizer(models.WordPiece(vocab=draft.get_vocab(), unk_token="[UNK]"))  # noqa: S106
    made.normalizer, made.pre_tokenizer, made.decoder = normalizer, splitter, decoders.WordPiece()
    return _add_special(made)


def _train_unigram(recipe: ScratchRecipe, texts: list[str]) -> Any:
    normalizer = normalizers.Sequence([normalizers.NFKC(), normalizers.Lowercase()] if recipe.lowercase else [normalizers.NFKC()])
    draft = Tokenizer(models.Unigram())
    draft.normalizer, draft.pre_tokenizer = normalizer, pre_tokenizers.Metaspace()
    trainer = trainers.UnigramTrainer(
        vocab_size=recipe.vocabulary,
        special_tokens=list(SPECIAL),
        unk_token="[UNK]",  # noqa: S106
        show_progress=False,
    )
    draft.train_from_iterator(texts, trainer)
    pieces = json.loads(draft.to_str())["model"]["vocab"]
    learnt = _fix_order({piece: score for piece, score in pieces if piece not in SPECIAL})
    made = Tokenizer(models.Unigram([*((name, 0.0) for name in SPECIAL), *learnt], unk_id=SPECIAL.index("[UNK]")))
    made.normalizer, made.pre_tokenizer, made.decoder = normalizer, pre_tokenizers.Metaspace(), decoders.Metaspace()
    return _add_special(made)


def _fix_order(scores: dict[str, float]) -> list[tuple[str, float]]:
    """Return pieces with scores that do not depend on the order in which the library went through its hash maps.

    Sums in another order differ in the last digits, so scores are rounded. Letters that fell out and are put back get scores at the bottom,
    0.0001 apart, in any order; here in that of the alphabet.
    """
    letters = [piece for piece in scores if len(piece) == 1]
    bottom = min(scores.values(), default=0.0) + 0.0001 * (len(letters) + 1)
    back = sorted(piece for piece in letters if scores[piece] < bottom)
    falling = sorted((scores[piece] for piece in back), reverse=True)
    settled = scores | dict(zip(back, falling, strict=True))
    return sorted(((piece, round(score, 6)) for piece, score in settled.items()), key=lambda item: (-item[1], item[0]))


def _add_special(tokenizer: Any) -> Any:
    tokenizer.add_special_tokens(list(SPECIAL))
    ids = [(name, tokenizer.token_to_id(name)) for name in ("[CLS]", "[SEP]")]
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=ids
    )
    return tokenizer
