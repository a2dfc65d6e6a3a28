"""A tokenizer and new words → a tokenizer that has each of them as one piece.

In: a tokenizer of transformers with a backend of the tokenizers library. Out: the same object with a larger backend, and the ids of the
pieces that came to be. WordPiece gets entries of its vocabulary, Unigram pieces with a score that wins over the old split; any other kind
(byte-level BPE, whose merges say more than a list of words can) gets added tokens, which match whole words. A text without the new words is
split as before.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from munjang.train.adapt.domain_words import DomainWord

TokenizerKind: TypeAlias = Literal["wordpiece", "unigram", "other"]
_BETTER = 0.1
"""By how much a new piece's score beats the sum of its old pieces'."""


@dataclass(frozen=True)
class NewPiece:
    """A word that became a piece, its id, and the pieces it was split into before."""

    word: str
    id: int
    pieces: tuple[int, ...]


def kind_of(tokenizer: Any) -> TokenizerKind:
    """Return how the tokenizer's vocabulary can grow."""
    model = json.loads(tokenizer.backend_tokenizer.to_str())["model"]
    if model["type"] == "WordPiece":
        return "wordpiece"
    return "unigram" if model["type"] == "Unigram" and _first_free(tokenizer, model) is not None else "other"


def plain_backend(tokenizer: Any) -> Any:
    """Return a copy of the backend that neither pads nor cuts."""
    from tokenizers import Tokenizer

    made = Tokenizer.from_str(tokenizer.backend_tokenizer.to_str())
    made.no_padding()
    made.no_truncation()
    return made


def add_words(tokenizer: Any, words: Sequence[DomainWord], *, total: int) -> list[NewPiece]:
    """Put the words in and return those that are one piece now; `total` is the number of words that their counts are out of."""
    kind = kind_of(tokenizer)
    before = len(tokenizer)
    if kind == "other":
        _add_tokens(tokenizer, words)
    else:
        described = json.loads(tokenizer.backend_tokenizer.to_str())
        (_add_entries if kind == "wordpiece" else _add_scored)(tokenizer, described, words, total)
        _replace_backend(tokenizer, described)
    found = plain_backend(tokenizer).encode_batch([word.word for word in words], add_special_tokens=False)
    return [
        NewPiece(word.word, encoded.ids[0], word.pieces)
        for word, encoded in zip(words, found, strict=True)
        if len(encoded.ids) == 1 and encoded.ids[0] >= before
    ]


def _add_entries(tokenizer: Any, described: Any, words: Sequence[DomainWord], total: int) -> None:  # noqa: ARG001
    vocabulary: dict[str, int] = described["model"]["vocab"]
    first = _top(tokenizer) + 1
    fresh = [word.word for word in words if word.word not in vocabulary]
    vocabulary.update({word: first + place for place, word in enumerate(fresh)})


def _add_scored(tokenizer: Any, described: Any, words: Sequence[DomainWord], total: int) -> None:
    model = described["model"]
    vocabulary: list[list[Any]] = model["vocab"]
    lowest = min(float(score) for _, score in vocabulary)
    scores = [float(score) for _, score in vocabulary]
    known = {piece for piece, _ in vocabulary}
    # ids of added tokens stand after the pieces; a list has no gaps, so they take their places in it
    names = {int(token["id"]): token["content"] for token in described["added_tokens"]}
    vocabulary += [[names[place], 0.0] for place in range(len(vocabulary), _first_free(tokenizer, model) or 0)]
    for word in words:
        piece = "▁" + word.word
        if piece in known:
            continue
        as_before = sum(scores[old] for old in word.pieces if old < len(scores))
        score = max(math.log(word.count / total), as_before + _BETTER, lowest)
        vocabulary.append([piece, min(score, 0.0)])


def _add_tokens(tokenizer: Any, words: Sequence[DomainWord]) -> None:
    from tokenizers import AddedToken

    # the space before a word belongs to its piece in byte-level vocabularies
    tokenizer.add_tokens([AddedToken(word.word, single_word=True, lstrip=True, normalized=True) for word in words])


def _replace_backend(tokenizer: Any, described: Any) -> None:
    from tokenizers import Tokenizer

    tokenizer._tokenizer = Tokenizer.from_str(json.dumps(described, ensure_ascii=False))


def _top(tokenizer: Any) -> int:
    vocabulary: dict[str, int] = tokenizer.get_vocab()
    return max(vocabulary.values())


def _first_free(tokenizer: Any, model: Any) -> int | None:
    """Return the id after all others of a Unigram tokenizer; None where ids beyond its list are not all added tokens'."""
    size, top = len(model["vocab"]), _top(tokenizer)
    held = set(tokenizer.get_vocab().values())
    return top + 1 if all(place in held for place in range(size, top + 1)) else None
