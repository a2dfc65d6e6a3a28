"""A small BERT from nothing: a tokenizer trained on the data's own texts, and fresh weights.

In: texts and a `ScratchRecipe`. Out: a backbone and a tokenizer as transformers has them. The tokenizer is WordPiece (as BERT) or Unigram
(as XLM-R and most Korean models), made by the tokenizers library; weights follow the seed that the caller has set.
"""

from __future__ import annotations

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
    """Return a tokenizer trained on these texts."""
    from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
    from transformers import PreTrainedTokenizerFast

    if recipe.tokenizer == "wordpiece":
        made = Tokenizer(models.WordPiece(unk_token="[UNK]"))  # noqa: S106
        made.normalizer = normalizers.BertNormalizer(lowercase=recipe.lowercase, strip_accents=False)
        made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
        made.decoder = decoders.WordPiece()
        trainer = trainers.WordPieceTrainer(vocab_size=recipe.vocabulary, special_tokens=list(SPECIAL), show_progress=False)
    else:
        made = Tokenizer(models.Unigram())
        steps = [normalizers.NFKC(), normalizers.Lowercase()] if recipe.lowercase else [normalizers.NFKC()]
        made.normalizer = normalizers.Sequence(steps)
        made.pre_tokenizer = pre_tokenizers.Metaspace()
        made.decoder = decoders.Metaspace()
        trainer = trainers.UnigramTrainer(
            vocab_size=recipe.vocabulary,
            special_tokens=list(SPECIAL),
            unk_token="[UNK]",  # noqa: S106
            show_progress=False,
        )
    # a set's order would make the vocabulary differ from run to run
    made.train_from_iterator(sorted(set(texts)), trainer)
    ids = {name: made.token_to_id(name) for name in ("[CLS]", "[SEP]")}
    made.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=list(ids.items())
    )
    names = dict(zip(("pad_token", "unk_token", "cls_token", "sep_token", "mask_token"), SPECIAL, strict=True))
    return PreTrainedTokenizerFast(tokenizer_object=made, model_max_length=max_length, **names)
