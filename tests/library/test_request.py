"""A request that makes no sense is refused in words."""

from __future__ import annotations

from typing import Any

import pytest

from munjang.errors import UsageError
from munjang.library.library import Library


@pytest.fixture
def filled(library: Library) -> Library:
    library.add([{"id": "a", "text": "the rain"}, {"id": "b", "text": "the sun"}])
    return library


@pytest.mark.parametrize("k", [0, -1, 1.5, 2.0])
def test_k_is_a_whole_number_from_one(filled: Library, k: Any) -> None:
    with pytest.raises(UsageError, match="k is"):
        filled.search("rain", k=k)


def test_a_bound_that_is_no_number_is_refused(filled: Library) -> None:
    with pytest.raises(UsageError, match="min_score is nan"):
        filled.search("rain", min_score=float("nan"))


def test_what_scores_no_pairs_is_no_reranker(filled: Library, encoder: Any) -> None:
    with pytest.raises(UsageError, match=r"rerank is a StubEncoder, .* expected a loaded model such as CrossEncoder"):
        filled.search("rain", rerank=encoder)
