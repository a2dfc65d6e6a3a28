"""A tokenizer's description and the pieces to keep → the description of the smaller tokenizer.

Works on the contents of a tokenizer.json. Unigram pieces keep their scores; the way that a text is cut stays the same wherever all pieces
of the old way are kept:

- Unigram takes the likeliest way; a way that is there no longer cannot win. What an unknown character costs hangs on the lowest score, so
  one piece with the lowest score stays (`list_anchors`).
- WordPiece takes the longest piece each time; a word that comes out unknown must fail at the same place, so the pieces on the way to the
  failure count as used (`list_pieces_before_failure`).

BPE builds pieces from others step by step, so pieces cannot be taken out one by one; it is refused.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import tokenizers

from munjang.errors import FolderError, UsageError, quote
from munjang.text.tokenizer_files import TokenizerFiles
from munjang.text.unicode import Script, is_shared, is_written_with
from munjang.types import Floats, Ints

MARKERS = ("▁", "##")
"""What a piece begins with to say that a word begins (SentencePiece) or goes on (WordPiece)."""


@dataclass(frozen=True)
class PieceList:
    """A vocabulary: row i of the embeddings is piece i; None is a number that no piece has."""

    texts_V: Sequence[str | None]
    likelihoods_V: Floats
    """Higher is likelier; only their order counts."""
    always: frozenset[int]
    """Pieces that must stay whatever the texts use."""


@dataclass(frozen=True)
class PieceChoice:
    """Which pieces stay."""

    kept_K: Ints
    """Old numbers, ascending: the place is the new number."""
    used: int
    """How many pieces the texts use often enough."""
    dropped_used: int
    """How many of these had to go because there was no room."""
    filled: int
    """How many stay though the texts do not use them, because there was room."""


def find_surface(piece: str) -> str:
    """Return the text of a piece without its marker.

    >>> find_surface("▁문장"), find_surface("##을"), find_surface("▁")
    ('문장', '을', '')
    """
    return next((piece.removeprefix(marker) for marker in MARKERS if piece.startswith(marker) and piece != "##"), piece)


def choose_pieces(pieces: PieceList, counts_V: Ints, *, scripts: Sequence[Script], minimum_count: int, size: int | None) -> PieceChoice:
    """Choose `size` pieces, or as many as the texts use `minimum_count` times where no size is asked for."""
    if minimum_count < 1:
        raise UsageError(f"minimum_count={minimum_count}, expected 1 or more")
    kept = pieces.always | {number for number, text in enumerate(pieces.texts_V) if text is not None and _is_basic(text, scripts)}
    if size is not None and size < len(kept):
        raise UsageError(
            f"a vocabulary of {size:,} pieces is too small: special tokens and single characters alone are {len(kept):,}\n"
            "  ask for more pieces, or for fewer scripts"
        )
    by_count = np.argsort(-counts_V, kind="stable")
    used = [int(number) for number in by_count[: int((counts_V >= minimum_count).sum())] if pieces.texts_V[number] is not None]
    fresh = [number for number in used if number not in kept]
    room = len(fresh) if size is None else size - len(kept)
    kept |= set(fresh[:room])
    filling = [] if size is None else list(_fill_up(pieces, scripts, kept, size - len(kept)))
    kept_K = np.array(sorted(kept | set(filling)), np.int64)
    return PieceChoice(kept_K, used=len(used), dropped_used=max(len(fresh) - room, 0), filled=len(filling))


def _is_basic(piece: str, scripts: Sequence[Script]) -> bool:
    """Tell whether a piece is a bare marker, or one character that a wanted text may hold."""
    text = find_surface(piece)
    if len(text) > 1:
        return False
    return not text or is_shared(text) or any(is_written_with(text, script.letters) for script in scripts)


def _fill_up(pieces: PieceList, scripts: Sequence[Script], kept: frozenset[int] | set[int], room: int) -> Iterator[int]:
    taken: set[int] = set()
    likeliest = np.argsort(-pieces.likelihoods_V, kind="stable").tolist()
    for script in scripts:
        for number in likeliest:
            if len(taken) >= room:
                return
            text = pieces.texts_V[number]
            if text is not None and number not in kept and number not in taken and is_written_with(find_surface(text), script.words):
                taken.add(number)
                yield number


CUTTABLE = ("Unigram", "WordPiece")
MANY_IDS = 1_000
"""The padding token stands before this, or ids before it are not kept."""


def find_algorithm(files: TokenizerFiles) -> str:
    """Return "Unigram" or "WordPiece", or refuse the tokenizer."""
    model = files.data["model"]
    found = str(model.get("type") or ("Unigram" if isinstance(model["vocab"], list) else "unknown"))
    if found not in CUTTABLE:
        raise UsageError(
            f"{files.where}: a {quote(found)} vocabulary cannot be pruned, expected {' or '.join(CUTTABLE)}\n"
            "  the other steps (layers, dimension, half) work on this model"
        )
    return found


def list_pieces(files: TokenizerFiles, *, special: frozenset[int], padding: int) -> PieceList:
    """Return the pieces in the order of their numbers, with those that must stay."""
    model = files.data["model"]
    pairs = enumerate(model["vocab"]) if isinstance(model["vocab"], list) else [(n, (text, -n)) for text, n in model["vocab"].items()]
    found = {number: (str(entry[0]), float(entry[1])) for number, entry in pairs}
    added = {int(token["id"]): str(token["content"]) for token in files.data.get("added_tokens") or []}
    count = max([*found, *added]) + 1
    texts = [found.get(number, (added.get(number), 0.0))[0] for number in range(count)]
    likelihoods = np.array([found.get(number, ("", -np.inf))[1] for number in range(count)], np.float64)
    always = special | set(added) | list_anchors(files, likelihoods)
    if padding < MANY_IDS:  # in the RoBERTa families positions count from the padding's number, so it must not move
        always |= {number for number in range(padding + 1) if texts[number] is not None}
    return PieceList(texts, likelihoods, frozenset(always))


def list_anchors(files: TokenizerFiles, likelihoods: np.ndarray[Any, np.dtype[np.float64]]) -> set[int]:
    """Return the pieces that decide how unknown text is cut: one with the lowest score, and single bytes."""
    model = files.data["model"]
    if not isinstance(model["vocab"], list):
        return set()
    lowest = int(np.argmin(likelihoods[: len(model["vocab"])]))
    bytes_ = {number for number, (text, _) in enumerate(model["vocab"]) if len(text) == 6 and text.startswith("<0x")}
    return {lowest} | (bytes_ if model.get("byte_fallback") else set())


def cut_tokenizer(files: TokenizerFiles, new_number: Mapping[int, int]) -> TokenizerFiles:
    """Return the tokenizer that has only the pieces that `new_number` gives a number."""
    data, model = files.data, files.data["model"]
    vocabulary: Any
    if isinstance(model["vocab"], list):
        vocabulary = [entry for number, entry in enumerate(model["vocab"]) if number in new_number]
    else:
        vocabulary = {text: new_number[number] for text, number in model["vocab"].items() if number in new_number}
    smaller = {**model, "vocab": vocabulary}
    if model.get("unk_id") is not None:
        smaller["unk_id"] = new_number[model["unk_id"]]
    added = [{**token, "id": new_number[token["id"]]} for token in data.get("added_tokens") or []]
    cut = {**data, "model": smaller, "added_tokens": added, "padding": None, "truncation": None}
    cut["post_processor"] = _renumber(data.get("post_processor"), new_number)
    # the family's own class may build its vocabulary anew from other files; this one reads tokenizer.json as it stands
    settings = {**files.settings, "tokenizer_class": "PreTrainedTokenizerFast"}
    settings.pop("added_tokens_decoder", None)
    return replace(files, data=cut, settings=settings)


def _renumber(processor: Any, new_number: Mapping[int, int]) -> Any:
    """Renumber the special tokens that a post-processor puts around a text."""
    if not isinstance(processor, dict):
        return processor
    kind = processor.get("type")
    if kind == "Sequence":
        return {**processor, "processors": [_renumber(one, new_number) for one in processor["processors"]]}
    if kind == "TemplateProcessing":
        tokens = {
            name: {**token, "ids": [new_number[number] for number in token["ids"]]} for name, token in processor["special_tokens"].items()
        }
        return {**processor, "special_tokens": tokens}
    if kind in ("BertProcessing", "RobertaProcessing"):
        return {**processor, **{role: [processor[role][0], new_number[processor[role][1]]] for role in ("sep", "cls")}}
    if kind == "ByteLevel":
        return processor
    raise FolderError(f"the tokenizer's post-processor {quote(str(kind))} is not one that can be renumbered")


def list_pieces_before_failure(files: TokenizerFiles, texts: Sequence[str]) -> Iterator[int]:
    """Yield the WordPiece numbers matched, in words that come out unknown, before nothing matched any more."""
    model = files.data["model"]
    vocabulary, marker = model["vocab"], model.get("continuing_subword_prefix", "##")
    longest = int(model.get("max_input_chars_per_word", 100))
    tokenizer = tokenizers.Tokenizer.from_str(json.dumps(files.data, ensure_ascii=False))
    for text in texts:
        normal = tokenizer.normalizer.normalize_str(text) if tokenizer.normalizer else text
        for word, _ in tokenizer.pre_tokenizer.pre_tokenize_str(normal) if tokenizer.pre_tokenizer else [(normal, None)]:
            matched = _cut_greedily(word, vocabulary, marker) if len(word) <= longest else None
            yield from matched or ()


def _cut_greedily(word: str, vocabulary: Mapping[str, int], marker: str) -> list[int]:
    matched: list[int] = []
    start = 0
    while start < len(word):
        prefix = marker if start else ""
        stop = next((end for end in range(len(word), start, -1) if prefix + word[start:end] in vocabulary), None)
        if stop is None:
            break
        matched.append(vocabulary[prefix + word[start:stop]])
        start = stop
    return matched
