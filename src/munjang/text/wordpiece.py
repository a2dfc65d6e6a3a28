"""Plain vocabulary files → a `tokenizers.Tokenizer`: WordPiece's vocab.txt, and byte-level BPE's vocab.json with merges.txt.

The contents of the files and the settings come in; a tokenizer without special tokens around the text goes out. Reading files from disk
and the special tokens are left to `tokenizer_files`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers

from munjang.errors import FolderError


def vocabulary_lines(text: str) -> list[str]:
    r"""Return the tokens of a vocab.txt, one a line; only a line feed ends a line.

    >>> vocabulary_lines("[PAD]\r\na\n")
    ['[PAD]', 'a']
    """
    lines = text.replace("\r\n", "\n").split("\n")
    return lines[:-1] if lines[-1] == "" else lines


def wordpiece(tokens: Sequence[str], settings: Mapping[str, Any], *, unknown: str, where: str) -> Tokenizer:
    """Build BERT's tokenizer: basic splitting, then the longest known pieces of each word."""
    vocabulary = {token: number for number, token in enumerate(tokens)}
    if unknown not in vocabulary:
        raise FolderError(f"{where}: no {unknown} among {len(vocabulary):,} tokens, expected a WordPiece vocabulary, one token a line")
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token=unknown))
    tokenizer.normalizer = normalizers.BertNormalizer(
        clean_text=True,
        handle_chinese_chars=bool(settings.get("tokenize_chinese_chars", True)),
        strip_accents=settings.get("strip_accents"),
        lowercase=bool(settings.get("do_lower_case", True)),
    )
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece(prefix="##")
    return tokenizer


def byte_level_bpe(vocabulary_json: str, merges_text: str, settings: Mapping[str, Any], *, where: str) -> Tokenizer:
    """Build RoBERTa's tokenizer: bytes, merged in the order of merges.txt."""
    vocabulary = json.loads(vocabulary_json)
    if not isinstance(vocabulary, dict) or not all(type(number) is int for number in vocabulary.values()):
        raise FolderError(f"{where}: not a JSON object from token to id")
    lines = [line for line in vocabulary_lines(merges_text) if line and not line.startswith("#version")]
    merges: list[tuple[str, str]] = []
    for number, line in enumerate(lines, start=1):
        left, space, right = line.partition(" ")
        if not space or " " in right:
            raise FolderError(f"merges.txt: merge {number} has {len(line.split(' '))} parts, expected 2")
        merges.append((left, right))
    prefix_space = bool(settings.get("add_prefix_space", False))
    tokenizer = Tokenizer(models.BPE(vocabulary, merges))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=prefix_space)
    tokenizer.decoder = decoders.ByteLevel()
    return tokenizer
