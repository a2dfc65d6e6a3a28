"""Topics → where each lies on a flat map: the two directions in which their centres differ most.

Shapes: K topics, R features.
"""

from __future__ import annotations

import numpy as np

from munjang.analyze.topics.ask import topic_centres
from munjang.analyze.topics.model import TopicModel


def topic_places(model: TopicModel) -> dict[int, tuple[float, float]]:
    """Return a place for each topic; a single topic lies in the middle."""
    ids = np.unique(model.topic_P).tolist()
    centred_KR = topic_centres(model).astype(np.float64)
    centred_KR -= centred_KR.mean(axis=0)
    left_KK, strengths, _ = np.linalg.svd(centred_KR, full_matrices=False)
    flat_K2 = np.zeros((len(ids), 2))
    kept = min(2, len(strengths))
    flat_K2[:, :kept] = left_KK[:, :kept] * strengths[:kept]
    for axis in range(kept):  # the sign of a direction is arbitrary: the farthest topic lies on the positive side
        if flat_K2[np.abs(flat_K2[:, axis]).argmax(), axis] < 0:
            flat_K2[:, axis] *= -1
    return {id: (float(x), float(y)) for id, (x, y) in zip(ids, flat_K2, strict=True)}
