"""What somebody asks → what a search compares: the options as a request, the questions as vectors, words and tokens.

Documents that somebody likes or does not like become part of the vector (Rocchio, 1971): query·q + like·mean(liked) − unlike·mean(unliked),
of unit vectors, at unit length. Without a question it is a recommendation.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Literal

import numpy as np

from munjang.errors import InputError, UsageError, quote
from munjang.library.late import encode_questions, find_codebook, require_tokens
from munjang.library.matrix import document_vector, unit
from munjang.library.ranking import Hybrid, Query
from munjang.library.records import storable
from munjang.library.search import Request, read_weights
from munjang.library.store import Store
from munjang.library.tolerance import AskedQuestion, ask_as_meant, ask_as_typed
from munjang.library.turns import read_again
from munjang.library.where import Condition, parse_where
from munjang.text.unicode import clean
from munjang.text.validate_texts import validate_text
from munjang.types import Encoder, Scorer, TokenEncoder, Vectors, check_scorer


def check_question(text: str) -> str:
    """Return a question without what no reader sees; refuse one that asks nothing."""
    text = clean(validate_text(text, name="query"))
    if not text.strip():
        raise UsageError("the query is empty, expected something to look for")
    return text


def make_request(
    values: Mapping[str, Any], rerank: Scorer | Literal["late"] | bool | None, store: Store, encoder: Encoder | None
) -> Request:
    """Return what the options of `Library.search` ask for; `values` may hold more.

    By default a library with token vectors re-ranks by them, if `encoder`, which reads questions, gives them.
    """
    where, by = values["where"], values["by"]
    if not isinstance(where, str | Condition | None):
        raise UsageError(f"where is a {type(where).__name__}, expected a filter such as \"year >= 2020 and category = '소설'\"")
    weights = read_weights(read_again(store.settings).weights, name=store.name)
    by_words = Hybrid(meaning=0) if by == "words" else by or Hybrid(words=weights.words)
    asked = {each.name: values[each.name] for each in fields(Request) if each.name in values}
    asked |= {"where": parse_where(where) if isinstance(where, str) else where, "hybrid": None if by == "meaning" else by_words}
    asked |= {"without": frozenset((*values["like"], *values["unlike"])), "weights": weights, "rerank": None}
    request = Request(**asked)
    if rerank is not None and not isinstance(rerank, bool) and rerank != "late":
        check_scorer(rerank, "rerank")
        return replace(request, rerank=rerank)
    if rerank is False or values.get("query", "") is None or (rerank is None and by == "words"):
        return request
    late = read_again(lambda: find_codebook(store)) is not None and isinstance(encoder, TokenEncoder)
    if rerank and encoder is not None:
        require_tokens(encoder)
        late = True
    if rerank and request.budget_seconds is not None:
        fact = "budget_seconds limits a cross-encoder, and token vectors re-rank"
        raise UsageError(f"{fact}\n  hand in a cross-encoder (rerank=…), or leave budget_seconds out").at_shell(
            "--budget limits a cross-encoder, and token vectors re-rank\n  name one with --reranker, or leave --budget out"
        )
    return replace(request, late=late)


def make_queries(
    questions: Sequence[str], request: Request, encoder: Encoder | None, store: Store, *, notes: list[str] | None = None
) -> list[Query]:
    """Return the questions as they are compared; `encoder` is not needed by a request for words alone. `notes` get what was changed."""
    needs_words = request.hybrid is not None or request.explain
    if request.as_typed and not needs_words:  # nothing is asked of Kiwi, which takes longer to load than the model
        asked = [AskedQuestion(question, ()) for question in questions]
    else:
        asked = read_again(lambda: _ask(questions, store, as_typed=request.as_typed))
    if notes is not None:
        notes += [f"searched for {quote(each.text)}, which the library holds" for each in asked if each.is_corrected]
    texts = [each.text for each in asked]
    tokens: Sequence[Vectors | None] = [None] * len(texts)
    if encoder is None:
        vectors = np.zeros((len(texts), 1), np.float32)
    elif request.late:
        vectors, tokens = encode_questions(encoder, texts)
    else:
        vectors = encoder.encode(texts)
    vectors_ND = unit(np.asarray(vectors, dtype=np.float32))
    words = [each.words if needs_words else () for each in asked]
    return [Query(*each) for each in zip(vectors_ND, words, texts, tokens, strict=True)]


def _ask(questions: Sequence[str], store: Store, *, as_typed: bool) -> list[AskedQuestion]:
    way = store.settings().analyser
    return [ask_as_typed(question, way) if as_typed else ask_as_meant(question, way, store) for question in questions]


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


def blend_liked(store: Store, query_D: Vectors | None, like: Sequence[str], unlike: Sequence[str]) -> Vectors:
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
