"""A tiny model with a Unigram vocabulary, beside the WordPiece ones that every test has."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

SPECIAL = ("<s>", "<pad>", "</s>", "<unk>")
WORDS = (
    "▁the",
    "▁rain",
    "▁cat",
    "ing",
    "▁sleep",
    "▁비가",
    "▁온다",
    "비",
    "눈이",
    "▁고양이",
    "русский",
    "▁да",
    "中国",
    "3",
    "▁2026",
    "eep",
    "▁sl",
)
CHARACTERS = "abcdefghijklmnopqrstuvwxyz가나다비온눈이고양,.!?☃жд中国"


def unigram_pieces() -> list[tuple[str, float]]:
    """Return pieces with scores that make longer ones win, some of them in scripts that nobody wants."""
    words = [(word, -4.0 - 0.25 * number) for number, word in enumerate(WORDS)]
    taken = {word for word, _ in words}
    letters = [(letter, -9.0 - 0.01 * number) for number, letter in enumerate(CHARACTERS) if letter not in taken]
    return [*((name, 0.0) for name in SPECIAL), ("▁", -3.0), *words, *letters, ("<mask>", 0.0)]


@pytest.fixture(scope="session")
def unigram_folder(tiny_folder: Callable[..., Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An XLM-RoBERTa with a Unigram tokenizer; it has more rows than pieces, as multilingual-e5-small has."""
    folder = tmp_path_factory.mktemp("unigram") / "model"
    prompts = json.dumps({"prompts": {"query": "cat: "}, "default_prompt_name": None})
    shutil.copytree(tiny_folder("xlm-roberta", settings=prompts), folder)
    pieces = unigram_pieces()
    tokenizer = Tokenizer(models.Unigram(pieces, unk_id=3))
    tokenizer.normalizer = normalizers.NFKC()
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    ids = {piece: number for number, (piece, _) in enumerate(pieces)}
    around = [(token, ids[token]) for token in ("<s>", "</s>")]
    tokenizer.post_processor = processors.TemplateProcessing(single="<s> $A </s>", pair="<s> $A </s> </s> $B </s>", special_tokens=around)
    tokenizer.add_special_tokens([*SPECIAL, "<mask>"])
    tokenizer.save(str(folder / "tokenizer.json"))
    settings = json.loads((folder / "tokenizer_config.json").read_text(encoding="utf-8"))
    settings["unk_token"] = "<unk>"
    settings["added_tokens_decoder"] = {str(ids["<mask>"]): {"content": "<mask>", "special": True}}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings), encoding="utf-8")
    return folder
