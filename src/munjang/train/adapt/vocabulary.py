"""A vocabulary that grows by the domain's own words, with embeddings that start as the mean of their old pieces'.

In: an encoder and the domain's texts. Out: the same encoder with new pieces, and their list. A text without the new words keeps its
vector; a text with them has fewer tokens, and its new pieces have to be trained before they are worth anything.

Words are chosen by what they save: how often a word occurs, times the pieces it would save. Korean words carry particles and endings, so a
stem that occurs before several of them counts as a word. A word inside a chosen one counts only where it occurs without it. WordPiece gets
entries of its vocabulary, Unigram pieces with a score that wins over the old split; any other kind (byte-level BPE) gets added tokens,
which match whole words.
"""

from __future__ import annotations

import heapq
import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import torch
from torch import nn

from munjang.errors import InputError
from munjang.train.encoder import TrainableEncoder

LEAST_COUNT = 5
"""Times that a word must stand in the text."""
LEAST_ENDINGS = 3
"""Different continuations that make the beginning of Korean words a stem."""
LONGEST = 32

_WORD = re.compile(r"[^\W\d_]\w*")
_HANGUL = re.compile(r"[가-힣]+")


@dataclass(frozen=True)
class DomainWord:
    """A word, how often it stands in the texts, and the pieces it is split into now."""

    word: str
    count: int
    pieces: tuple[int, ...]


def find_domain_words(texts: Iterable[str], backend: Any, *, most: int, spaced: bool = False, whole: bool = False) -> list[DomainWord]:
    """Return at most `most` words that `backend` (of the tokenizers library) splits, the most worthwhile first.

    `spaced` takes only words after white space, for tokenizers whose pieces begin with the space. `whole` takes no stems.
    """
    counts = count_words((_normalise(text, backend) for text in texts), spaced=spaced)
    candidates = counts if whole else counts | count_stems(counts)
    frequent = {word: count for word, count in candidates.items() if count >= LEAST_COUNT and 2 <= len(word) <= LONGEST}
    listed = sorted(frequent)
    split = [tuple(found.ids) for found in backend.encode_batch(listed, add_special_tokens=False)]
    unknown = backend.token_to_id(_get_unknown(backend) or "")
    found = [
        DomainWord(word, frequent[word], pieces)
        for word, pieces in zip(listed, split, strict=True)
        if len(pieces) > 1 or (pieces and pieces[0] == unknown)
    ]
    return choose_words(found, most=most)


def count_words(texts: Iterable[str], *, spaced: bool = False) -> Counter[str]:
    """Count the words of texts; those of digits alone are none.

    >>> sorted(count_words(["a cat, (the cat)"]).items())
    [('a', 1), ('cat', 2), ('the', 1)]
    """
    made: Counter[str] = Counter()
    for text in texts:
        for match in _WORD.finditer(text):
            if not spaced or match.start() == 0 or text[match.start() - 1].isspace():
                made[match[0]] += 1
    return made


def count_stems(words: Mapping[str, int]) -> dict[str, int]:
    """Count the beginnings of Korean words that stand before several endings; the whole word counts as an ending too.

    >>> count_stems({"법률은": 2, "법률이": 3, "법률의": 1})
    {'법률': 6}
    """
    counts: Counter[str] = Counter()
    following: dict[str, set[str]] = {}
    for word, count in words.items():
        if _HANGUL.fullmatch(word):
            for length in range(2, len(word) + 1):
                counts[word[:length]] += count
                following.setdefault(word[:length], set()).add(word[length : length + 1])
    return {stem: counts[stem] for stem, ways in following.items() if len(ways) >= LEAST_ENDINGS}


def choose_words(words: Sequence[DomainWord], *, most: int) -> list[DomainWord]:
    """Return the words that save most pieces, one after the other, each counted only for what the chosen ones leave to it."""
    known = {word.word: word for word in words}
    chosen = _Chosen()
    heap = [(-chosen.count_saved(word), word.word) for word in words]
    heapq.heapify(heap)
    while heap and len(chosen.words) < most:
        before, name = heapq.heappop(heap)
        now = -chosen.count_saved(known[name])
        if now == before < 0:
            chosen.add(known[name])
        elif now < 0:
            heapq.heappush(heap, (now, name))
    return list(chosen.words.values())


class _Chosen:
    """The words chosen so far, and how much of each beginning's count they have taken."""

    def __init__(self) -> None:
        self.words: dict[str, DomainWord] = {}
        self._taken: Counter[str] = Counter()

    def count_saved(self, word: DomainWord) -> int:
        """Return how many pieces a word still saves: none where a longer chosen word stands, fewer where a chosen word begins it."""
        left = word.count - self._taken[word.word]
        begun = self._find_start(word.word)
        if begun is not None:
            return left * max(0, len(word.pieces) - len(begun.pieces))
        # an unknown word is one piece already, and saves its meaning
        return left * max(1, len(word.pieces) - 1)

    def add(self, word: DomainWord) -> None:
        """Choose a word."""
        left = word.count - self._taken[word.word]
        begun = self._find_start(word.word)
        for length in range(1 if begun is None else len(begun.word) + 1, len(word.word) + 1):
            self._taken[word.word[:length]] += left
        self.words[word.word] = word

    def _find_start(self, word: str) -> DomainWord | None:
        """Return the longest chosen word that this one begins with."""
        return next((self.words[word[:length]] for length in range(len(word) - 1, 1, -1) if word[:length] in self.words), None)


def _normalise(text: str, backend: Any) -> str:
    made: str = backend.normalizer.normalize_str(text) if backend.normalizer is not None else text
    return made.replace("▁", " ")


def _get_unknown(backend: Any) -> str | None:
    name: str | None = getattr(backend.model, "unk_token", None)
    return name


TokenizerKind: TypeAlias = Literal["wordpiece", "unigram", "other"]
_BETTER = 0.1
"""By how much a new piece's score beats the sum of its old pieces'."""


@dataclass(frozen=True)
class NewPiece:
    """A word that became a piece, its id, and the pieces it was split into before."""

    word: str
    id: int
    pieces: tuple[int, ...]


def get_tokenizer_kind(tokenizer: Any) -> TokenizerKind:
    """Return how the tokenizer's vocabulary can grow."""
    model = json.loads(tokenizer.backend_tokenizer.to_str())["model"]
    if model["type"] == "WordPiece":
        return "wordpiece"
    return "unigram" if model["type"] == "Unigram" and _find_free_id(tokenizer, model) is not None else "other"


def copy_backend(tokenizer: Any) -> Any:
    """Return a copy of the backend that neither pads nor cuts."""
    from tokenizers import Tokenizer

    made = Tokenizer.from_str(tokenizer.backend_tokenizer.to_str())
    made.no_padding()
    made.no_truncation()
    return made


def add_words(tokenizer: Any, words: Sequence[DomainWord], *, total: int) -> list[NewPiece]:
    """Put the words in and return those that are one piece now; `total` is the number of words that their counts are out of."""
    kind = get_tokenizer_kind(tokenizer)
    before = len(tokenizer)
    if kind == "other":
        _add_tokens(tokenizer, words)
    else:
        described = json.loads(tokenizer.backend_tokenizer.to_str())
        (_add_entries if kind == "wordpiece" else _add_scored)(tokenizer, described, words, total)
        _replace_backend(tokenizer, described)
    found = copy_backend(tokenizer).encode_batch([word.word for word in words], add_special_tokens=False)
    return [
        NewPiece(word.word, encoded.ids[0], word.pieces)
        for word, encoded in zip(words, found, strict=True)
        if len(encoded.ids) == 1 and encoded.ids[0] >= before
    ]


def _add_entries(tokenizer: Any, described: Any, words: Sequence[DomainWord], total: int) -> None:  # noqa: ARG001
    vocabulary: dict[str, int] = described["model"]["vocab"]
    first = _find_highest_id(tokenizer) + 1
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
    vocabulary += [[names[place], 0.0] for place in range(len(vocabulary), _find_free_id(tokenizer, model) or 0)]
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


def _find_highest_id(tokenizer: Any) -> int:
    vocabulary: dict[str, int] = tokenizer.get_vocab()
    return max(vocabulary.values())


def _find_free_id(tokenizer: Any, model: Any) -> int | None:
    """Return the id after all others of a Unigram tokenizer; None where ids beyond its list are not all added tokens'."""
    size, top = len(model["vocab"]), _find_highest_id(tokenizer)
    held = set(tokenizer.get_vocab().values())
    return top + 1 if all(place in held for place in range(size, top + 1)) else None


def extend_vocabulary(encoder: TrainableEncoder, texts: Sequence[str], *, words: int) -> list[NewPiece]:
    """Add up to `words` words that are frequent in the texts and split into many pieces; texts that have none are refused."""
    kind = get_tokenizer_kind(encoder.tokenizer)
    read = [text.lower() for text in texts] if encoder.text.lowercase else texts
    chosen = find_domain_words(read, copy_backend(encoder.tokenizer), most=words, spaced=kind == "unigram", whole=kind == "other")
    made = add_words(encoder.tokenizer, chosen, total=sum(len(text.split()) for text in read)) if chosen else []
    if not made:
        raise InputError(
            "no word of the text is frequent and split into pieces, so there is nothing to add\n  leave the vocabulary as it is"
        )
    _grow(encoder, made)
    return made


def _grow(encoder: TrainableEncoder, made: Sequence[NewPiece]) -> None:
    """Give each new piece the mean of its old pieces' embeddings."""
    whole = encoder.words
    assert isinstance(whole, nn.Embedding)
    old_VD = whole.weight.detach()
    size = max(len(old_VD), len(encoder.tokenizer), 1 + max(piece.id for piece in made))
    # a row that no piece has stays the mean of all, as harmless as any
    new_VD = old_VD.mean(dim=0).repeat(size, 1)
    new_VD[: len(old_VD)] = old_VD
    for piece in made:
        new_VD[piece.id] = old_VD[torch.tensor(piece.pieces)].mean(dim=0)
    encoder.set_words(nn.Embedding(size, old_VD.shape[1], padding_idx=whole.padding_idx, _weight=new_VD))
    backbone: Any = encoder.backbone
    backbone.config.vocab_size = size
