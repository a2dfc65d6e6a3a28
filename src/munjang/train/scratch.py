"""A small BERT from nothing: a tokenizer trained on the data's own texts, and fresh weights.

In: texts and a `ScratchRecipe`. Out: a backbone and a tokenizer as transformers has them. The tokenizer is WordPiece (as BERT) or Unigram
(as XLM-R and most Korean models), made by the tokenizers library; weights follow the seed that the caller has set.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

from munjang.train.objectives.settings import refuse_unless

SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")


@dataclass(frozen=True)
class ScratchRecipe:
    """The size of a model made from nothing."""

    tokenizer: Literal["wordpiece", "unigram"] = "wordpiece"
    vocabulary: int = 8000
    lowercase: bool = True
    layers: int = 4
    width: int = 256
    heads: int = 4
    inner: int = 1024
    positions: int = 512

    def __post_init__(self) -> None:
        refuse_unless(self.width % self.heads == 0, f"model.scratch: {self.heads} heads do not divide a width of {self.width}")
        refuse_unless(min(self.layers, self.width, self.heads, self.inner) > 0, "model.scratch: sizes must be 1 or more")
        refuse_unless(self.vocabulary > len(SPECIAL), f"model.scratch: a vocabulary of {self.vocabulary} leaves no room for pieces")


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
    return wrapped(_wordpiece(recipe, ordered) if recipe.tokenizer == "wordpiece" else _unigram(recipe, ordered), max_length=max_length)


def wrapped(tokenizer: Any, *, max_length: int) -> Any:
    """Return a tokenizer of the tokenizers library as transformers has them."""
    from transformers import PreTrainedTokenizerFast

    names = dict(zip(("pad_token", "unk_token", "cls_token", "sep_token", "mask_token"), SPECIAL, strict=True))
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, model_max_length=max_length, **names)


def _wordpiece(recipe: ScratchRecipe, texts: list[str]) -> Any:
    from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

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
    return _with_special(made)


def _unigram(recipe: ScratchRecipe, texts: list[str]) -> Any:
    from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

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
    learnt = _in_one_order({piece: score for piece, score in pieces if piece not in SPECIAL})
    made = Tokenizer(models.Unigram([*((name, 0.0) for name in SPECIAL), *learnt], unk_id=SPECIAL.index("[UNK]")))
    made.normalizer, made.pre_tokenizer, made.decoder = normalizer, pre_tokenizers.Metaspace(), decoders.Metaspace()
    return _with_special(made)


def _in_one_order(scores: dict[str, float]) -> list[tuple[str, float]]:
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


def _with_special(tokenizer: Any) -> Any:
    from tokenizers import processors

    tokenizer.add_special_tokens(list(SPECIAL))
    ids = [(name, tokenizer.token_to_id(name)) for name in ("[CLS]", "[SEP]")]
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=ids
    )
    return tokenizer
