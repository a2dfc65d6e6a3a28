"""A tokenizer's description and the pieces to keep → the description of the smaller tokenizer.

Works on the contents of a tokenizer.json. Unigram pieces keep their scores; the way that a text is cut stays the same wherever all pieces
of the old way are kept:

- Unigram takes the likeliest way; a way that is there no longer cannot win. What an unknown character costs hangs on the lowest score, so
  one piece with the lowest score stays (`anchors`).
- WordPiece takes the longest piece each time; a word that comes out unknown must fail at the same place, so the pieces on the way to the
  failure count as used (`pieces_before_failure`).

BPE builds pieces from others step by step, so pieces cannot be taken out one by one; it is refused.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import tokenizers

from munjang.errors import FolderError, UsageError, shown
from munjang.models.compress.choose_pieces import PieceList
from munjang.text.tokenizer_files import TokenizerFiles

CUTTABLE = ("Unigram", "WordPiece")
MANY_IDS = 1_000
"""The padding token stands before this, or ids before it are not kept."""


def algorithm_of(files: TokenizerFiles) -> str:
    """Return "Unigram" or "WordPiece", or refuse the tokenizer."""
    model = files.data["model"]
    found = str(model.get("type") or ("Unigram" if isinstance(model["vocab"], list) else "unknown"))
    if found not in CUTTABLE:
        raise UsageError(
            f"{files.where}: a {shown(found)} vocabulary cannot be pruned, expected {' or '.join(CUTTABLE)}\n"
            "  the other steps (layers, dimension, half) work on this model"
        )
    return found


def piece_list(files: TokenizerFiles, *, special: frozenset[int], padding: int) -> PieceList:
    """Return the pieces in the order of their numbers, with those that must stay."""
    model = files.data["model"]
    pairs = enumerate(model["vocab"]) if isinstance(model["vocab"], list) else [(n, (text, -n)) for text, n in model["vocab"].items()]
    found = {number: (str(entry[0]), float(entry[1])) for number, entry in pairs}
    added = {int(token["id"]): str(token["content"]) for token in files.data.get("added_tokens") or []}
    count = max([*found, *added]) + 1
    texts = [found.get(number, (added.get(number), 0.0))[0] for number in range(count)]
    likelihoods = np.array([found.get(number, ("", -np.inf))[1] for number in range(count)], np.float64)
    always = special | set(added) | anchors(files, likelihoods)
    if padding < MANY_IDS:  # in the RoBERTa families positions count from the padding's number, so it must not move
        always |= {number for number in range(padding + 1) if texts[number] is not None}
    return PieceList(texts, likelihoods, frozenset(always))


def anchors(files: TokenizerFiles, likelihoods: np.ndarray[Any, np.dtype[np.float64]]) -> set[int]:
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
    cut["post_processor"] = _renumbered(data.get("post_processor"), new_number)
    # the family's own class may build its vocabulary anew from other files; this one reads tokenizer.json as it stands
    settings = {**files.settings, "tokenizer_class": "PreTrainedTokenizerFast"}
    settings.pop("added_tokens_decoder", None)
    return replace(files, data=cut, settings=settings)


def _renumbered(processor: Any, new_number: Mapping[int, int]) -> Any:
    """Renumber the special tokens that a post-processor puts around a text."""
    if not isinstance(processor, dict):
        return processor
    kind = processor.get("type")
    if kind == "Sequence":
        return {**processor, "processors": [_renumbered(one, new_number) for one in processor["processors"]]}
    if kind == "TemplateProcessing":
        tokens = {
            name: {**token, "ids": [new_number[number] for number in token["ids"]]} for name, token in processor["special_tokens"].items()
        }
        return {**processor, "special_tokens": tokens}
    if kind in ("BertProcessing", "RobertaProcessing"):
        return {**processor, **{role: [processor[role][0], new_number[processor[role][1]]] for role in ("sep", "cls")}}
    if kind == "ByteLevel":
        return processor
    raise FolderError(f"the tokenizer's post-processor {shown(str(kind))} is not one that can be renumbered")


def pieces_before_failure(files: TokenizerFiles, texts: Sequence[str]) -> Iterator[int]:
    """Yield the WordPiece numbers matched, in words that come out unknown, before nothing matched any more."""
    model = files.data["model"]
    vocabulary, marker = model["vocab"], model.get("continuing_subword_prefix", "##")
    longest = int(model.get("max_input_chars_per_word", 100))
    tokenizer = tokenizers.Tokenizer.from_str(json.dumps(files.data, ensure_ascii=False))
    for text in texts:
        normal = tokenizer.normalizer.normalize_str(text) if tokenizer.normalizer else text
        for word, _ in tokenizer.pre_tokenizer.pre_tokenize_str(normal) if tokenizer.pre_tokenizer else [(normal, None)]:
            matched = _greedy(word, vocabulary, marker) if len(word) <= longest else None
            yield from matched or ()


def _greedy(word: str, vocabulary: Mapping[str, int], marker: str) -> list[int]:
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
