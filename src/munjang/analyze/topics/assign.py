"""A TopicModel and something new → answers: the topics of new texts, of a query, of the parts of a text.

Shapes: N texts, D dimensions, K topics, V words, W windows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np
from numpy.typing import ArrayLike

from munjang.analyze.topics.describe import weigh_topic_words
from munjang.analyze.topics.groups import normalize_rows
from munjang.analyze.topics.model import Assigned, TopicModel, find_nearest, label_documents, make_text_keys
from munjang.analyze.topics.topic_words import fill_bag, list_words
from munjang.errors import UsageError
from munjang.options import Option, check_options
from munjang.text.tagging import Tagger, choose_tagger
from munjang.text.validate_texts import validate_texts
from munjang.types import Encoder, Floats, Vectors, check_encoder
from munjang.vectors.similarity import to_rows


@dataclass(frozen=True)
class Join:
    """Two nodes become one. Topics are nodes 0 to K − 1, in the order of their numbers; the join at place j is node K + j."""

    a: int
    b: int
    distance: float
    size: int
    """Topics under the new node."""


def build_hierarchy(model: TopicModel) -> list[Join]:
    """Return the K − 1 joins, closest first."""
    return link_by_average(find_topic_centres(model))


def link_by_average(rows_KR: Vectors) -> list[Join]:
    """Return the joins of unit rows, by the average of 1 − cosine between all members.

    >>> [(join.a, join.b) for join in link_by_average(np.array([[1, 0], [0, 1], [0.9, 0.1]], dtype=np.float32))]
    [(0, 2), (1, 3)]
    """
    count = len(rows_KR)
    apart: Floats = 1 - (rows_KR.astype(np.float64) @ rows_KR.T.astype(np.float64))
    np.fill_diagonal(apart, np.inf)
    node, size = list(range(count)), [1] * count
    alive = np.ones(count, dtype=bool)
    joins: list[Join] = []
    for number in range(count - 1):
        a, b = (int(place) for place in divmod(int(apart.argmin()), count))
        a, b = min(a, b), max(a, b)
        low, high = sorted((node[a], node[b]))
        joins.append(Join(low, high, max(0.0, float(apart[a, b])), size[a] + size[b]))
        mean = (apart[a] * size[a] + apart[b] * size[b]) / (size[a] + size[b])
        alive[b] = False
        mean[~alive] = np.inf
        mean[a] = np.inf
        apart[a], apart[:, a] = mean, mean
        apart[b], apart[:, b] = np.inf, np.inf
        node[a], size[a] = count + number, size[a] + size[b]
    return joins


def place_topics(model: TopicModel) -> dict[int, tuple[float, float]]:
    """Return a place for each topic; a single topic lies in the middle."""
    ids = np.unique(model.topic_P).tolist()
    centred_KR = find_topic_centres(model).astype(np.float64)
    centred_KR -= centred_KR.mean(axis=0)
    left_KK, strengths, _ = np.linalg.svd(centred_KR, full_matrices=False)
    flat_K2 = np.zeros((len(ids), 2))
    kept = min(2, len(strengths))
    flat_K2[:, :kept] = left_KK[:, :kept] * strengths[:kept]
    for axis in range(kept):  # the sign of a direction is arbitrary: the farthest topic lies on the positive side
        if flat_K2[np.abs(flat_K2[:, axis]).argmax(), axis] < 0:
            flat_K2[:, axis] *= -1
    return {id: (float(x), float(y)) for id, (x, y) in zip(ids, flat_K2, strict=True)}


WINDOW = 4
"""Words of a text that are looked at together in `compute_distribution`."""


def assign_topics(model: TopicModel, texts: Sequence[str], *, vectors: ArrayLike | None = None, encoder: Encoder | None = None) -> Assigned:
    """Return the topic of each text; a text that the model was fitted on has the topic it had then."""
    texts = validate_texts(texts)
    vectors_ND = check_vectors(model, texts, vectors, encoder)
    component_N, score_N = find_nearest(model.assigner, model.assigner.features(vectors_ND))
    # An encoder may round a text's vector differently in other company; a known text keeps what was found first.
    known = {int(key): row for row, key in reversed(list(enumerate(model.documents.keys_N.tolist())))}
    for place, key in enumerate(make_text_keys(texts).tolist()):
        row = known.get(key)
        if row is not None:
            component_N[place], score_N[place] = model.documents.component_N[row], model.documents.score_N[row]
    return Assigned(label_documents(model, component_N, score_N), score_N, model.topic_names)


def find_topics(
    model: TopicModel, query: ArrayLike, *, k: Annotated[int, Option("Number of topics.", min=1, flags=("--top", "-k"))] = 5
) -> list[tuple[int, float]]:
    """Return the topics nearest to a query's vector, best first, with their scores."""
    check_options(find_topics, locals())
    query_1D = to_rows(query, "query")
    _check_dimension(model, query_1D)
    scores_P = model.assigner.scores(model.assigner.features(query_1D))[0]
    best = {topic: max(float(scores_P[p]) for p in np.flatnonzero(model.topic_P == topic)) for topic in set(model.topic_P.tolist())}
    return sorted(best.items(), key=lambda pair: (-pair[1], pair[0]))[:k]


def compute_distribution(model: TopicModel, texts: Sequence[str], *, by: Tagger | None = None, window: int = WINDOW) -> Floats:
    """Return how much of each text is about each topic, (N, K), topics by their number, rows sum to 1 or are 0.

    Every run of `window` words is compared with every topic's words; a text may be about several topics.
    """
    texts = validate_texts(texts)
    weights_KV = weigh_topic_words(model)
    unit_KV = weights_KV / np.maximum(np.linalg.norm(weights_KV, axis=1, keepdims=True), 1e-12)
    shares = np.zeros((len(texts), len(unit_KV)))
    known = frozenset(model.bag.vocabulary)
    chosen = by or choose_tagger(model.tagger)
    for row, words in enumerate(list_words(texts, chosen, known=known)):
        kept = [word for word in words if word in known]
        runs = [Counter(kept[start : start + window]) for start in range(max(1, len(kept) - window + 1))] if kept else []
        if runs:
            shares[row] = _compute_likeness(runs, model.bag.vocabulary, unit_KV)
    return shares


def check_vectors(model: TopicModel, texts: Sequence[str], vectors: ArrayLike | None, encoder: Encoder | None) -> Vectors:
    """Return vectors of texts that the model can judge; refuse those of another encoder."""
    if encoder is not None:
        check_encoder(encoder)
    if encoder is not None and model.encoder and encoder.fingerprint != model.encoder:
        raise UsageError("the encoder is not the one that the topics were found with\n  load that one, or fit the topics again")
    if vectors is None:
        if encoder is None:
            raise UsageError("neither vectors nor an encoder was given, expected one of them")
        vectors = encoder.encode(texts)
    rows_ND = to_rows(vectors, "vectors") if len(texts) else np.zeros((0, find_dimension(model)), dtype=np.float32)
    if len(rows_ND) != len(texts):
        raise UsageError(f"vectors has {len(rows_ND):,} rows for {len(texts):,} texts, expected one row for each text")
    _check_dimension(model, rows_ND)
    return np.ascontiguousarray(rows_ND, dtype=np.float32)


def find_dimension(model: TopicModel) -> int:
    """Return how many numbers a vector must have."""
    return model.assigner.dimension


def find_topic_centres(model: TopicModel) -> Vectors:
    """Return the middle of each topic's documents in the space of the features, topics by their number, (K, R)."""
    ids = np.unique(model.topic_P)
    counts_P = np.maximum(np.bincount(model.documents.component_N, minlength=len(model.topic_P)), 1).astype(np.float32)
    weighted_PR = model.assigner.centres_PR * counts_P[:, None]
    return normalize_rows(np.stack([weighted_PR[model.topic_P == id].sum(axis=0) / counts_P[model.topic_P == id].sum() for id in ids]))


def _check_dimension(model: TopicModel, rows_ND: Vectors) -> None:
    if rows_ND.shape[1] != find_dimension(model):
        raise UsageError(f"vectors have {rows_ND.shape[1]} dimensions, the model's have {find_dimension(model)}\n  use the same encoder")


def _compute_likeness(runs: Sequence[Counter[str]], vocabulary: Sequence[str], unit_KV: Floats) -> Floats:
    bag = fill_bag(runs, vocabulary)
    rows_E = bag.rows()
    lengths_W = np.sqrt(np.bincount(rows_E, weights=bag.counts.astype(np.float64) ** 2, minlength=len(bag)))
    total_K: Floats = unit_KV[:, bag.terms] @ (bag.counts / lengths_W[rows_E])
    return total_K / total_K.sum() if total_K.sum() > 0 else total_K
