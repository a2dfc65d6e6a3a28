"""`CrossEncoder.rank(k=…)` gives the k best, or says what k may be."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.conftest import write_cross_encoder

from munjang import CrossEncoder
from munjang.errors import UsageError

TEXTS = ["the rain", "a cat", "snow is in winter"]


@pytest.fixture(scope="module")
def scorer(tmp_path_factory: pytest.TempPathFactory) -> CrossEncoder:
    folder: Path = tmp_path_factory.mktemp("cross")
    write_cross_encoder(folder, 1)
    return CrossEncoder.load(folder)


def test_k_is_a_prefix_of_the_whole_ranking(scorer: CrossEncoder) -> None:
    whole = scorer.rank("the sun", TEXTS).documents
    for k in (1, 2, 3, 9):
        assert scorer.rank("the sun", TEXTS, k=k).documents == whole[:k]


@pytest.mark.parametrize("k", [0, -1, 1.5])
def test_a_k_that_counts_nothing_is_refused(scorer: CrossEncoder, k: Any) -> None:
    with pytest.raises(UsageError, match="expected a whole number, at least 1"):
        scorer.rank("the sun", TEXTS, k=k)
