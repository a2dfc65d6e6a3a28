"""Texts and vectors → a TopicModel.

Equal texts are one text: they are analysed and encoded once, weigh once in finding groups, and share a topic. Everything random is seeded.

Shapes: N documents, U different texts, D dimensions, R reduced dimensions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import Annotated

import numpy as np
from numpy.typing import ArrayLike, NDArray

from munjang.analyze.contextual import fit_contextual
from munjang.analyze.topics.describe import describe_topics
from munjang.analyze.topics.groups import compute_centres, find_groups, fit_projection
from munjang.analyze.topics.model import (
    NO_FLOOR,
    Assigner,
    Documents,
    Method,
    Prototypes,
    Reduction,
    TopicModel,
    TopicSettings,
    excerpt,
    find_nearest,
    find_outlier_floors,
    make_text_keys,
)
from munjang.analyze.topics.topic_words import Bag, bag_words
from munjang.errors import InputError, UsageError
from munjang.options import Option, Seed, check_options
from munjang.text.tagging import Tagger, choose_tagger
from munjang.text.unicode import clean
from munjang.text.validate_texts import validate_texts
from munjang.types import Encoder, Ints, Vectors, check_encoder
from munjang.vectors.similarity import to_rows


def anchor_by_seed_words(bag: Bag, guides: Sequence[Sequence[str]]) -> Ints:
    """Return the group of each document, −1 where it holds too few seed words.

    >>> from munjang.analyze.topics.topic_words import make_bag
    >>> anchor_by_seed_words(make_bag([["선거", "투표"], ["선거"], ["세금", "비"]]), [["선거", "투표"], ["세금"]]).tolist()
    [0, -1, 1]
    """
    hits_GN = np.zeros((len(guides), len(bag)), dtype=np.int64)
    column = {word: place for place, word in enumerate(bag.vocabulary)}
    rows_E = bag.rows()
    for group, words in enumerate(guides):
        wanted = [column[word.casefold()] for word in set(words) if word.casefold() in column]
        hits_GN[group] = np.bincount(rows_E[np.isin(bag.terms, wanted)], minlength=len(bag))
    least_G = np.array([min(2, len(set(words))) for words in guides])
    hits_GN[hits_GN < least_G[:, None]] = 0
    return np.where(hits_GN.max(axis=0) > 0, hits_GN.argmax(axis=0), -1)


def anchor_by_labels(rows_NR: Vectors, labels_LR: Vectors, *, least: float) -> Ints:
    """Return the nearest label of each row, −1 where none is near enough; all unit rows of one space."""
    scores_NL = rows_NR @ labels_LR.T
    return np.where(scores_NL.max(axis=1) >= least, scores_NL.argmax(axis=1), -1)


REFINEMENTS = 3
"""Times that centres move to the middle of the documents that chose them."""


def fit_topics(
    texts: Sequence[str],
    encoder: Encoder | None = None,
    *,
    method: Annotated[Method, Option("How documents are grouped; graph and hdbscan find the number of topics themselves.")] = "graph",
    topics: Annotated[int | None, Option("Maximum number of topics. Default: as many as are found.", min=1)] = None,
    min_size: Annotated[int, Option("Minimum documents in a topic; less in small collections.", min=1)] = 10,
    outliers: Annotated[float, Option("The largest fraction of documents without a topic.", min=0, max=1)] = 0.1,
    reduction: Annotated[Reduction, Option("How vectors are reduced before they are grouped.")] = "pca",
    dimensions: Annotated[int, Option("Dimensions that the reduction keeps.", min=1)] = 200,
    words: Annotated[int, Option("Number of words that describe a topic.", min=1, max=1_000)] = 10,
    diversity: Annotated[float, Option("0: the strongest words; towards 1: words of different documents.", min=0, max=1)] = 0.2,
    representatives: Annotated[int, Option("Typical documents kept for each topic.", min=0, max=100)] = 3,
    guides: Annotated[
        Sequence[Sequence[str]], Option("Words of a topic that you want, separated by commas; may be repeated.", flags=("--seed-words",))
    ] = (),
    labels: Annotated[Sequence[str], Option("A topic that you want, in your own words; may be repeated.", flags=("--label",))] = (),
    label_similarity: Annotated[float, Option("Minimum cosine of a document with such a label, after centring.", min=-1, max=1)] = 0.35,
    seed: Seed = 0,
    vectors: ArrayLike | None = None,
    by: Tagger | None = None,
) -> TopicModel:
    """Find the topics of texts, given an encoder, their vectors, or both (labels need an encoder).

    `by` splits texts into words; without it, the best tagger there is.
    """
    check_options(fit_topics, locals())
    settings = TopicSettings(
        method=method,
        topics=topics,
        min_size=min_size,
        outliers=outliers,
        reduction=reduction,
        dimensions=dimensions,
        words=words,
        diversity=diversity,
        representatives=representatives,
        guides=tuple(map(tuple, guides)),
        labels=tuple(labels),
        label_similarity=label_similarity,
        seed=seed,
    )
    texts = validate_texts(texts)
    if encoder is not None:
        check_encoder(encoder)
    first_U, same_N = count_different(texts)
    vectors_UD = encode_documents(texts, first_U, vectors, encoder)
    chosen = by or choose_tagger()
    bag = cache(lambda: bag_words([texts[row] for row in first_U], chosen))  # Kiwi's 300 MB come after the grouping where they can
    if settings.method == "contextual":
        return _fit_contextual(texts, vectors_UD, bag(), same_N, settings, encoder, chosen)
    projection = fit_projection(vectors_UD, None if settings.reduction == "none" else settings.dimensions)
    rows_UR = projection.apply(vectors_UD)
    label_vectors = _encode_labels(settings.labels, encoder)
    seeded_U = anchor_by_seed_words(bag(), settings.guides) if settings.guides else None
    anchor_U = _find_anchors(seeded_U, rows_UR, settings, None if label_vectors is None else projection.apply(label_vectors))
    groups_U = _group_around_anchors(rows_UR, anchor_U, settings)
    present = np.unique(groups_U[groups_U >= 0])
    places_U = np.where(groups_U >= 0, np.searchsorted(present, groups_U), -1)
    assigner = Prototypes(projection, _settle(rows_UR, places_U))
    model = assemble_model(texts, assigner, rows_UR, bag(), same_N, settings, core_U=groups_U >= 0)
    names = {place: settings.labels[group] for place, group in enumerate(present.tolist()) if group < len(settings.labels)}
    return sort_by_size(replace(model, encoder=fingerprint(encoder), tagger=chosen.name, names=names))


def count_different(texts: Sequence[str]) -> tuple[Ints, Ints]:
    """Return the rows where a text stands first, and for each row the place of its text among those."""
    if not texts:
        raise InputError("there is no text, expected at least one document")
    places: dict[str, int] = {}
    first: list[int] = []
    same: list[int] = []
    for row, text in enumerate(texts):
        place = places.setdefault(clean(text), len(places))
        if place == len(first):
            first.append(row)
        same.append(place)
    return np.array(first, dtype=np.int64), np.array(same, dtype=np.int64)


def encode_documents(texts: Sequence[str], first_U: Ints, vectors: ArrayLike | None, encoder: Encoder | None) -> Vectors:
    """Return the vectors of the different texts, encoding them if none were handed in."""
    if vectors is not None:
        rows_ND = to_rows(vectors, "vectors")
        if len(rows_ND) != len(texts):
            raise UsageError(f"vectors has {len(rows_ND):,} rows for {len(texts):,} texts, expected one row for each text")
        return np.ascontiguousarray(rows_ND[first_U], dtype=np.float32)
    if encoder is None:
        raise UsageError("neither vectors nor an encoder was handed in, expected one of them")
    return np.asarray(encoder.encode([texts[row] for row in first_U]), dtype=np.float32)


def assemble_model(
    texts: Sequence[str],
    assigner: Assigner,
    rows_UR: Vectors,
    bag: Bag,
    same_N: Ints,
    settings: TopicSettings,
    *,
    core_U: NDArray[np.bool_] | None = None,
) -> TopicModel:
    """Put a model together from what was found for the different texts; its topics are still without words."""
    component_U, score_U = find_nearest(assigner, rows_UR)
    prototypes = len(assigner.centres_PR)
    component_N, score_N = component_U[same_N], score_U[same_N]
    core_N = None if core_U is None else core_U[same_N]
    floors_P = find_outlier_floors(component_N, score_N, prototypes, share=settings.outliers, core_N=core_N)
    if settings.method == "contextual":
        floors_P = np.full(prototypes, NO_FLOOR)
    documents = Documents(make_text_keys(texts), rows_UR[same_N], component_N, score_N, tuple(map(excerpt, texts)))
    return TopicModel(settings, "", "", assigner, floors_P, np.arange(prototypes), bag.select(same_N), documents, ())


def fingerprint(encoder: Encoder | None) -> str:
    """Return what a model keeps of its encoder."""
    return "" if encoder is None else encoder.fingerprint


def _encode_labels(labels: Sequence[str], encoder: Encoder | None) -> Vectors | None:
    if not labels:
        return None
    if encoder is None:
        raise UsageError("labels are given but no encoder, expected the encoder that made the vectors, so that labels can be encoded")
    return np.asarray(encoder.encode(list(labels)), dtype=np.float32)


def _find_anchors(seeded_U: Ints | None, rows_UR: Vectors, settings: TopicSettings, labels_LR: Vectors | None) -> Ints:
    """Return the wanted topic of each text: labels first, then groups of seed words."""
    anchor_U = np.full(len(rows_UR), -1, dtype=np.int64)
    if seeded_U is not None:
        anchor_U = np.where(seeded_U >= 0, seeded_U + len(settings.labels), -1)
    if labels_LR is not None:
        labelled_U = anchor_by_labels(rows_UR, labels_LR, least=settings.label_similarity)
        anchor_U = np.where(labelled_U >= 0, labelled_U, anchor_U)
    return anchor_U


def _group_around_anchors(rows_UR: Vectors, anchor_U: Ints, settings: TopicSettings) -> Ints:
    """Group the texts that no anchor holds; their numbers follow those of the anchors."""
    wanted = len(settings.labels) + len(settings.guides)
    free = np.flatnonzero(anchor_U < 0)
    left = None if settings.topics is None else max(1, settings.topics - wanted)
    groups_U = anchor_U.copy()
    if len(free):
        found = find_groups(rows_UR[free], replace(settings, topics=left))
        groups_U[free] = np.where(found >= 0, found + wanted, -1)
    return groups_U


def _settle(rows_UR: Vectors, groups_U: Ints) -> Vectors:
    """Return the centres of groups after they moved to the middle of the texts that are nearest to them."""
    count = int(groups_U.max()) + 1
    centres_PR = compute_centres(rows_UR, groups_U, count)
    for _ in range(REFINEMENTS):
        nearest_U = (rows_UR @ centres_PR.T).argmax(axis=1)
        moved_PR = compute_centres(rows_UR, nearest_U, count)
        empty_P1 = (np.bincount(nearest_U, minlength=count) == 0)[:, None]
        centres_PR = np.where(empty_P1, centres_PR, moved_PR)
    return centres_PR


def sort_by_size(model: TopicModel) -> TopicModel:
    """Number topics by size, the largest 0, and describe them; a topic that no document chose goes."""
    counts_P = model.size_P
    held = np.flatnonzero(np.bincount(model.documents.component_N, minlength=len(model.topic_P)))
    order = sorted(held.tolist(), key=lambda p: (-int(counts_P[p]), p))
    number = {p: place for place, p in enumerate(order)}
    component_N = np.array([number.get(p, 0) for p in range(len(counts_P))])[model.documents.component_N]
    assert isinstance(model.assigner, Prototypes)
    return describe_topics(
        replace(
            model,
            assigner=replace(model.assigner, centres_PR=np.ascontiguousarray(model.assigner.centres_PR[order])),
            floors_P=model.floors_P[order],
            topic_P=np.arange(len(order)),
            documents=replace(model.documents, component_N=component_N),
            names={number[p]: name for p, name in model.names.items() if p in number},
            streamed=model.streamed and replace(model.streamed, size_P=counts_P[order], words=model.streamed.words.select(np.array(order))),
        )
    )


def _fit_contextual(
    texts: Sequence[str], vectors_UD: Vectors, bag: Bag, same_N: Ints, settings: TopicSettings, encoder: Encoder | None, by: Tagger
) -> TopicModel:
    if settings.labels or settings.guides:
        raise UsageError("a contextual topic model takes neither labels nor seed words\n  use the method graph, kmeans or hdbscan")
    assigner = fit_contextual(bag, vectors_UD, topics=settings.topics, seed=settings.seed)
    model = assemble_model(texts, assigner, assigner.features(vectors_UD), bag, same_N, settings)
    return describe_topics(replace(model, encoder=fingerprint(encoder), tagger=by.name))
