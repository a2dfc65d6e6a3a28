"""Questions with their answers → the weights of words and tokens that rank the answers of a library best, by cross-validation.

Without questions, pseudo-questions are made of the library itself: titles in the metadata, else the first sentences of documents with
several passages, whose own passage is then left out of the answer. Candidates are gathered once for each question with the parts of their
scores; every pair of weights ranks the same ones. Weights are chosen on all folds but one and scored on that one. The library's weights
change only if the chosen ones do better than the built-in ones on questions that they were not chosen on.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Annotated

import numpy as np

from munjang.errors import UsageError
from munjang.library.late import find_codebook, score_passages
from munjang.library.library import Library
from munjang.library.ranking import Hybrid, Query, Ranked, rank_rows
from munjang.library.search import SearchWeights
from munjang.options import Option, Seed, check_options
from munjang.types import Floats
from munjang.wording import brief_repr, count

TITLES = ("title", "제목", "headline", "subject", "heading", "question", "name")
"""Metadata keys that hold titles, best first."""
WORDS = (0.0, 0.15, 0.3, 0.45, 0.6, 0.8, 1.0, 1.5, 2.5)
TOKENS = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
CUT = 10
CANDIDATES = 50
LEAST = 20
"""Questions below which nothing is chosen."""
_SENTENCE = re.compile(r"^\s*(.{12,300}?[.!?。])(?:\s|$)", re.DOTALL)


@brief_repr
@dataclass(frozen=True)
class TuneReport:
    """What was chosen, and what it is worth: nDCG@10 of questions that weights were not chosen on."""

    questions: int
    source: str
    """Where the questions come from: "labels", "titles" or "first sentences"."""
    built_in: float
    tuned: float
    weights: SearchWeights
    """Those of the library from now on."""
    changed: bool


@dataclass(frozen=True)
class _Question:
    """The candidates of one question: the parts of their scores, and which of them answer it."""

    cosine_C: Floats
    words_C: Floats
    tokens_C: Floats | None
    gain_C: Floats
    ideal: float


def tune(
    library: Library,
    questions: Sequence[tuple[str, str]] | None = None,
    *,
    folds: Annotated[int, Option("Number of folds of the cross-validation.", min=2)] = 5,
    limit: Annotated[int, Option("Use at most this many questions, drawn at random.", min=LEAST)] = 500,
    seed: Seed = 0,
    write: Annotated[bool, Option("Store the weights in the library.", flags=("--write/--dry-run",))] = True,
) -> TuneReport:
    """Choose how much words and token vectors weigh in this library's searches, and store it there.

    `questions` are pairs of a question and the id of a document that answers it; a question may stand there several times. Without them,
    titles or first sentences of the library's own documents are its questions.
    """
    check_options(tune, locals())
    asked, source = (_group(questions), "labels") if questions is not None else _make_questions(library, limit, seed)
    chosen = sorted(asked)
    if len(chosen) > limit:
        chosen = sorted(np.random.default_rng(seed).choice(np.array(chosen, dtype=object), limit, replace=False).tolist())
    rows = [each for text in chosen if (each := _gather(library, text, asked[text], leave_own=source == "first sentences")) is not None]
    if len(rows) < LEAST:
        raise UsageError(
            f"{library.store.name}: {count(len(rows), 'question')} with an answer among the best {CANDIDATES}, expected at least {LEAST}\n"
            "  give more questions, each with the id of a document that answers it"
        )
    has_tokens = rows[0].tokens_C is not None
    grid = [*product(WORDS, TOKENS if has_tokens else (0.0,))]
    table_GN = np.array([[_score(each, words, tokens, meaning_only=False) for each in rows] for words, tokens in grid])
    built_in = SearchWeights()
    own_N = np.array([_score(each, built_in.words, built_in.tokens if has_tokens else 0.0, meaning_only=False) for each in rows])
    fold_N = np.random.default_rng(seed).permutation(len(rows)) % folds
    held_N = np.zeros(len(rows))
    for fold in range(folds):
        held_N[fold_N == fold] = table_GN[table_GN[:, fold_N != fold].mean(axis=1).argmax()][fold_N == fold]
    words, tokens = grid[int(table_GN.mean(axis=1).argmax())]
    better = bool(held_N.mean() > own_N.mean())
    weights = replace(built_in, words=words, tokens=tokens if has_tokens else built_in.tokens) if better else built_in
    if has_tokens:
        alone = [np.mean([_score(each, 0.0, tokens, meaning_only=True) for each in rows]) for tokens in TOKENS]
        weights = replace(weights, tokens_after_meaning=TOKENS[int(np.argmax(alone))]) if better else weights
    if write:
        library.write_weights(weights if better else None)
    return TuneReport(len(rows), source, float(own_N.mean()), float(held_N.mean()), weights, better)


def _group(questions: Sequence[tuple[str, str]]) -> dict[str, set[str]]:
    asked: dict[str, set[str]] = {}
    for text, id in questions:
        asked.setdefault(text, set()).add(str(id))
    return asked


def _make_questions(library: Library, limit: int, seed: int) -> tuple[dict[str, set[str]], str]:
    """Return questions made of titles, else of first sentences; those that several documents share answer all of them."""
    titles: dict[str, set[str]] = {}
    sentences: dict[str, set[str]] = {}
    for text, title, id, passages in _list_documents(library):
        if title:
            titles.setdefault(title, set()).add(id)
        elif passages > 1 and (match := _SENTENCE.match(text)):
            sentences.setdefault(match.group(1).strip(), set()).add(id)
    asked, source = (titles, "titles") if len(titles) >= min(LEAST, limit) else (sentences, "first sentences")
    if len(asked) < LEAST:
        found = f"{count(len(titles), 'title')} and {count(len(sentences), 'first sentence')} of documents with several passages"
        raise UsageError(
            f"{library.store.name}: has {found}, expected at least {LEAST} of one\n"
            "  give questions, each with the id of a document that answers it"
        )
    drawn = np.random.default_rng(seed).permutation(len(asked))[: 2 * limit]
    names = sorted(asked)
    return {names[number]: asked[names[number]] for number in drawn.tolist()}, source


def _list_documents(library: Library) -> Iterator[tuple[str, str, str, int]]:
    for block in library.store.entries():
        for entry in block:
            known: Mapping[str, object] = {key.lower(): value for key, value in entry.document.metadata.items()}
            title = next((value for key in TITLES if isinstance(value := known.get(key), str) and value.strip()), "")
            yield entry.document.text, title.strip(), entry.document.id, len(entry.passages)


def _gather(library: Library, text: str, answers: set[str], *, leave_own: bool) -> _Question | None:
    """Return the best candidates by words and by meaning with their parts; None if none of them answers."""
    [query] = library.prepare_queries([text])
    store = library.store
    with store.snapshot():
        ranked = rank_rows(store, library.vector_search, [query], 2 * CANDIDATES, where=None, hybrid=Hybrid(), exact=None)[0]
        places = store.places([each.row for each in ranked])
        best: dict[str, Ranked] = {}
        texts: dict[int, str] = {}
        documents = store.get(sorted({place.id for place in places.values()}))
        for each in ranked:
            place = places[each.row]
            passage = documents[place.id].text[place.start : place.stop]
            if place.id in best or (leave_own and text in passage):
                continue
            best[place.id] = each
            texts[each.row] = passage
            if len(best) == 2 * CANDIDATES:
                break
        gain_C = np.array([1.0 if id in answers else 0.0 for id in best])
        if not gain_C.any():
            return None
        tokens_C = _score_tokens(library, query, texts)
    floor = min((each.cosine for each in ranked if each.cosine is not None), default=0.0)
    cosine_C = np.array([floor if each.cosine is None else each.cosine for each in best.values()])
    words_C = np.array([each.words_share or 0.0 for each in best.values()])
    ideal = float(sum(1 / np.log2(rank + 2) for rank in range(min(len(answers), CUT))))
    return _Question(cosine_C, words_C, tokens_C, gain_C, ideal)


def _score_tokens(library: Library, query: Query, texts: Mapping[int, str]) -> Floats | None:
    book = find_codebook(library.store)
    if book is None or query.tokens_QD is None or library.encoder is None or not len(query.tokens_QD):
        return None
    late = score_passages(query.tokens_QD, texts, library.store.token_codes_of(list(texts)), book, library.encoder)
    return np.array([late.scores[row] for row in texts])


def _score(each: _Question, words: float, tokens: float, *, meaning_only: bool) -> float:
    """Return nDCG@10 of the candidates as a search with these weights would rank them."""
    first_C = each.cosine_C if meaning_only else (0.5 * each.cosine_C + words * each.words_C) / (0.5 + words)
    order = np.argsort(-first_C, kind="stable")[:CANDIDATES]
    score_C = first_C[order] if each.tokens_C is None else tokens * each.tokens_C[order] + (1 - tokens) * first_C[order]
    gain = each.gain_C[order][np.argsort(-score_C, kind="stable")[:CUT]]
    return float((gain / np.log2(np.arange(len(gain)) + 2)).sum() / each.ideal)
