"""A model folder and texts → the same model with only the pieces that such texts need.

Vectors of a text whose pieces are all kept do not change: its pieces are the same, their rows are the same. That is checked before anything
is written. Other text of the kept scripts is cut into smaller pieces, at worst into single characters; what has no piece at all becomes the
unknown piece, as before.

A smaller tokenizer.json cuts a text as the old one did wherever all pieces of that cut are kept. Pieces keep their scores:

- Unigram takes the likeliest cut; one that is no longer possible cannot win. What an unknown character costs depends on the lowest score,
  so one piece with the lowest score stays (`list_anchors`).
- WordPiece takes the longest piece each time; a word that comes out unknown must fail at the same place, so the pieces before the failure
  count as used (`list_pieces_before_failure`).

BPE builds pieces from others step by step, so pieces cannot be taken out one by one; it is refused.

Shapes: V pieces, K kept pieces.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import tokenizers
from numpy.typing import NDArray

from munjang.engine.modules import TransformerModule
from munjang.errors import FolderError, MunjangError, UsageError, quote
from munjang.models.compress.parts import ModelParts, read_parts, write_parts
from munjang.options import Option
from munjang.text.tokenizer import Tokenizer
from munjang.text.tokenizer_files import TokenizerFiles
from munjang.text.unicode import Script, find_scripts, is_shared, is_written_with
from munjang.text.validate_texts import validate_texts
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


BLOCK = 4_096
"""Texts that are cut at once."""

CHECKED = 20_000
"""Texts that are cut by both tokenizers and compared."""

ROWS_PER_PIECE = (
    "lm_head.bias",
    "lm_head.decoder.weight",
    "lm_head.decoder.bias",
    "predictions.bias",
    "predictions.decoder.weight",
    "predictions.decoder.bias",
    "generator_lm_head.weight",
    "generator_lm_head.bias",
    "vocab_projector.weight",
    "vocab_projector.bias",
)
"""How tensors of masked-language-model heads end that have one row per piece, like the word embeddings."""


@dataclass(frozen=True)
class PruneOptions:
    """Which pieces to keep."""

    scripts: Annotated[Sequence[str], Option("Codes of the languages whose characters are kept.", commas=True)] = ("ko", "en")
    """Language codes; the order decides which language's pieces fill the room that is left."""
    minimum_count: Annotated[int, Option("Minimum number of times the texts use a token.", min=1)] = 1
    size: Annotated[int | None, Option("Keep this many tokens, the most useful ones.", min=1, flags=("--vocabulary",))] = None
    """Without it, as many as the texts use."""


@dataclass(frozen=True)
class Pruned:
    """What pruning did."""

    pieces_before: int
    pieces_after: int
    used: int
    dropped_used: int
    filled: int
    texts: int
    texts_unchanged: int
    """Texts all of whose pieces were kept: their vectors are unchanged."""
    tokens: int
    tokens_kept: int


def prune_vocabulary(folder: Path, target: Path, texts: Sequence[str], *, options: PruneOptions | None = None) -> Pruned:
    """Write `folder`'s model to `target` with the pieces that `texts` and the scripts need."""
    parts, report = prune_parts(read_parts(folder), texts, options=options or PruneOptions())
    write_parts(parts, target)
    return report


def prune_parts(parts: ModelParts, texts: Sequence[str], *, options: PruneOptions) -> tuple[ModelParts, Pruned]:
    """Return the parts with a smaller vocabulary, and what was done."""
    scripts, texts = find_scripts(options.scripts), validate_texts(texts)
    if not texts:
        raise UsageError("no texts to prune the vocabulary to; give the texts that the model will read, or some like them")
    algorithm = find_algorithm(parts.tokenizer)
    if "mapping" in parts.tensors or "weights" in parts.tensors:
        raise FolderError(f"{parts.folder.path}: a static model whose pieces share rows or have weights cannot be pruned")
    tokenizer = Tokenizer(parts.tokenizer)
    pieces = list_pieces(parts.tokenizer, special=tokenizer.special_ids, padding=tokenizer.pad_id)
    rows = parts.tensors[parts.word_table].shape[0]
    if len(pieces.texts_V) > rows:
        raise FolderError(f"{parts.folder.path}: {rows:,} word embeddings, but the tokenizer has {len(pieces.texts_V):,} pieces")
    lowered = isinstance(parts.base, TransformerModule) and parts.base.lowercase
    counts_V = _count_pieces(tokenizer, texts, len(pieces.texts_V), lowered=lowered)
    in_prompts = {number for prompt in parts.folder.prompts.values() for number in tokenizer.encode([prompt])[0]}
    pieces = replace(pieces, always=pieces.always | in_prompts)
    if algorithm == "WordPiece" and tokenizer.unk_id is not None and counts_V[tokenizer.unk_id]:
        failing = [text for text, ids in _cut(tokenizer, texts, lowered) if tokenizer.unk_id in ids]
        np.add.at(counts_V, np.fromiter(list_pieces_before_failure(parts.tokenizer, failing), np.int64), 1)
    choice = choose_pieces(pieces, counts_V, scripts=scripts, minimum_count=options.minimum_count, size=options.size)
    new_number = {int(old): new for new, old in enumerate(choice.kept_K)}
    smaller = _cut_parts(parts, choice, new_number)
    unchanged = _check_equal_cuts(tokenizer, Tokenizer(smaller.tokenizer), new_number, texts, lowered)
    report = Pruned(
        pieces_before=rows,
        pieces_after=len(choice.kept_K),
        used=choice.used,
        dropped_used=choice.dropped_used,
        filled=choice.filled,
        texts=len(texts),
        texts_unchanged=unchanged,
        tokens=int(counts_V.sum()),
        tokens_kept=int(counts_V[choice.kept_K].sum()),
    )
    return smaller, report


def _cut(tokenizer: Tokenizer, texts: Iterable[str], lowered: bool) -> Iterable[tuple[str, list[int]]]:
    waiting = iter(texts)
    while block := list(islice(waiting, BLOCK)):
        block = [text.lower() for text in block] if lowered else block
        yield from zip(block, tokenizer.encode(block), strict=True)


def _count_pieces(tokenizer: Tokenizer, texts: Iterable[str], size: int, *, lowered: bool) -> Ints:
    counts = Counter(number for _, ids in _cut(tokenizer, texts, lowered) for number in ids)
    counts_V = np.zeros(size, np.int64)
    counts_V[list(counts)] = list(counts.values())
    return counts_V


def _cut_parts(parts: ModelParts, choice: PieceChoice, new_number: Mapping[int, int]) -> ModelParts:
    rows = parts.tensors[parts.word_table].shape[0]

    def cut(name: str, tensor: NDArray[Any]) -> NDArray[Any]:
        per_piece = name == parts.word_table or (name.endswith(ROWS_PER_PIECE) and tensor.shape[0] == rows)
        return tensor[choice.kept_K] if per_piece else tensor

    tensors = {name: cut(name, tensor) for name, tensor in parts.tensors.items()}
    smaller = replace(parts, tensors=tensors, tokenizer=cut_tokenizer(parts.tokenizer, new_number))
    if not isinstance(parts.base, TransformerModule):
        return smaller
    config = {**parts.base.config, "vocab_size": len(choice.kept_K)}
    for key, number in parts.base.config.items():
        if key.endswith("_token_id") and isinstance(number, int):
            if number in new_number:
                config[key] = new_number[number]
            else:  # a number left over from another vocabulary
                del config[key]
    return smaller.with_config(config)


def _check_equal_cuts(old: Tokenizer, new: Tokenizer, new_number: Mapping[int, int], texts: Sequence[str], lowered: bool) -> int:
    """Return how many texts keep all pieces, and make sure that the first of them are cut as before."""
    unchanged = 0
    waiting: list[tuple[str, list[int]]] = []
    for text, ids in _cut(old, texts, lowered):
        expected = [new_number.get(number, -1) for number in ids]
        if -1 not in expected:
            unchanged += 1
            if len(waiting) < CHECKED:
                waiting.append((text, expected))
    found = new.encode([text for text, _ in waiting])
    wrong = sum(ids != expected for ids, (_, expected) in zip(found, waiting, strict=True))
    if wrong:
        raise MunjangError(f"{wrong:,} of {len(waiting):,} texts whose tokens are all kept are tokenized differently; nothing was written")
    return unchanged
