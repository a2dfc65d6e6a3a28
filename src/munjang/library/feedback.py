"""A question, things one likes and things one does not → one vector to search with (Rocchio, 1971).

vector = query·q + like·mean(liked) − unlike·mean(unliked), of unit vectors, at unit length. Without a question it is a recommendation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from munjang.errors import InputError, quote
from munjang.library.matrix import document_vector, unit
from munjang.library.records import storable
from munjang.library.store import Store
from munjang.types import Vectors


@dataclass(frozen=True)
class Rocchio:
    """The weight of each part."""

    query: float = 1.0
    like: float = 0.75
    unlike: float = 0.25


def blend(query_D: Vectors | None, liked_ND: Vectors, unliked_ND: Vectors, *, weights: Rocchio) -> Vectors:
    """Return the unit vector that is near what is wanted and away from what is not.

    >>> blend(None, np.eye(2, dtype=np.float32)[:1], np.eye(2, dtype=np.float32)[1:], weights=Rocchio(like=1, unlike=1)).round(2).tolist()
    [0.7099999785423279, -0.7099999785423279]
    """
    parts = [weights.query * unit(query_D)] if query_D is not None else []
    if len(liked_ND):
        parts.append(weights.like * unit(liked_ND).mean(axis=0))
    if len(unliked_ND):
        parts.append(-weights.unlike * unit(unliked_ND).mean(axis=0))
    total_D = np.sum(parts, axis=0).astype(np.float32)
    if not np.linalg.norm(total_D) > 1e-6:
        raise InputError("like and unlike cancel each other out, expected documents that differ")
    return unit(total_D)


def liked_vector(store: Store, query_D: Vectors | None, like: Sequence[str], unlike: Sequence[str]) -> Vectors:
    """Return the unit vector near the query and the liked documents and away from the others; an unknown id is refused."""
    with store.snapshot():
        return blend(query_D, _vectors_of(store, like), _vectors_of(store, unlike), weights=Rocchio())


def _vectors_of(store: Store, ids: Sequence[str]) -> Vectors:
    """Return one vector for each document."""
    block = store.vectors_of(store.rows_of([id for id in ids if storable(id)]))
    places = store.places(block.rows_N)
    at: dict[str, list[int]] = {}
    for number, id in enumerate(block.ids):
        at.setdefault(id, []).append(number)
    missing = [id for id in ids if id not in at]
    if missing:
        raise InputError(f"{store.name}: there is no document {quote(missing[0])}\n  check the id")
    lengths = [places[int(row)].stop - places[int(row)].start for row in block.rows_N]
    found = [document_vector(block.vectors_ND[at[id]], [lengths[number] for number in at[id]]) for id in ids]
    return np.stack(found) if ids else block.vectors_ND
