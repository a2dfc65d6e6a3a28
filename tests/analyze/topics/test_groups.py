"""Which rows begin a topic together, in collections too small for a graph of neighbours."""

from __future__ import annotations

import numpy as np
import pytest
from tests.analyze.topics.settings import topic_settings

from munjang.analyze.topics.groups import find_groups


@pytest.mark.parametrize("pairs", [2, 3, 4, 5])
def test_a_handful_of_rows_in_pairs_becomes_those_pairs(pairs: int) -> None:
    chance = np.random.default_rng(pairs)
    themes_PR = np.eye(pairs, dtype=np.float32).repeat(2, axis=0)
    rows_NR = themes_PR + 0.1 * chance.normal(size=themes_PR.shape).astype(np.float32)
    rows_NR -= rows_NR.mean(axis=0)
    order = chance.permutation(2 * pairs)
    labels_N = find_groups(rows_NR[order], topic_settings())
    found = {frozenset(np.flatnonzero(labels_N == label).tolist()) for label in range(labels_N.max() + 1)}
    assert found == {frozenset(np.flatnonzero(order // 2 == pair).tolist()) for pair in range(pairs)}


def test_a_handful_of_rows_that_are_all_apart_or_all_one_stays_so() -> None:
    apart = find_groups(np.eye(4, dtype=np.float32) - 0.25, topic_settings(min_size=1))
    assert apart.tolist() == [0, 1, 2, 3]
    one = find_groups(np.ones((4, 3), np.float32), topic_settings(min_size=1))
    assert one.tolist() == [0, 0, 0, 0]
