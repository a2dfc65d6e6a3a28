"""Texts → token ids, through the tokenizer of a model folder.

Texts come in as users typed them; ids go out. Texts are cleaned first (`unicode.clean`, `break_long_words`). What a user types never
becomes a special token: "[SEP]" or "<s>" inside a text is cut like any other text (`shield`). Single texts are neither padded nor truncated
here: batches pad, and the model decides about long texts. One tokenizer may be used from many threads.
"""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Callable, Collection, Iterable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import tokenizers

from munjang.errors import FolderError, TextError
from munjang.limits import LIMITS, Limits
from munjang.text.tokenizer_files import TokenizerFiles, read_tokenizer_files
from munjang.text.unicode import break_long_words, clean
from munjang.wording import count


class PairFrame(NamedTuple):
    """The special ids around and between two texts, and each part's segment number."""

    before: list[int]
    between: list[int]
    after: list[int]
    types: tuple[list[int], int, list[int], int, list[int]]
    """Before, the first text's, between, the second text's, after."""

    @property
    def special_count(self) -> int:
        """How many tokens are added to a pair."""
        return len(self.before) + len(self.between) + len(self.after)

    @property
    def tells_texts_apart(self) -> bool:
        """Whether the second text has a segment number of its own."""
        return self.types[3] != self.types[1]

    def wrap(self, first: Sequence[int], second: Sequence[int]) -> tuple[list[int], list[int]]:
        """Put the special tokens around and between ids; return all ids and their segment numbers."""
        before, one, between, two, after = self.types
        ids = [*self.before, *first, *self.between, *second, *self.after]
        return ids, [*before, *[one] * len(first), *between, *[two] * len(second), *after]


def learn_pair_frame(tokenizer: tokenizers.Tokenizer, where: str, inputs: object = None) -> PairFrame:
    """Learn from one pair of texts what the tokenizer puts around a pair; `inputs` are what the settings say that a model gets."""
    pair = tokenizer.encode("a", "a")
    owners = pair.sequence_ids
    if 0 not in owners or 1 not in owners:
        raise FolderError(f"{where}: the letter a has no token, so the special tokens around a text cannot be learnt")
    first, second = owners.index(0), owners.index(1)
    first_end, second_end = first + owners.count(0), second + owners.count(1)
    left_out = isinstance(inputs, list) and "token_type_ids" not in inputs  # then transformers gives the model none either
    ids, types = pair.ids, [0] * len(pair) if left_out else pair.type_ids
    around = (types[:first], types[first], types[first_end:second], types[second], types[second_end:])
    return PairFrame(ids[:first], ids[first_end:second], ids[second_end:], around)


def shorten_pair(first: list[int], second: list[int], room: int | None) -> tuple[list[int], list[int]]:
    """Cut the longer text first, then both alike, until both fit."""
    if room is None or len(first) + len(second) <= room:
        return first, second
    short, long = sorted((len(first), len(second)))
    long = max(short, room - short) if short <= room else short
    if short + long > room:
        short, long = room // 2, room - room // 2
    keep_first, keep_second = (long, short) if len(first) > len(second) else (short, long)
    return first[:keep_first], second[:keep_second]


SHIELD = "\x00"
"""Put before a special token's name in the vocabulary. Cleaned text has no NUL, so no text can spell the name."""


def find_special_ids(files: TokenizerFiles) -> dict[str, int]:
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


def escape_special_tokens(files: TokenizerFiles, special: dict[str, int]) -> tokenizers.Tokenizer:
    """Build a tokenizer in which no text can become a special token, and which neither pads nor truncates."""
    data = {**files.data, "padding": None, "truncation": None}
    if data["model"].get("type") == "Unigram" or isinstance(data["model"]["vocab"], list):
        return _build(_escape_special(data, special), files.where)
    tokenizer = _build(data, files.where)
    leaking = {name for name in special if name != data["model"].get("unk_token") and _leaks(tokenizer, name, special[name])}
    return _build(_escape_special(data, leaking), files.where) if leaking else tokenizer


def unescape_special_tokens(data: dict[str, Any]) -> dict[str, Any]:
    """Take every shield off the names in a tokenizer.json."""
    return _rename(data, lambda token: token.startswith(SHIELD), lambda token: token.removeprefix(SHIELD))


def _escape_special(data: dict[str, Any], names: Collection[str]) -> dict[str, Any]:
    names = frozenset(names)
    return _rename(data, names.__contains__, SHIELD.__add__)


def _leaks(tokenizer: tokenizers.Tokenizer, name: str, number: int) -> bool:
    typed = (name, f"a {name} a", f"a{name}a")
    return any(number in encoding.ids for encoding in tokenizer.encode_batch_fast(list(typed), add_special_tokens=False))


def _build(data: dict[str, Any], where: str) -> tokenizers.Tokenizer:
    try:
        tokenizer = tokenizers.Tokenizer.from_str(json.dumps(data, ensure_ascii=False))
        tokenizer.encode_special_tokens = True  # the library's words for: special tokens inside a text are ordinary text
        tokenizer.encode("a")
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # the Rust library raises plain Exception, and panics as BaseException
        raise FolderError(f"{where}: the tokenizers library cannot build it ({error})") from error
    return tokenizer


def _rename(data: dict[str, Any], chosen: Callable[[str], bool], new: Callable[[str], str]) -> dict[str, Any]:
    """Rename the chosen tokens of a tokenizer.json, in its vocabulary and among its added tokens."""
    model = data["model"]
    vocabulary = model["vocab"]
    renamed: Collection[Any]
    if isinstance(vocabulary, list):
        renamed = [[new(entry[0]), *entry[1:]] if chosen(entry[0]) else entry for entry in vocabulary]
    else:
        renamed = {new(token) if chosen(token) else token: number for token, number in vocabulary.items()}
    added = [{**token, "content": new(token["content"])} if chosen(token["content"]) else token for token in data.get("added_tokens") or []]
    return {**data, "model": {**model, "vocab": renamed}, "added_tokens": added}


_NO_LIMIT = 1_000_000
"""A model_max_length from here on is a way of saying "none"."""


class Inspected(NamedTuple):
    """One text's tokens with their places; offsets count characters of the cleaned text."""

    ids: list[int]
    tokens: list[str]
    offsets: list[tuple[int, int]]
    special_mask: list[int]


def load_tokenizer(folder: Path, *, limits: Limits = LIMITS) -> Tokenizer:
    """Load the tokenizer of a model folder, from any of the layouts that `tokenizer_files` knows."""
    files = read_tokenizer_files(folder, limits=limits)
    try:
        return Tokenizer(files, limits=limits)
    except (KeyError, TypeError, ValueError, IndexError, AttributeError, OverflowError) as error:
        raise FolderError(f"{files.where}: not shaped like a tokenizer ({type(error).__name__}: {error})") from error


class Tokenizer:
    """Turns texts into token ids, and ids back into tokens."""

    def __init__(self, files: TokenizerFiles, *, limits: Limits = LIMITS) -> None:
        self._limits = limits
        self._settings = files.settings
        self._roles = files.roles
        ids = find_special_ids(files)
        self._inner = escape_special_tokens(files, ids)
        self.special_ids: frozenset[int] = frozenset(ids.values())
        """Ids of all special tokens: no text becomes one of them, except the unknown token's."""
        self.vocabulary_size: int = self._inner.get_vocab_size(with_added_tokens=True)
        self.max_length: int | None = _read_max_length(files.settings)
        """Tokens, special ones included, that the settings allow; None when they do not say."""
        vocabulary = files.data["model"]["vocab"]  # asking the library for its own takes as long as building it
        numbers = vocabulary.values() if isinstance(vocabulary, dict) else range(len(vocabulary))
        self.highest_id: int = max((*self._inner.get_added_tokens_decoder(), max(numbers, default=0)))
        """The largest id that a text can be given."""
        padding = files.data.get("padding") or {}
        self.pad_id: int = ids.get(files.roles.get("pad_token", ""), ids.get("[PAD]", ids.get("<pad>", int(padding.get("pad_id", 0)))))
        self.pad_type_id: int = int(padding.get("pad_type_id", 0))
        self.cls_id: int | None = ids.get(files.roles.get("cls_token", ""))
        self.sep_id: int | None = ids.get(files.roles.get("sep_token", ""))
        self.mask_id: int | None = ids.get(files.roles.get("mask_token", ""))
        self.unk_id: int | None = ids.get(files.roles.get("unk_token", ""))
        self._pair = learn_pair_frame(self._inner, files.where, files.settings.get("model_input_names"))
        single = self._inner.encode("a")
        self._before = _count_leading_special(single.ids, single.special_tokens_mask)
        self._after = _count_leading_special(single.ids[::-1], single.special_tokens_mask[::-1])[::-1]

    def __repr__(self) -> str:
        return f"Tokenizer({count(self.vocabulary_size, 'token')})"

    @property
    def special_count(self) -> int:
        """How many tokens are added to one text."""
        return len(self._before) + len(self._after)

    @property
    def special_around(self) -> tuple[int, int]:
        """How many special tokens stand before and behind one text."""
        return len(self._before), len(self._after)

    @cached_property
    def punctuation_ids(self) -> frozenset[int]:
        """Ids of the tokens that consist of punctuation and symbols alone."""
        tokens = enumerate(self.tokens(range(self.highest_id + 1)))
        return frozenset(number for number, token in tokens if number not in self.special_ids and _is_punctuation(token))

    @property
    def pair_special_count(self) -> int:
        """How many tokens are added to a pair of texts."""
        return self._pair.special_count

    @property
    def uses_type_ids(self) -> bool:
        """Whether the second text of a pair has a segment number of its own."""
        return self._pair.tells_texts_apart

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """Return each text's ids, special tokens included."""
        return [encoding.ids for encoding in self._encodings(texts, special=True)]

    def encode_plain(self, texts: Sequence[str]) -> list[list[int]]:
        """Return each text's ids without special tokens."""
        return [encoding.ids for encoding in self._encodings(texts, special=False)]

    def wrap(self, ids: Sequence[int]) -> list[int]:
        """Put the special tokens of one text around ids."""
        return [*self._before, *ids, *self._after]

    def unwrap(self, ids: Sequence[int]) -> list[int]:
        """Take the special tokens of one text off again."""
        return list(ids[len(self._before) : len(ids) - len(self._after)])

    def prefix_length(self, prompt: str) -> int:
        """Return how many tokens stand before the text that follows `prompt`."""
        return len(self._before) + len(self.encode_plain([prompt])[0])

    def encode_pairs(self, pairs: Sequence[tuple[str, str]], *, max_length: int | None = None) -> list[tuple[list[int], list[int]]]:
        """Return each pair's ids and segment numbers; a pair longer than `max_length` loses tokens from its longer text first."""
        unique = list(dict.fromkeys(text for pair in pairs for text in pair))
        plain = dict(zip(unique, self.encode_plain(unique), strict=True))
        room = None if max_length is None else max(max_length - self.pair_special_count, 0)
        return [self.wrap_pair(*shorten_pair(plain[first], plain[second], room)) for first, second in pairs]

    def wrap_pair(self, first: Sequence[int], second: Sequence[int]) -> tuple[list[int], list[int]]:
        """Put the special tokens of a pair around and between ids; return all ids and their segment numbers."""
        return self._pair.wrap(first, second)

    def encode_with_offsets(self, text: str) -> Inspected:
        """Return one text's ids, tokens, character offsets and which of them are special."""
        encoding = self._inner.encode(self._prepare(text))
        return Inspected(encoding.ids, self.tokens(encoding.ids), encoding.offsets, encoding.special_tokens_mask)

    def tokens(self, ids: Iterable[int]) -> list[str]:
        """Return the token of each id; an id outside the vocabulary is shown as an empty token."""
        return [(self._inner.id_to_token(number) or "").removeprefix(SHIELD) for number in ids]

    def find_id(self, token: str) -> int | None:
        """Return the id of a token of the vocabulary, special ones included; None if there is none."""
        number = self._inner.token_to_id(token)
        found: int | None = self._inner.token_to_id(SHIELD + token) if number is None else number
        return found

    def save(self, folder: Path, *, max_length: int | None = None) -> None:
        """Write the files that transformers' AutoTokenizer reads with equal ids; `max_length` replaces the limit in the settings."""
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        settings = (
            self._settings if "tokenizer_class" in self._settings else {**self._settings, "tokenizer_class": "PreTrainedTokenizerFast"}
        )
        if max_length is not None:
            settings = {**settings, "model_max_length": max_length}
        files = {
            "tokenizer.json": unescape_special_tokens(json.loads(self._inner.to_str())),
            "tokenizer_config.json": settings,
            "special_tokens_map.json": self._roles,
        }
        for name, value in files.items():
            (folder / name).write_text(json.dumps(value, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")

    def _prepare(self, text: str) -> str:
        return break_long_words(clean(text, limits=self._limits), limits=self._limits)

    def _encodings(self, texts: Sequence[str], *, special: bool) -> list[tokenizers.Encoding]:
        prepared = [self._prepare(text) for text in texts]
        try:
            encodings: list[tokenizers.Encoding] = self._inner.encode_batch_fast(prepared, add_special_tokens=special)
        except Exception as error:  # tokenizers raises plain Exception
            raise TextError(f"the model's tokenizer cannot tokenize one of {len(prepared):,} texts ({error})") from error
        return encodings


_WORD_MARKS = ("##", "\u2581", "\u0120", "\u010a")
"""What vocabularies put before a piece to say whether a word begins with it; the last two are a space and a line end in byte-level ones."""


def _is_punctuation(token: str) -> bool:
    for mark in _WORD_MARKS:
        token = token.removeprefix(mark) or token
    return bool(token) and token not in _WORD_MARKS[1:] and all(unicodedata.category(character)[0] in "PS" for character in token)


def _read_max_length(settings: dict[str, Any]) -> int | None:
    length = settings.get("model_max_length")
    return int(length) if isinstance(length, int | float) and 0 < length < _NO_LIMIT else None


def _count_leading_special(ids: list[int], mask: list[int]) -> list[int]:
    return ids[: mask.index(0)] if 0 in mask else ids
