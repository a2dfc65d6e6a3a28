"""A model folder → the description of its tokenizer, whichever of the field's file layouts it has.

A folder comes in; a `TokenizerFiles` goes out: the tokenizer in the form of a tokenizer.json, the settings beside it, and the names of the
special tokens. Layouts, first match wins: tokenizer.json · a .model file with vocab.txt (KoBERT) · vocab.txt (BERT, ELECTRA, DistilBERT,
MPNet) · vocab.json with merges.txt (RoBERTa) · sentencepiece.bpe.model (XLM-RoBERTa) · spiece.model (ALBERT) · any single .model file.
Every file is measured before it is read. Turning text into ids is left to `tokenizer`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

from munjang.errors import FolderError
from munjang.limits import LIMITS, Limits
from munjang.text import sentencepiece as spm


def read_vocabulary_lines(text: str) -> list[str]:
    r"""Return the tokens of a vocab.txt, one a line; only a line feed ends a line.

    >>> read_vocabulary_lines("[PAD]\r\na\n")
    ['[PAD]', 'a']
    """
    lines = text.replace("\r\n", "\n").split("\n")
    return lines[:-1] if lines[-1] == "" else lines


def make_wordpiece(tokens: Sequence[str], settings: Mapping[str, Any], *, unknown: str, where: str) -> Tokenizer:
    """Build BERT's tokenizer: basic splitting, then the longest known pieces of each word."""
    vocabulary = {token: number for number, token in enumerate(tokens)}
    if unknown not in vocabulary:
        raise FolderError(f"{where}: no {unknown} among {len(vocabulary):,} tokens, expected a WordPiece vocabulary, one token per line")
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


def make_byte_level_bpe(vocabulary_json: str, merges_text: str, settings: Mapping[str, Any], *, where: str) -> Tokenizer:
    """Build RoBERTa's tokenizer: bytes, merged in the order of merges.txt."""
    vocabulary = json.loads(vocabulary_json)
    if not isinstance(vocabulary, dict) or not all(type(number) is int for number in vocabulary.values()):
        raise FolderError(f"{where}: not a JSON object from token to id")
    lines = [line for line in read_vocabulary_lines(merges_text) if line and not line.startswith("#version")]
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


ROLES = ("cls_token", "sep_token", "pad_token", "unk_token", "mask_token", "bos_token", "eos_token")


@dataclass(frozen=True)
class Frame:
    """How a model family dresses one text and a pair of texts."""

    cls: str
    sep: str
    pad: str
    unk: str
    mask: str
    between: int
    """Separators between the two texts of a pair."""
    second_type: int
    """The segment number of a pair's second text."""


BERT = Frame("[CLS]", "[SEP]", "[PAD]", "[UNK]", "[MASK]", between=1, second_type=1)
ROBERTA = Frame("<s>", "</s>", "<pad>", "<unk>", "<mask>", between=2, second_type=0)
MPNET = Frame("<s>", "</s>", "<pad>", "[UNK]", "<mask>", between=2, second_type=0)
ALBERT = Frame("[CLS]", "[SEP]", "<pad>", "<unk>", "[MASK]", between=1, second_type=1)


@dataclass(frozen=True)
class TokenizerFiles:
    """A tokenizer as its folder describes it."""

    where: str
    data: dict[str, Any]
    """The contents of a tokenizer.json."""
    settings: dict[str, Any]
    """The contents of tokenizer_config.json, special_tokens_map.json merged in."""
    roles: dict[str, str]
    """From role ("cls_token") to token."""
    hidden: frozenset[str]
    """Further tokens that no text may become."""


@dataclass(frozen=True)
class _Folder:
    """A folder being read, with what its small files say."""

    path: Path
    settings: dict[str, Any]
    family: str
    limits: Limits

    def has(self, name: str) -> bool:
        return (self.path / name).is_file()

    def text(self, name: str) -> str:
        return _decode(read_bounded(self.path / name, self.limits.max_tokenizer_bytes), self.path / name)


def read_tokenizer_files(folder: Path, *, limits: Limits = LIMITS) -> TokenizerFiles:
    """Read whichever tokenizer layout the folder holds."""
    folder = Path(folder)
    settings = _read_json(folder / "tokenizer_config.json", limits)
    settings = {**_read_json(folder / "special_tokens_map.json", limits), **settings}
    family = str(settings.get("tokenizer_class") or _read_json(folder / "config.json", limits).get("model_type") or "").lower()
    source = _Folder(folder, settings, family, limits)
    models = sorted(path.name for path in folder.glob("*.model"))
    if source.has("tokenizer.json"):
        return _read_tokenizer_json(source)
    if len(models) == 1 and source.has("vocab.txt"):
        return _read_sentencepiece(source, models[0], listed=True)
    if source.has("vocab.txt"):
        return _read_vocab_txt(source)
    if source.has("vocab.json") and source.has("merges.txt"):
        return _read_vocab_json(source)
    if len(models) == 1:
        return _read_sentencepiece(source, models[0], listed=False)
    found = ", ".join(models) if models else "none of them"
    raise FolderError(
        f"{folder.name}: no tokenizer: expected tokenizer.json, vocab.txt, vocab.json with merges.txt, or one .model file; found {found}\n"
        "  copy the tokenizer's files into the model folder"
    )


def read_bounded(path: Path, limit: int) -> bytes:
    """Return a file's bytes, refusing one larger than the limit before reading it."""
    try:
        size = path.stat().st_size
        if size > limit:
            raise FolderError(f"{path.name}: {size:,} bytes, the limit is {limit:,}")
        with path.open("rb") as file:
            return file.read(limit)
    except OSError as error:
        raise FolderError(f"{path.name}: cannot be read ({error.strerror})") from error


def _decode(data: bytes, path: Path) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise FolderError(f"{path.name}: not UTF-8 at byte {error.start:,}") from error


def _parse(data: bytes, path: Path) -> dict[str, Any]:
    try:
        value = json.loads(_decode(data, path))
    except (ValueError, RecursionError) as error:
        raise FolderError(f"{path.name}: not JSON ({error})") from error
    if not isinstance(value, dict):
        raise FolderError(f"{path.name}: a JSON {type(value).__name__}, expected an object")
    return value


def _read_json(path: Path, limits: Limits) -> dict[str, Any]:
    return _parse(read_bounded(path, limits.max_config_bytes), path) if path.is_file() else {}


def _read_roles(settings: dict[str, Any]) -> dict[str, str]:
    """Return the special tokens that the settings name; a token is a string or an object with its content."""
    named = {role: settings.get(role) for role in ROLES}
    plain = {role: token.get("content") if isinstance(token, dict) else token for role, token in named.items()}
    return {role: token for role, token in plain.items() if isinstance(token, str)}


def _read_tokenizer_json(source: _Folder) -> TokenizerFiles:
    path = source.path / "tokenizer.json"
    data = _parse(read_bounded(path, source.limits.max_tokenizer_bytes), path)
    if not isinstance(data.get("model"), dict) or not isinstance(data["model"].get("vocab"), dict | list):
        raise FolderError(f"{path.name}: no vocabulary inside, expected a file written by the tokenizers library")
    return TokenizerFiles(path.name, data, source.settings, _read_roles(source.settings), frozenset())


def _read_vocab_txt(source: _Folder) -> TokenizerFiles:
    frame = MPNET if "mpnet" in source.family else BERT
    unknown = _read_roles(source.settings).get("unk_token", frame.unk)
    tokens = read_vocabulary_lines(source.text("vocab.txt"))
    return _add_frame(make_wordpiece(tokens, source.settings, unknown=unknown, where="vocab.txt"), frame, source, where="vocab.txt")


def _read_vocab_json(source: _Folder) -> TokenizerFiles:
    try:
        built = make_byte_level_bpe(source.text("vocab.json"), source.text("merges.txt"), source.settings, where="vocab.json")
    except FolderError:
        raise
    except Exception as error:  # tokenizers raises plain Exception
        raise FolderError(f"vocab.json, merges.txt: not a byte-level BPE vocabulary ({error})") from error
    return _add_frame(built, ROBERTA, source, where="vocab.json")


def _read_sentencepiece(source: _Folder, name: str, *, listed: bool) -> TokenizerFiles:
    if "camembert" in source.family:
        raise FolderError(
            f"{name}: CamemBERT's numbering is only known from its tokenizer.json\n  save the tokenizer with transformers first"
        )
    model = spm.parse_sentencepiece(read_bounded(source.path / name, source.limits.max_tokenizer_bytes), where=name)
    frame, spelling = ROBERTA, spm.Spelling()
    if listed:
        frame, spelling = BERT, _read_spelling(source.settings, lower_case=False)
        vocabulary = spm.order_as_listed(model, read_vocabulary_lines(source.text("vocab.txt")), where="vocab.txt")
    elif name == "sentencepiece.bpe.model":
        vocabulary = spm.order_as_fairseq(model)
    else:
        vocabulary = spm.order_as_in_file(model)
        frame = ALBERT if any(piece.text == "[CLS]" for piece in model.pieces) else ROBERTA
        if name == "spiece.model" and ("albert" in source.family or not source.family):
            spelling = _read_spelling(source.settings, lower_case=True)
    built = spm.build(model, vocabulary, spelling=spelling, where=name)
    return _add_frame(built, frame, source, where=name, hidden=vocabulary.hidden)


def _read_spelling(settings: dict[str, Any], *, lower_case: bool) -> spm.Spelling:
    return spm.Spelling(
        lower_case=bool(settings.get("do_lower_case", lower_case)),
        strip_accents=not settings.get("keep_accents", False),
        plain_quotes=True,
    )


def _add_frame(tokenizer: Tokenizer, frame: Frame, source: _Folder, *, where: str, hidden: frozenset[str] = frozenset()) -> TokenizerFiles:
    """Add the special tokens that the vocabulary has, and the template that puts them around a text."""
    usual = {"cls_token": frame.cls, "sep_token": frame.sep, "pad_token": frame.pad, "unk_token": frame.unk, "mask_token": frame.mask}
    roles = {role: token for role, token in {**usual, **_read_roles(source.settings)}.items() if tokenizer.token_to_id(token) is not None}
    tokenizer.add_special_tokens(sorted(set(roles.values()), key=lambda token: tokenizer.token_to_id(token) or 0))
    if {"cls_token", "sep_token"} <= roles.keys():
        cls, sep, second = roles["cls_token"], roles["sep_token"], frame.second_type
        between = " ".join([f"{sep}:0"] * frame.between)
        tokenizer.post_processor = processors.TemplateProcessing(
            single=f"{cls}:0 $A:0 {sep}:0",
            pair=f"{cls}:0 $A:0 {between} $B:{second} {sep}:{second}",
            special_tokens=[(token, tokenizer.token_to_id(token)) for token in sorted({cls, sep})],
        )
    return TokenizerFiles(where, json.loads(tokenizer.to_str()), _prepare_saving(source.settings, roles), roles, hidden)


def _prepare_saving(settings: dict[str, Any], roles: dict[str, str]) -> dict[str, Any]:
    """Name the class that reads a tokenizer.json as it stands: the plain files' own classes would build the tokenizer anew."""
    return {**settings, **roles, "tokenizer_class": "PreTrainedTokenizerFast"}
