"""The pieces of a vocabulary and how often a text uses each → which of them to keep.

Kept always: what the caller says (special tokens and the like), single characters of the wanted scripts and of none (digits, punctuation,
emoji), so that any text of these scripts can still be cut. Then what the texts use, the most used first. If room is left, further pieces of
the scripts, in the order in which the scripts are named, the likeliest first. Reading tokenizers and cutting weights is left to others.

Shapes: V pieces, K kept pieces.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from munjang.errors import UsageError
from munjang.text.scripts import Script, is_shared, is_written_with
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
class Choice:
    """Which pieces stay."""

    kept_K: Ints
    """Old numbers, ascending: the place is the new number."""
    used: int
    """How many pieces the texts use often enough."""
    dropped_used: int
    """How many of these had to go because there was no room."""
    filled: int
    """How many stay though the texts do not use them, because there was room."""


def surface(piece: str) -> str:
    """Return the text of a piece without its marker.

    >>> surface("▁문장"), surface("##을"), surface("▁")
    ('문장', '을', '')
    """
    return next((piece.removeprefix(marker) for marker in MARKERS if piece.startswith(marker) and piece != "##"), piece)


def choose_pieces(pieces: PieceList, counts_V: Ints, *, scripts: Sequence[Script], minimum_count: int, size: int | None) -> Choice:
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
    filling = [] if size is None else list(_filling(pieces, scripts, kept, size - len(kept)))
    kept_K = np.array(sorted(kept | set(filling)), np.int64)
    return Choice(kept_K, used=len(used), dropped_used=max(len(fresh) - room, 0), filled=len(filling))


def _is_basic(piece: str, scripts: Sequence[Script]) -> bool:
    """Tell whether a piece is a bare marker, or one character that a wanted text may hold."""
    text = surface(piece)
    if len(text) > 1:
        return False
    return not text or is_shared(text) or any(is_written_with(text, script.letters) for script in scripts)


def _filling(pieces: PieceList, scripts: Sequence[Script], kept: frozenset[int] | set[int], room: int) -> Iterator[int]:
    taken: set[int] = set()
    likeliest = np.argsort(-pieces.likelihoods_V, kind="stable").tolist()
    for script in scripts:
        for number in likeliest:
            if len(taken) >= room:
                return
            text = pieces.texts_V[number]
            if text is not None and number not in kept and number not in taken and is_written_with(surface(text), script.words):
                taken.add(number)
                yield number
