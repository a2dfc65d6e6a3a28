"""A threshold is a cosine; what is none is refused before scikit-learn sees it."""

from __future__ import annotations

import pytest

from munjang.analyze.clusters import Method, cluster
from munjang.errors import UsageError

ROWS = [[1.0, 0.0], [0.0, 1.0], [1.0, 0.1]]


@pytest.mark.parametrize("threshold", [float("nan"), float("inf"), 5.0, -1.5])
@pytest.mark.parametrize("method", ["agglomerative", "communities"])
def test_a_threshold_outside_of_cosines_is_refused(method: Method, threshold: float) -> None:
    if method == "agglomerative":
        pytest.importorskip("sklearn", reason="scikit-learn is not installed")
    with pytest.raises(UsageError, match="expected -1 to 1"):
        cluster(ROWS, method=method, threshold=threshold, min_size=2)


@pytest.mark.parametrize("threshold", [-1.0, 0.0, 1.0])
def test_the_ends_are_allowed(threshold: float) -> None:
    pytest.importorskip("sklearn", reason="scikit-learn is not installed")
    assert len(cluster(ROWS, method="agglomerative", threshold=threshold).labels_N) == 3
