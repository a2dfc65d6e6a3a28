"""SentencePiece pieces → a `tokenizers.Tokenizer` that cuts text the way SentencePiece does.

Which id a piece has is the model family's affair: XLM-RoBERTa shifts them, KoBERT lists them in a vocab.txt, the others keep the file's
order. So each family makes a `Vocabulary` here, and one builder turns it into a tokenizer. Special tokens around the text are left to
`tokenizer_files`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers

from munjang.errors import FolderError
from munjang.text.sentencepiece import Algorithm, Kind, Piece, SentencePieceModel

SPACE = "▁"
_UNMATCHABLE = (Kind.UNKNOWN, Kind.CONTROL, Kind.UNUSED)


@dataclass(frozen=True)
class Vocabulary:
    """Pieces in the order of the ids the neural model knows, and the id of the unknown piece."""

    pieces: tuple[Piece, ...]
    unknown_id: int

    @property
    def hidden(self) -> frozenset[str]:
        """Pieces that no text may become."""
        return frozenset(piece.text for piece in self.pieces if piece.kind in _UNMATCHABLE)


@dataclass(frozen=True)
class Spelling:
    """What the ALBERT family does to a text before SentencePiece sees it."""

    lower_case: bool = False
    strip_accents: bool = False
    plain_quotes: bool = False


def file_order(model: SentencePieceModel) -> Vocabulary:
    """Ids as the file numbers them: ALBERT and most others."""
    return Vocabulary(model.pieces, model.unknown_id)


def fairseq_order(model: SentencePieceModel) -> Vocabulary:
    """Ids as XLM-RoBERTa numbers them: four special tokens, the file's pieces from the fourth on, then the mask."""
    head = tuple(Piece(text, 0.0, Kind.UNKNOWN if text == "<unk>" else Kind.CONTROL) for text in ("<s>", "<pad>", "</s>", "<unk>"))
    return Vocabulary((*head, *model.pieces[3:], Piece("<mask>", 0.0, Kind.CONTROL)), unknown_id=3)


def listed_order(model: SentencePieceModel, listed: Sequence[str], *, where: str) -> Vocabulary:
    """Ids as a vocab.txt numbers them: KoBERT. Every ordinary piece must be in the list, and the list must have [UNK] or <unk>."""
    known = {piece.text: piece for piece in model.pieces if piece.kind not in _UNMATCHABLE}
    missing = sorted(known.keys() - set(listed))
    unknown = next((name for name in ("[UNK]", "<unk>") if name in listed), None)
    if missing or unknown is None:
        found = f"{len(missing)} pieces of the SentencePiece model are not in it, {missing[0]!r} for one" if missing else "no [UNK] in it"
        raise FolderError(f"{where}: {found}\n  the vocabulary and the .model file must come from one model")
    pieces = tuple(known.get(text, Piece(text, 0.0, Kind.UNKNOWN if text == unknown else Kind.CONTROL)) for text in listed)
    return Vocabulary(pieces, listed.index(unknown))


def build(model: SentencePieceModel, vocabulary: Vocabulary, *, spelling: Spelling, where: str) -> Tokenizer:
    """Return a tokenizer without special tokens around the text."""
    if model.algorithm not in (Algorithm.UNIGRAM, Algorithm.BPE) or model.whitespace_as_suffix:
        what = "white space as suffix" if model.whitespace_as_suffix else f"the algorithm {model.algorithm.name}"
        raise FolderError(f"{where}: {what} is not supported, expected a Unigram or BPE model with white space as prefix")
    tokenizer = Tokenizer(_unigram(model, vocabulary, spelling) if model.algorithm is Algorithm.UNIGRAM else _bpe(model, vocabulary))
    tokenizer.normalizer = normalizers.Sequence(_normalizers(model, spelling))
    scheme = "always" if model.add_dummy_prefix else "never"
    pre_tokenizer = _pre_tokenizer(model, scheme)
    if pre_tokenizer is not None:
        tokenizer.pre_tokenizer = pre_tokenizer
    tokenizer.decoder = decoders.Metaspace(replacement=SPACE, prepend_scheme=scheme)
    return tokenizer


def _normalizers(model: SentencePieceModel, spelling: Spelling) -> list[normalizers.Normalizer]:
    steps: list[normalizers.Normalizer] = []
    if spelling.plain_quotes:
        steps += [normalizers.Replace("``", '"'), normalizers.Replace("''", '"')]
    if spelling.strip_accents:
        # NFC afterwards, or Hangul stays in pieces that no vocabulary knows
        steps += [normalizers.NFKD(), normalizers.StripAccents(), normalizers.NFC()]
    if spelling.lower_case:
        steps.append(normalizers.Lowercase())
    if model.charsmap:
        steps.append(normalizers.Precompiled(model.charsmap))
    if model.remove_extra_whitespaces:
        return [*steps, normalizers.Replace(Regex(r"\A +| +\z"), ""), normalizers.Replace(Regex(" {2,}"), " ")]
    if model.add_dummy_prefix:
        steps.append(normalizers.Prepend(SPACE))
    return [*steps, normalizers.Replace(" ", SPACE)]


def _pre_tokenizer(model: SentencePieceModel, scheme: str) -> pre_tokenizers.PreTokenizer | None:
    """Cut before each space; a model that keeps runs of spaces may have pieces with spaces inside, so its text stays whole."""
    if not model.remove_extra_whitespaces:
        return None
    metaspace = pre_tokenizers.Metaspace(replacement=SPACE, prepend_scheme=scheme)
    alone = [re.escape(piece.text) for piece in model.pieces if piece.kind is Kind.USER_DEFINED and len(piece.text) == 1]
    if model.algorithm is Algorithm.BPE and alone:
        return pre_tokenizers.Sequence([metaspace, pre_tokenizers.Split(Regex("|".join(alone)), "isolated")])
    return metaspace


def _unigram(model: SentencePieceModel, vocabulary: Vocabulary, spelling: Spelling) -> models.Unigram:
    best = max((piece.score for piece in model.pieces if piece.kind is Kind.NORMAL), default=0.0)

    def score(piece: Piece) -> float:
        if piece.kind is Kind.USER_DEFINED:
            # SentencePiece's own rule: a user-defined piece beats every other way to cut its bytes
            return len(piece.text.encode()) * best - 0.1
        if spelling.plain_quotes and len(piece.text) > 1 and piece.text[-1] == "," and piece.text[-2].isdigit():
            return piece.score - 100  # the ALBERT family never keeps a comma on a number
        return piece.score

    pieces = [(piece.text, score(piece)) for piece in vocabulary.pieces]
    return models.Unigram(pieces, unk_id=vocabulary.unknown_id, byte_fallback=model.byte_fallback)


def _bpe(model: SentencePieceModel, vocabulary: Vocabulary) -> models.BPE:
    ids = {piece.text: number for number, piece in enumerate(vocabulary.pieces)}
    merges: list[tuple[str, str]] = []
    by_score = sorted((piece for piece in model.pieces if piece.kind is Kind.NORMAL), key=lambda piece: -piece.score)
    mergeable = {piece.text for piece in by_score}
    for piece in by_score:
        halves = ((piece.text[:cut], piece.text[cut:]) for cut in range(1, len(piece.text)))
        merges += sorted((pair for pair in halves if mergeable.issuperset(pair)), key=lambda pair: (ids[pair[0]], ids[pair[1]]))
    unknown = vocabulary.pieces[vocabulary.unknown_id].text
    return models.BPE(ids, merges, unk_token=unknown, fuse_unk=True, byte_fallback=model.byte_fallback)
