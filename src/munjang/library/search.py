"""A request → hits: rows are ranked, gathered into documents, read, and if wanted re-ranked.

A document stands in the answer once, with its best passage. `find` reads, inside the caller's snapshot, so that an answer never mixes two
commits; it also re-ranks by token vectors, whose codes it reads. `finish` re-ranks with a cross-encoder and cuts, and reads nothing.
`SearchWeights`, how much words and tokens weigh, are built in, or chosen by `munjang tune` and stored with a library.

`KnownKeys` names the metadata keys of a filter that no document has: a misspelt filter finds nothing, or everything, and looks right. A
key that some document has costs one look at the first of them, once a commit; all keys are read only to say what was meant.
"""

from __future__ import annotations

import json
import math
import warnings
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace

from munjang.errors import DamagedFile, UsageError, quote
from munjang.library.late import choose_search_codebook, match_words, score_passages
from munjang.library.ranking import COSINES, Hybrid, Query, Ranked, rank_rows
from munjang.library.rerank import rerank_hits
from munjang.library.results import Explanation, Hit, ScoredBy
from munjang.library.store import Place, Store, StoredCodebook
from munjang.library.turns import read_again
from munjang.library.vector_search import VectorSearch
from munjang.library.where import OWN_KEYS, Condition, keys_of
from munjang.library.words import words_in_common
from munjang.types import Encoder, Scorer
from munjang.vectors.maxsim import WEIGHT, WEIGHT_AFTER_MEANING
from munjang.wording import brief_repr, nearest_name


@brief_repr
@dataclass(frozen=True)
class SearchWeights:
    """The weights of a library's searches."""

    words: float = Hybrid.words
    """Of words, beside meaning, which has 1."""
    tokens: float = WEIGHT
    """Of token vectors after words and meaning; the rest goes to the first stage."""
    tokens_after_meaning: float = WEIGHT_AFTER_MEANING
    """Of token vectors after meaning alone."""

    def to_text(self) -> str:
        """Return the weights as a library stores them."""
        return json.dumps(asdict(self))


def read_weights(text: str | None, *, name: str) -> SearchWeights:
    """Return the weights that a library stores; the built-in ones where it stores none.

    >>> read_weights(None, name="a.db") == SearchWeights()
    True
    """
    if text is None:
        return SearchWeights()
    try:
        weights = SearchWeights(**{key: float(value) for key, value in json.loads(text).items()})
    except (ValueError, TypeError, AttributeError) as error:
        raise DamagedFile(f"{name}: the weights of its searches cannot be read\n  run munjang tune, or restore it from a copy") from error
    if not (0 <= weights.words < float("inf") and 0 <= weights.tokens <= 1 and 0 <= weights.tokens_after_meaning <= 1):
        raise DamagedFile(f"{name}: the weights of its searches are out of bounds\n  run munjang tune, or restore it from a copy")
    return weights


@dataclass(frozen=True)
class Request:
    """What is wanted of a search."""

    k: int
    where: Condition | None = None
    hybrid: Hybrid | None = None
    exact: bool | None = None
    without: frozenset[str] = frozenset()
    """Documents that are not wanted, by id."""
    min_score: float | None = None
    rerank: Scorer | None = None
    late: bool = False
    """Whether the best are re-ranked by token vectors."""
    rerank_depth: int = 50
    """Documents that a re-ranker gets to see."""
    rerank_share: float | None = None
    """The re-ranker's weight, else what it asks for; the rest goes to the first-stage score."""
    budget_seconds: float | None = None
    explain: bool = False
    as_typed: bool = False
    """Whether questions are taken word for word."""
    weights: SearchWeights = field(default_factory=SearchWeights)

    @property
    def needs_vectors(self) -> bool:
        """Whether vectors of questions are compared; words alone need no model."""
        return self.late or self.hybrid is None or self.hybrid.meaning > 0 or bool(self.without)

    def __post_init__(self) -> None:
        """Refuse a k that counts nothing, and a bound that nothing reaches."""
        if not hasattr(self.k, "__index__"):
            raise UsageError(f"k is {self.k!r}, expected a whole number, at least 1")
        if self.min_score is not None and math.isnan(self.min_score):
            raise UsageError("min_score is nan, expected a number")


@dataclass(frozen=True)
class Readers:
    """Who reads questions and documents; a library that was opened without a model has none."""

    queries: Encoder | None
    documents: Encoder | None


def find(
    store: Store, meaning: VectorSearch, queries: Sequence[Query], request: Request, *, readers: Readers | None = None
) -> list[list[Hit]]:
    """Return each query's hits, best first, as many as `finish` needs; `readers` are for token vectors."""
    reranks = request.rerank is not None or request.late
    k = max(request.k, request.rerank_depth) if reranks else request.k
    found = _documents(store, meaning, queries, request, k)
    source = _name_source(request)
    answers = [_hits(store, one, source) for one in found]
    if request.explain:
        way = store.settings().analyser
        answers = [_explain(hits, one, query, way) for hits, one, query in zip(answers, found, queries, strict=True)]
    if not request.late or readers is None or readers.queries is None or readers.documents is None:
        return answers
    book, has_codes = choose_search_codebook(store, readers.documents)
    return [
        _rerank_late(store, hits, [ranked.row for ranked, _ in one], query, request, book, has_codes, readers.queries, readers.documents)
        for hits, one, query in zip(answers, found, queries, strict=True)
    ]


def _name_source(request: Request) -> ScoredBy:
    if request.hybrid is None or not request.hybrid.words:
        return "meaning"
    return "meaning and words" if request.hybrid.meaning else "words"


def _rerank_late(
    store: Store,
    hits: list[Hit],
    rows: Sequence[int],
    query: Query,
    request: Request,
    book: StoredCodebook,
    has_codes: bool,
    query_encoder: Encoder,
    encoder: Encoder,
) -> list[Hit]:
    """Return the hits by MaxSim and their first-stage score, each with its weight."""
    if query.tokens_QD is None or not len(query.tokens_QD) or not hits:
        return hits
    depth = max(request.k, request.rerank_depth)
    texts = {row: hit.passage for row, hit in zip(rows[:depth], hits[:depth], strict=True)}
    codes = store.token_codes_of(list(texts)) if has_codes else {}
    late = score_passages(query.tokens_QD, texts, codes, book, encoder)
    usual = request.weights.tokens_after_meaning if request.hybrid is None else request.weights.tokens
    weight = usual if request.rerank_share is None else request.rerank_share
    scored = []
    for row, hit in zip(rows[:depth], hits[:depth], strict=True):
        own = late.scores[row]
        score = weight * own + (1 - weight) * hit.score
        explanation = hit.explanation
        if explanation is not None:
            matches = match_words(query.text, query.tokens_QD, hit, late.codes[row], book, query_encoder=query_encoder, encoder=encoder)
            explanation = replace(explanation, late=own, matches=matches)
        scored.append(replace(hit, score=score, reranked=True, scored_by="late", explanation=explanation))
    return sorted(scored, key=lambda hit: -hit.score) + hits[depth:]


def finish(answers: list[list[Hit]], texts: Sequence[str], request: Request) -> list[list[Hit]]:
    """Return what is left after re-ranking, the least score and k; `texts` are the questions as they were understood."""
    if request.rerank is not None:
        scorer, weight, budget = request.rerank, request.rerank_share, request.budget_seconds
        least = COSINES[0] if request.hybrid is None else request.hybrid.lowest
        answers = [
            rerank_hits(text, hits, scorer, weight=weight, least=least, budget_seconds=budget)
            for text, hits in zip(texts, answers, strict=True)
        ]
    lowest = request.min_score
    return [[hit for hit in hits if lowest is None or hit.score >= lowest][: request.k] for hits in answers]


def _documents(store: Store, meaning: VectorSearch, queries: Sequence[Query], request: Request, k: int) -> list[list[tuple[Ranked, Place]]]:
    """Return the k best documents of each query by their best passages; look deeper while passages of the same ones crowd the top."""
    answers: list[list[tuple[Ranked, Place]]] = [[] for _ in queries]
    pending = list(range(len(queries)))
    depth = k + len(request.without)
    while pending:
        ranked = rank_rows(
            store,
            meaning,
            [queries[i] for i in pending],
            depth,
            where=request.where,
            hybrid=request.hybrid,
            exact=request.exact,
        )
        for i, best in zip(pending, _best_passages(store, ranked, k, request.without), strict=True):
            answers[i] = best
        enough = {i for i, one in zip(pending, ranked, strict=True) if len(answers[i]) >= k or len(one) < depth}
        pending = [i for i in pending if i not in enough]
        depth *= 4
    return [answer[:k] for answer in answers]


def _best_passages(store: Store, ranked: Sequence[Sequence[Ranked]], k: int, without: frozenset[str]) -> list[list[tuple[Ranked, Place]]]:
    """Return the best passage of each document, k documents at least if there are so many; only the first rows are looked up."""
    best: list[dict[str, tuple[Ranked, Place]]] = [{} for _ in ranked]
    pending, at, width = list(range(len(ranked))), 0, 2 * k
    while pending:
        parts = {i: ranked[i][at : at + width] for i in pending}
        places = store.places(sorted({each.row for part in parts.values() for each in part}))
        for i, part in parts.items():
            for each in part:
                place = places.get(each.row)
                if place is not None and place.id not in without:
                    best[i].setdefault(place.id, (each, place))
        at, width = at + width, 4 * width
        pending = [i for i in pending if len(best[i]) < k and at < len(ranked[i])]
    return [list(one.values()) for one in best]


def _hits(store: Store, found: Sequence[tuple[Ranked, Place]], source: ScoredBy) -> list[Hit]:
    documents = store.get([place.id for _, place in found])
    hits = []
    for ranked, place in found:
        document = documents.get(place.id)
        if document is None or not 0 <= place.start <= place.stop <= len(document.text):
            raise DamagedFile(f"{store.name}: passage {place.row} has no position in its document\n  run munjang check")
        hits.append(Hit(document.id, ranked.score, document.text, document.metadata, place.start, place.stop, scored_by=source))
    return hits


def _explain(hits: Sequence[Hit], found: Sequence[tuple[Ranked, Place]], query: Query, way: str) -> list[Hit]:
    return [replace(hit, explanation=_make_explanation(hit, ranked, query, way)) for hit, (ranked, _) in zip(hits, found, strict=True)]


def _make_explanation(hit: Hit, ranked: Ranked, query: Query, way: str) -> Explanation:
    words = words_in_common(hit.passage, query.words, way) if query.words else ()
    return Explanation(ranked.cosine, ranked.meaning_rank, ranked.bm25, ranked.words_rank, words, words_share=ranked.words_share)


MOST_KEYS = 1_000
"""Keys of the library that are searched for the one that was meant."""
LISTED_KEYS = 8


class UnknownKeyWarning(UserWarning):
    """A filter asks for a metadata key that no document of the library has."""


class KnownKeys:
    """Remembers which keys the documents of a store have, for as long as nothing is committed; safe from many threads."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._seen: tuple[int, frozenset[str]] = (-1, frozenset())

    def check(self, where: Condition | None, *, strict: bool, notes: list[str] | None) -> None:
        """Warn the caller of `Library.search` of keys that no document has; or refuse them (`strict`), or append sentences to `notes`."""
        unknown = [] if where is None else read_again(lambda: self.name_unknown(where))
        if unknown and strict:
            raise UsageError("\n".join(unknown))
        if notes is not None:
            notes.extend(unknown)
            return
        for note in unknown:
            warnings.warn(f"{self._store.name}: {note}", UnknownKeyWarning, stacklevel=5)

    def name_unknown(self, where: Condition) -> list[str]:
        """Return a sentence for each key of the filter that no document has; none in a library without documents."""
        generation = self._store.generation()
        known = self._seen[1] if self._seen[0] == generation else frozenset()
        asked = [key for key in keys_of(where) if key not in OWN_KEYS and key not in known]
        unknown = [key for key in asked if not self._store.has_key(key)]
        self._seen = (generation, known.union(asked).difference(unknown))
        if not unknown or not self._store.count()[0]:
            return []
        keys = self._store.keys(MOST_KEYS)
        hints = [f"; {_meant(key, keys)}" for key in unknown[:LISTED_KEYS]] + [""] * len(unknown[LISTED_KEYS:])
        return [f"no document has the metadata key {quote(key)}{hint}" for key, hint in zip(unknown, hints, strict=True)]


def _meant(key: str, keys: list[str]) -> str:
    near = nearest_name(key.lower(), (each.lower() for each in keys))
    meant = next((each for each in keys if each.lower() == near), None)
    if meant is not None:
        return f"did you mean {quote(meant)}?"
    listed = ", ".join(map(quote, keys[:LISTED_KEYS])) + (" …" if len(keys) > LISTED_KEYS else "")
    return f"there are: {listed}" if keys else "no document has any metadata"
