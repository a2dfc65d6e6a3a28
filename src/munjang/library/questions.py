"""What somebody asks → what a search compares: the options as a request, the questions as vectors, words and tokens."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from munjang.errors import UsageError
from munjang.library.late import encode_questions
from munjang.library.matrix import unit
from munjang.library.ranking import Hybrid, Query
from munjang.library.search import Request
from munjang.library.weights import SearchWeights
from munjang.library.where import Condition, parse_where
from munjang.library.words import question_words, restore_spaces
from munjang.text.unicode import clean
from munjang.text.validate_texts import validate_text
from munjang.types import Encoder, Scorer, Vectors

QUERY_CHARACTERS = 10_000
"""Characters of a query that are looked at for words."""


def check_question(text: str) -> str:
    """Return a question without what no reader sees; refuse one that asks nothing."""
    text = clean(validate_text(text, name="query"))
    if not text.strip():
        raise UsageError("the query is empty, expected something to look for")
    return text


def make_request(values: Mapping[str, Any], *, rerank: Scorer | None, weights: SearchWeights) -> Request:
    """Return what the options of `Library.search` ask for; `values` may hold more."""
    where, by = values["where"], values["by"]
    if not isinstance(where, str | Condition | None):
        raise UsageError(f"where is a {type(where).__name__}, expected a filter such as \"year >= 2020 and category = '소설'\"")
    return Request(
        k=values["k"],
        where=parse_where(where) if isinstance(where, str) else where,
        hybrid=None if by == "meaning" else Hybrid(meaning=0) if by == "words" else by or Hybrid(words=weights.words),
        weights=weights,
        exact=values["exact"],
        without=frozenset((*values["like"], *values["unlike"])),
        min_score=values["min_score"],
        rerank=rerank,
        rerank_share=values["rerank_share"],
        budget_seconds=values["budget_seconds"],
        explain=values["explain"],
    )


def make_queries(texts: Sequence[str], request: Request, encoder: Encoder | None, analyser: str) -> list[Query]:
    """Return the questions as they are compared; `encoder` is not needed by a request for words alone."""
    texts = [restore_spaces(text, analyser) for text in texts]
    tokens: Sequence[Vectors | None] = [None] * len(texts)
    if encoder is None:
        vectors = np.zeros((len(texts), 1), np.float32)
    elif request.late:
        vectors, tokens = encode_questions(encoder, texts)
    else:
        vectors = encoder.encode(texts)
    vectors_ND = unit(np.asarray(vectors, dtype=np.float32))
    words: list[tuple[str, ...]] = [()] * len(texts)
    if request.hybrid is not None or request.explain:
        words = [question_words(text[:QUERY_CHARACTERS], analyser) for text in texts]
    return [Query(*each) for each in zip(vectors_ND, words, texts, tokens, strict=True)]
