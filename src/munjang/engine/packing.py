"""Token ids of a few texts → the arrays that one run of the engine takes.

No padding rows: ids of all texts stand one behind the other. Only the grid (texts × longest) that attention and pooling use has empty
places, and where all texts have one length there are none.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Any

import numpy as np

Feed = dict[str, np.ndarray[Any, Any]]


def pack(ids: Sequence[Sequence[int]], *, first_position: int, hidden_prefix: int = 0) -> Feed:
    """Return the engine's inputs for these texts; the first `hidden_prefix` places of each text do not count in pooling.

    >>> feed = pack([[5, 6, 7], [8]], first_position=0)
    >>> feed["ids"].tolist(), feed["slots"].tolist(), bool(feed["padded"])
    ([5, 6, 7, 8], [[0, 1, 2], [3, 0, 0]], True)
    """
    lengths_B = np.fromiter((len(one) for one in ids), np.int64, len(ids))
    total, longest = int(lengths_B.sum()), int(lengths_B.max())
    ids_T = np.fromiter(chain.from_iterable(ids), np.int64, total)
    if int(lengths_B.min()) == longest:
        return _equal(ids_T, len(ids), longest, first_position, hidden_prefix)
    starts_B = np.cumsum(lengths_B) - lengths_B
    places_S = np.arange(longest)
    mask_BS = places_S < lengths_B[:, None]
    slots_BS = np.where(mask_BS, starts_B[:, None] + places_S, 0)
    grid_positions_BS = np.broadcast_to(places_S, mask_BS.shape)
    return {
        "ids": ids_T,
        "positions": grid_positions_BS[mask_BS] + first_position,
        "slots": slots_BS,
        "rows": np.flatnonzero(mask_BS),
        "mask": mask_BS.astype(np.int32),
        "pool_mask": _pool_mask(mask_BS, hidden_prefix),
        "padded": np.array(True),
    }


def _equal(ids_T: np.ndarray[Any, Any], texts: int, length: int, first_position: int, hidden_prefix: int) -> Feed:
    mask_BS = np.ones((texts, length), np.int32)
    return {
        "ids": ids_T,
        "positions": np.tile(np.arange(first_position, first_position + length), texts),
        "slots": np.arange(texts * length).reshape(texts, length),
        "rows": np.zeros(1, np.int64),
        "mask": mask_BS,
        "pool_mask": _pool_mask(mask_BS, hidden_prefix),
        "padded": np.array(False),
    }


def _pool_mask(mask_BS: np.ndarray[Any, Any], hidden_prefix: int) -> np.ndarray[Any, Any]:
    pooled_BS = mask_BS.astype(np.float32)
    pooled_BS[:, :hidden_prefix] = 0
    return pooled_BS
