"""Results → plain JSON values: numpy numbers become Python's, nan becomes null (JSON has no nan), intervals become [low, high]."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np

from munjang.evaluate.bootstrap import Interval


def jsonable(value: Any) -> Any:
    """Return `value` as JSON can hold it.

    >>> jsonable({"n": np.int64(3), "f1": float("nan"), "ci95": Interval(0.25, 0.5)})
    {'n': 3, 'f1': None, 'ci95': [0.25, 0.5]}
    """
    if isinstance(value, Interval):
        return jsonable(value.to_json())
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: jsonable(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, dict):
        return {str(key): jsonable(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple, np.ndarray)):
        return [jsonable(inner) for inner in value]
    if isinstance(value, (float, np.floating)):
        return float(value) if math.isfinite(value) else None
    return int(value) if isinstance(value, np.integer) else value
