"""A stream of rows with keys made of their content → a sample that does not depend on the order of the rows.

Kept are the rows of the smallest keys. Keys are hashes, so this is a fair sample of the different contents: rows with one key are one.
`choose_covering` takes fewer of a sample, so that every region keeps some.

Shapes: N rows, D dimensions, K kept.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from munjang.types import Ints, Vectors
from munjang.vectors.centres import find_centres, find_nearest_centre

Keys = NDArray[np.uint64]
"""Two numbers for each row, (n, 2): 128 bits of a hash."""


def make_content_keys(contents: Iterable[bytes]) -> Keys:
    """Return the key of each content.

    >>> make_content_keys([b"rain", b"snow", b"rain"])[:, 0].argsort(kind="stable").tolist()
    [0, 2, 1]
    """
    digests = b"".join(hashlib.blake2b(each, digest_size=16).digest() for each in contents)
    return np.frombuffer(digests, dtype="<u8").reshape(-1, 2)


class ContentSample:
    """The rows of the `size` smallest keys so far."""

    def __init__(self, size: int, dimension: int) -> None:
        self.size = size
        self._key_K: NDArray[np.uint64] = np.empty(0, dtype=np.uint64)
        self._place_K: Ints = np.empty(0, dtype=np.int64)
        self._rows_SD: Vectors = np.empty((size, dimension), dtype=np.float32)  # takes memory where it is written to

    def offer(self, keys_N2: Keys, vectors_ND: Vectors, start: int) -> None:
        """Let the rows of a block, whose first is row `start`, compete."""
        key_M, first_M = np.unique(keys_N2[:, 0], return_index=True)
        if len(self._key_K) == self.size:
            first_M = first_M[key_M < self._key_K.max(initial=0)]
        first_M = first_M[~np.isin(keys_N2[first_M, 0], self._key_K)]
        free = self.size - len(self._key_K)
        self._append(first_M[:free], keys_N2, vectors_ND, start)
        rest_M = first_M[free:]
        both = np.concatenate([self._key_K, keys_N2[rest_M, 0]])
        stays = np.zeros(len(both), dtype=bool)
        stays[np.argsort(both, kind="stable")[: self.size]] = True
        slots, come = np.flatnonzero(~stays[: self.size]), rest_M[stays[self.size :]]
        self._key_K[slots], self._place_K[slots], self._rows_SD[slots] = keys_N2[come, 0], come + start, vectors_ND[come]

    def _append(self, rows_M: Ints, keys_N2: Keys, vectors_ND: Vectors, start: int) -> None:
        held = len(self._key_K)
        self._rows_SD[held : held + len(rows_M)] = vectors_ND[rows_M]
        self._key_K = np.concatenate([self._key_K, keys_N2[rows_M, 0]])
        self._place_K = np.concatenate([self._place_K, rows_M + start])

    def rows(self) -> tuple[Ints, Vectors]:
        """Return where the kept rows stand, and the rows, by ascending keys."""
        order = np.argsort(self._key_K)
        return self._place_K[order], self._rows_SD[order]


def choose_covering(unit_KD: Vectors, count: int, *, least: int, seed: int = 0) -> Ints:
    """Return `count` places of a sample, spread over its regions: of each region `least` rows if it has them, of the rest a fair share.

    The sample must be in an order that says nothing, as a `ContentSample` is.
    """
    if count >= len(unit_KD):
        return np.arange(len(unit_KD))
    regions = max(1, count // (4 * least))
    region_K = find_nearest_centre(unit_KD, find_centres(unit_KD, regions, seed=seed))
    order = np.argsort(region_K, kind="stable")
    begins = np.searchsorted(region_K[order], np.arange(regions))
    rank_K = np.empty(len(unit_KD), dtype=np.int64)
    rank_K[order] = np.arange(len(order)) - begins[region_K[order]]
    must = np.flatnonzero(rank_K < least)[:count]
    others = np.setdiff1d(np.arange(len(unit_KD)), must, assume_unique=True)[: count - len(must)]
    return np.sort(np.concatenate([must, others]))


def find_first_rows(keys_N2: Keys) -> Ints:
    """Return for each row the first row of the same content, itself if there is none before it.

    >>> find_first_rows(make_content_keys([b"a", b"b", b"a"])).tolist()
    [0, 1, 0]
    """
    order = np.lexsort((keys_N2[:, 1], keys_N2[:, 0]))  # stable: equal keys by row
    if not len(order):
        return order
    starts = np.empty(len(order), dtype=bool)
    starts[0] = True
    np.any(keys_N2[order[1:]] != keys_N2[order[:-1]], axis=1, out=starts[1:])
    first_N = np.empty(len(order), dtype=np.int64)
    first_N[order] = order[np.flatnonzero(starts)][np.cumsum(starts) - 1]
    return first_N


def list_contents(vectors: NDArray[np.generic], texts: Sequence[str] | None) -> Iterable[bytes]:
    """Return what makes rows equal: their texts if there are any, else their bits."""
    if texts is not None:
        return (text.encode("utf-8", "surrogatepass") for text in texts)
    return (row.tobytes() for row in np.ascontiguousarray(vectors))
