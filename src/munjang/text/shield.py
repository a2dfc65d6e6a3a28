"""A tokenizer's files → a tokenizer in which no text can become a special token.

Comes in: a `TokenizerFiles`. Goes out: the ids of its special tokens, and a `tokenizers.Tokenizer` that neither pads nor truncates. The
library cuts "[SEP]" inside a text like other text where it can; where a vocabulary spells the name out all the same, the name is shielded.
Ids are never changed.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection
from typing import Any

import tokenizers

from munjang.errors import FolderError
from munjang.text.tokenizer_files import TokenizerFiles

SHIELD = "\x00"
"""Put before a special token's name in the vocabulary. Cleaned text has no NUL, so no text can spell the name."""


def special_ids_of(files: TokenizerFiles) -> dict[str, int]:
    """Return the id of every special token, by its name."""
    model, added = files.data["model"], files.data.get("added_tokens") or []
    names = {*files.roles.values(), *files.hidden, *(token["content"] for token in added if token.get("special"))}
    vocabulary = model["vocab"]
    if isinstance(vocabulary, list):
        unknown = model.get("unk_id")
        names |= {vocabulary[unknown][0]} if isinstance(unknown, int) else set()
        ids = {entry[0]: number for number, entry in enumerate(vocabulary) if entry[0] in names}
    else:
        ids = {name: vocabulary[name] for name in names if name in vocabulary}
    return {**ids, **{token["content"]: token["id"] for token in added if token["content"] in names}}


def shielded_tokenizer(files: TokenizerFiles, special: dict[str, int]) -> tokenizers.Tokenizer:
    """Build a tokenizer in which no text can become a special token, and which neither pads nor truncates."""
    data = {**files.data, "padding": None, "truncation": None}
    if data["model"].get("type") == "Unigram" or isinstance(data["model"]["vocab"], list):
        return _built(_shielded(data, special), files.where)
    tokenizer = _built(data, files.where)
    leaking = {name for name in special if name != data["model"].get("unk_token") and _leaks(tokenizer, name, special[name])}
    return _built(_shielded(data, leaking), files.where) if leaking else tokenizer


def unshielded(data: dict[str, Any]) -> dict[str, Any]:
    """Take every shield off the names in a tokenizer.json."""
    return _renamed(data, lambda token: token.removeprefix(SHIELD))


def _shielded(data: dict[str, Any], names: Collection[str]) -> dict[str, Any]:
    return _renamed(data, lambda token: SHIELD + token if token in names else token)


def _leaks(tokenizer: tokenizers.Tokenizer, name: str, number: int) -> bool:
    typed = (name, f"a {name} a", f"a{name}a")
    return any(number in encoding.ids for encoding in tokenizer.encode_batch_fast(list(typed), add_special_tokens=False))


def _built(data: dict[str, Any], where: str) -> tokenizers.Tokenizer:
    try:
        tokenizer = tokenizers.Tokenizer.from_str(json.dumps(data, ensure_ascii=False))
        tokenizer.encode_special_tokens = True  # the library's words for: special tokens inside a text are ordinary text
        tokenizer.encode("a")
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # the Rust library raises plain Exception, and panics as BaseException
        raise FolderError(f"{where}: the tokenizers library cannot build it ({error})") from error
    return tokenizer


def _renamed(data: dict[str, Any], new: Callable[[str], str]) -> dict[str, Any]:
    """Rename the tokens of a tokenizer.json, in its vocabulary and among its added tokens."""
    model = data["model"]
    vocabulary = model["vocab"]
    renamed: Collection[Any]
    if isinstance(vocabulary, list):
        renamed = [[new(token), score] for token, score in vocabulary]
    else:
        renamed = {new(token): number for token, number in vocabulary.items()}
    added = [{**token, "content": new(token["content"])} for token in data.get("added_tokens") or []]
    return {**data, "model": {**model, "vocab": renamed}, "added_tokens": added}
