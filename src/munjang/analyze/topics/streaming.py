"""Texts and vectors of which only a block is held at a time, millions of them → a TopicModel.

Topics are found in a sample that covers the space: different texts, those of the smallest hashes, and of every region at least as many as
make a topic. All documents are then assigned in a stream, and the words of their topics are counted in a stream, over the sample's
vocabulary. The model keeps the sample as its documents; sizes, outliers and words are those of all (`Streamed`).

The sample, the topics found in it and what is counted do not depend on the order of the documents, where equal texts have equal
vectors.

Shapes: N documents of a block, D dimensions, P components, V words.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Annotated, TypeAlias

import numpy as np

from munjang.analyze.topics.describe import describe_topics
from munjang.analyze.topics.fitting import fit_topics, sort_by_size
from munjang.analyze.topics.model import Prototypes, Streamed, TopicModel, find_nearest, find_outlier_floors
from munjang.analyze.topics.topic_words import Bag, WordIndex
from munjang.errors import InputError
from munjang.options import Option, check_options
from munjang.text.tagging import Tagger, choose_tagger
from munjang.text.unicode import clean
from munjang.types import Ints, Vectors
from munjang.vectors.content_sample import ContentSample, choose_covering, list_contents, make_content_keys
from munjang.vectors.similarity import prepare_rows

_POOL = 4
"""Candidates for each text of the sample."""
PASSES = 4
_LEAST = 10
"""Texts of a region that are in the sample if the region has so many."""

ReadBlocks: TypeAlias = Callable[[], Iterable[tuple[Sequence[str], Vectors]]]
"""Gives all documents in blocks, texts and vectors, the same ones whenever it is called."""


def fit_topics_stream(
    read: ReadBlocks,
    fit: Callable[..., TopicModel] = fit_topics,
    *,
    sample: Annotated[
        int, Option("For a folder of `munjang bulk`: the number of different texts that topics are found in.", min=100)
    ] = 20_000,
    by: Tagger | None = None,
    progress: Callable[[int], None] | None = None,
) -> TopicModel:
    """Find topics in a sample of the documents and count them in all.

    `fit` finds them, called with texts, vectors and `by`: `functools.partial(fit_topics, topics=20)` changes its options. Documents
    are read four times; `progress` is called with how many were read.
    """
    check_options(fit_topics_stream, locals())
    chosen = by or choose_tagger()
    advance = progress or (lambda _: None)
    place_S, texts, vectors_SD = _choose_sample(read, sample, advance)
    model = fit(texts, vectors=vectors_SD, by=chosen)
    component_N, score_N = _assign(model, read, advance)
    if isinstance(model.assigner, Prototypes):
        floors_P = find_outlier_floors(component_N, score_N, len(model.topic_P), share=model.settings.outliers)
        model = replace(model, floors_P=floors_P)
    component_N[score_N < model.floors_P[component_N]] = -1
    words = _count_words(model, read, component_N, chosen, advance)
    size_P = np.bincount(component_N[component_N >= 0], minlength=len(model.topic_P))
    model = replace(model, streamed=Streamed(len(component_N), size_P, words, place_S))
    return sort_by_size(model) if isinstance(model.assigner, Prototypes) else describe_topics(model)


def _choose_sample(read: ReadBlocks, size: int, advance: Callable[[int], None]) -> tuple[Ints, list[str], Vectors]:
    """Return where the texts of the sample stand, the texts and their vectors."""
    pool: ContentSample | None = None
    start = 0
    for texts, vectors_ND in read():
        pool = pool or ContentSample(_POOL * size, vectors_ND.shape[1])
        pool.offer(make_content_keys(list_contents(vectors_ND, [clean(text) for text in texts])), vectors_ND, start)
        start += len(texts)
        advance(len(texts))
    if pool is None:
        raise InputError("there is no text, expected at least one document")
    place_K, vectors_KD = pool.rows()
    chosen = choose_covering(prepare_rows(vectors_KD, "cosine"), size, least=_LEAST)
    place_S, vectors_SD = place_K[chosen], vectors_KD[chosen]
    found: dict[int, str] = {}
    wanted, start = np.sort(place_S), 0
    for texts, _ in read():
        low, high = np.searchsorted(wanted, [start, start + len(texts)])
        found |= {place: texts[place - start] for place in wanted[low:high].tolist()}
        start += len(texts)
        advance(len(texts))
    return place_S, [found[place] for place in place_S.tolist()], vectors_SD


def _assign(model: TopicModel, read: ReadBlocks, advance: Callable[[int], None]) -> tuple[Ints, Vectors]:
    """Return the component of every document and how well it fits."""
    components, scores = [], []
    for _, vectors_ND in read():
        component_N, score_N = find_nearest(model.assigner, model.assigner.features(vectors_ND))
        components.append(component_N)
        scores.append(score_N)
        advance(len(vectors_ND))
    return np.concatenate(components), np.concatenate(scores)


def _count_words(model: TopicModel, read: ReadBlocks, component_N: Ints, by: Tagger, advance: Callable[[int], None]) -> Bag:
    """Count the words of every component's documents; a component of −1 does not count."""
    vocabulary = model.bag.vocabulary
    index = WordIndex(vocabulary, by)
    counts_PV = np.zeros((len(model.topic_P), len(vocabulary)), dtype=np.int64)
    start = 0
    for texts, _ in read():
        held = component_N[start : start + len(texts)]
        terms, lengths = index.read([text for text, component in zip(texts, held.tolist(), strict=True) if component >= 0])
        flat = np.repeat(held[held >= 0], lengths) * len(vocabulary) + terms
        found, count = np.unique(flat, return_counts=True)
        counts_PV.reshape(-1)[found] += count
        start += len(texts)
        advance(len(texts))
    starts = np.concatenate([[0], np.cumsum(np.count_nonzero(counts_PV, axis=1))])
    row_E, term_E = np.nonzero(counts_PV)
    return Bag(vocabulary, starts.astype(np.int64), term_E.astype(np.int32), counts_PV[row_E, term_E].astype(np.int32))
