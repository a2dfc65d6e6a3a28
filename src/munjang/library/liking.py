"""Ids of documents that are liked or not → the vector to search with."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from munjang.errors import InputError, shown
from munjang.library.incoming import storable
from munjang.library.matrix import unit
from munjang.library.rocchio import Rocchio, blend
from munjang.library.store import Store
from munjang.types import Vectors


def liked_vector(store: Store, query_D: Vectors | None, like: Sequence[str], unlike: Sequence[str]) -> Vectors:
    """Return the unit vector near the query and the liked documents and away from the others; an unknown id is refused."""
    with store.snapshot():
        return blend(query_D, _vectors_of(store, like), _vectors_of(store, unlike), weights=Rocchio())


def _vectors_of(store: Store, ids: Sequence[str]) -> Vectors:
    """Return one unit vector for each document: the direction of the sum of its passages."""
    block = store.vectors_of(store.rows_of([id for id in ids if storable(id)]))
    sums = {id: np.zeros(block.vectors_ND.shape[1], dtype=np.float32) for id in block.ids}
    missing = [id for id in ids if id not in sums]
    if missing:
        raise InputError(f"{store.name}: there is no document {shown(missing[0])}\n  check the id")
    for id, vector_D in zip(block.ids, unit(block.vectors_ND), strict=True):
        sums[id] += vector_D
    return unit(np.stack([sums[id] for id in ids])) if ids else block.vectors_ND
