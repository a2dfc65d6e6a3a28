"""The tokenizers of the newer families, from tokenizer.json alone: ids equal those of transformers, whichever side is padded."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.conftest import TEXTS, quiet, write_json
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

from munjang.text.tokenizer import load_tokenizer

SPLIT = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
"""How byte-level tokenizers of language models cut a text into words."""


def make_byte_level(words: bool) -> Tokenizer:
    """Return byte-level BPE; with `words` in the manner of Qwen 3 and EuroBERT, else of ModernBERT."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.normalizer = normalizers.NFC() if words else None
    level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=not words)
    cut = pre_tokenizers.Split(pattern=_regex(), behavior="isolated")
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([cut, level]) if words else level
    tokenizer.decoder = decoders.ByteLevel()
    special = ["<|endoftext|>", "<|im_start|>"] if words else ["[PAD]", "[CLS]", "[SEP]", "[UNK]"]
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    tokenizer.train_from_iterator(TEXTS, trainers.BpeTrainer(vocab_size=400, special_tokens=special, initial_alphabet=alphabet))
    first, last = ("", " <|endoftext|>") if words else ("[CLS] ", " [SEP]")
    around = [(token, tokenizer.token_to_id(token)) for token in special]
    tokenizer.post_processor = processors.TemplateProcessing(single=f"{first}$A{last}", pair=f"{first}$A $B{last}", special_tokens=around)
    return tokenizer


def _regex():
    from tokenizers import Regex

    return Regex(SPLIT)


def make_byte_fallback() -> Tokenizer:
    """Return BPE with bytes for what it does not know, as Gemma 3 has it."""
    special = ["<pad>", "<eos>", "<bos>", "<unk>", *(f"<0x{byte:02X}>" for byte in range(256))]
    tokenizer = Tokenizer(models.BPE(byte_fallback=True, unk_token="<unk>", fuse_unk=True))
    tokenizer.normalizer = normalizers.Replace(" ", "▁")
    tokenizer.train_from_iterator(TEXTS[:2], trainers.BpeTrainer(vocab_size=330, special_tokens=special))
    data = json.loads(tokenizer.to_str())
    data["added_tokens"] = [token for token in data["added_tokens"] if not token["content"].startswith("<0x")]  # bytes are plain pieces
    tokenizer = Tokenizer.from_str(json.dumps(data))
    around = [(token, tokenizer.token_to_id(token)) for token in ("<bos>", "<eos>")]
    tokenizer.post_processor = processors.TemplateProcessing(single="<bos> $A <eos>", pair="<bos> $A $B:1 <eos>:1", special_tokens=around)
    return tokenizer


def make_unigram() -> Tokenizer:
    """Return a unigram tokenizer in the manner of Jina v3 and DeBERTa v3."""
    special = ["<s>", "<pad>", "</s>", "<unk>"]
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.normalizer = normalizers.Sequence([normalizers.Nmt(), normalizers.NFKC(), normalizers.Replace(_spaces(), " ")])
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    trainer = trainers.UnigramTrainer(vocab_size=200, special_tokens=special, unk_token="<unk>", show_progress=False)
    tokenizer.train_from_iterator(TEXTS * 3, trainer)
    around = [(token, tokenizer.token_to_id(token)) for token in ("<s>", "</s>")]
    tokenizer.post_processor = processors.TemplateProcessing(single="<s> $A </s>", pair="<s> $A </s> </s> $B </s>", special_tokens=around)
    return tokenizer


def _spaces():
    from tokenizers import Regex

    return Regex(" {2,}")


MADE = {
    "modernbert": (lambda: make_byte_level(words=False), {"pad_token": "[PAD]", "cls_token": "[CLS]", "sep_token": "[SEP]"}),
    "qwen3": (lambda: make_byte_level(words=True), {"pad_token": "<|endoftext|>", "eos_token": "<|endoftext|>"}),
    "gemma3_text": (make_byte_fallback, {"pad_token": "<pad>", "eos_token": "<eos>", "bos_token": "<bos>", "unk_token": "<unk>"}),
    "jina_embeddings_v3": (make_unigram, {"pad_token": "<pad>", "bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>"}),
}


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("family", MADE)
def test_ids_equal_those_of_transformers(family, side, tmp_path: Path):
    transformers = pytest.importorskip("transformers", reason="the authority")
    make, roles = MADE[family]
    tokenizer = make()
    tokenizer.enable_padding(direction=side, pad_id=0, length=64)  # as files of models that were saved in use have it
    tokenizer.enable_truncation(8)
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    write_json(tmp_path / "tokenizer_config.json", {**roles, "tokenizer_class": "PreTrainedTokenizerFast", "padding_side": side})
    with quiet():
        theirs = transformers.PreTrainedTokenizerFast.from_pretrained(str(tmp_path))
        expected = [theirs(text)["input_ids"] for text in TEXTS]
        pairs = theirs(TEXTS[:3], TEXTS[3:6])["input_ids"]
    ours = load_tokenizer(tmp_path)
    assert ours.encode(TEXTS) == expected
    assert ours.highest_id == max(theirs.get_vocab().values())
    assert [ids for ids, _ in ours.encode_pairs(list(zip(TEXTS[:3], TEXTS[3:6], strict=True)))] == pairs
    ours.save(tmp_path / "saved")
    assert load_tokenizer(tmp_path / "saved").encode(TEXTS) == expected
    kept = json.loads((tmp_path / "saved/tokenizer_config.json").read_text(encoding="utf-8"))
    assert kept["padding_side"] == side
