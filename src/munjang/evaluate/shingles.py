"""Texts → which of one list nearly equal which of another: character n-grams, MinHash, then exact Jaccard on the candidates.

Time and memory grow with the characters, not with the product of the lists: two texts are compared only if one of BANDS short signatures
agrees, and at most `max_candidates` are. A pair at Jaccard 0.8 is missed about once in 500; a pair that is reported is always truly that
similar.
"""

from __future__ import annotations

import functools
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

BANDS, ROWS = 12, 4
_CHUNK_CHARACTERS = 50_000  # of one pass: what fits in the processor's cache
_BUCKET = 20
_ORDERS = [
    (np.uint32(2 * odd + 1), np.uint32(shift)) for odd, shift in np.random.default_rng(2019).integers(0, 2**31, size=(BANDS * ROWS, 2))
]


@dataclass(frozen=True)
class Near:
    """Row `left` of one list and row `right` of the other share this part of their n-grams."""

    left: int
    right: int
    jaccard: float


def find_near_duplicates(
    left: Sequence[str], right: Sequence[str], *, threshold: float = 0.8, n: int = 4, max_candidates: int = 300_000
) -> tuple[list[Near], bool]:
    """Return for each row of `right` its nearest row of `left` at or above the threshold, and whether the bound cut the search short."""
    candidates, cut = _find_candidates(make_signatures(left, n=n), make_signatures(right, n=n), max_candidates)
    best: dict[int, Near] = {}
    grams = functools.lru_cache(maxsize=20_000)(lambda text: _cut_grams(text, n))
    for i, j in candidates:
        if not threshold <= (len(left[i]) + 1) / (len(right[j]) + 1) <= 1 / threshold:
            # No text with so many more characters shares enough of them, unless it repeats itself: such repeats are let go.
            continue
        a, b = grams(left[i]), grams(right[j])
        shared = len(a & b)
        similarity = shared / max(1, len(a) + len(b) - shared)
        if similarity >= threshold and (j not in best or similarity > best[j].jaccard):
            best[j] = Near(i, j, similarity)
    return [best[j] for j in sorted(best)], cut


def make_signatures(texts: Sequence[str], *, n: int = 4) -> NDArray[np.uint64]:
    """Return BANDS hashes for each text; two texts of Jaccard s agree in one with probability s ** ROWS."""
    parts = [_hash_minima(chunk, n) for chunk in _cut_chunks(texts)]
    mins = np.concatenate(parts) if parts else np.zeros((0, BANDS * ROWS), dtype=np.uint64)
    bands = mins.reshape(len(texts), BANDS, ROWS)
    mixed = np.zeros((len(texts), BANDS), dtype=np.uint64)
    for row in range(ROWS):
        mixed = (mixed ^ bands[:, :, row]) * np.uint64(0x9E3779B97F4A7C15)
        mixed ^= mixed >> np.uint64(29)
    return mixed


def _cut_grams(text: str, n: int) -> frozenset[str]:
    return frozenset(text[i : i + n] for i in range(max(1, len(text) - n + 1)))


def _cut_chunks(texts: Sequence[str]) -> Iterator[list[str]]:
    chunk: list[str] = []
    size = 0
    for text in texts:
        chunk.append(text)
        size += len(text)
        if size > _CHUNK_CHARACTERS:
            yield chunk
            chunk, size = [], 0
    if chunk:
        yield chunk


def _hash_minima(texts: list[str], n: int) -> NDArray[np.uint64]:
    """All n-grams of all texts hashed at once; the smallest of each text under BANDS × ROWS orders."""
    # A text shorter than n has one gram: itself, padded.
    padded = [text if len(text) >= n else text.ljust(n, "\0") for text in texts]
    # surrogatepass: a lone surrogate is bad text, but not this function's business
    codes = np.frombuffer("".join(padded).encode("utf-32-le", "surrogatepass"), dtype=np.uint32).astype(np.uint64)
    lengths = np.asarray([len(text) for text in padded])
    ends = np.cumsum(lengths)
    hashes = np.zeros(codes.size - n + 1, dtype=np.uint64)
    for offset in range(n):
        hashes = (hashes ^ codes[offset : offset + hashes.size]) * np.uint64(0x100000001B3)
        hashes ^= hashes >> np.uint64(32)
    inside = np.ones(hashes.size, dtype=bool)
    for back in range(1, n):
        crossing = ends[:-1] - back
        inside[crossing[crossing < hashes.size]] = False
    kept = (hashes[inside] >> np.uint64(16)).astype(np.uint32)
    starts = np.concatenate([[0], np.cumsum(lengths - n + 1)[:-1]])
    result = np.empty((len(texts), BANDS * ROWS), dtype=np.uint64)
    mixed = np.empty_like(kept)
    for column, (odd, shift) in enumerate(_ORDERS):
        np.multiply(kept, odd, out=mixed)
        np.add(mixed, shift, out=mixed)
        np.bitwise_xor(mixed, mixed >> np.uint32(15), out=mixed)
        np.multiply(mixed, np.uint32(0x2C1B3C6D), out=mixed)
        result[:, column] = np.minimum.reduceat(mixed, starts)
    return result


def _find_candidates(left: NDArray[np.uint64], right: NDArray[np.uint64], limit: int) -> tuple[list[tuple[int, int]], bool]:
    """Pairs of rows that agree in a band; at most _BUCKET left rows for one signature, since equal texts crowd there."""
    found: set[tuple[int, int]] = set()
    for band in range(BANDS):
        buckets: defaultdict[int, list[int]] = defaultdict(list)
        wanted = set(right[:, band].tolist())
        for i, key in enumerate(left[:, band].tolist()):
            if key in wanted and len(buckets[key]) < _BUCKET:
                buckets[key].append(i)
        for j, key in enumerate(right[:, band].tolist()):
            found.update((i, j) for i in buckets.get(key, ()))
            if len(found) > limit:
                return sorted(found, key=_order_by_right), True
    return sorted(found, key=_order_by_right), False


def _order_by_right(pair: tuple[int, int]) -> tuple[int, int]:
    return pair[1], pair[0]
