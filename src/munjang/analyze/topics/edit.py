"""A TopicModel → another one with topics merged, split, named, fewer, or with fewer outliers.

Numbers of topics stay what they were: a merged topic takes the lowest of its numbers, the parts of a split one take its number and new
ones. Merging moves no other document; splitting may move some that lie on the border to a part.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated

import numpy as np
from numpy.typing import ArrayLike

from munjang.analyze.topics.assign import build_hierarchy, check_vectors
from munjang.analyze.topics.describe import describe_topics
from munjang.analyze.topics.fitting import count_different
from munjang.analyze.topics.groups import choose_smallest_size, compute_centres, find_groups, normalize_rows, run_kmeans
from munjang.analyze.topics.model import (
    NO_FLOOR,
    Documents,
    Prototypes,
    TopicModel,
    excerpt,
    find_nearest,
    find_outlier_floors,
    label_documents,
    make_text_keys,
)
from munjang.analyze.topics.topic_words import bag_words, join_bags
from munjang.errors import UsageError
from munjang.options import Option, check_options
from munjang.text.tagging import Tagger, choose_tagger
from munjang.text.validate_texts import validate_texts
from munjang.types import Encoder, Ints, Vectors


def update_topics(
    model: TopicModel,
    texts: Sequence[str],
    *,
    vectors: ArrayLike | None = None,
    encoder: Encoder | None = None,
    by: Tagger | None = None,
) -> TopicModel:
    """Return the model with these documents added; the rows of the new ones follow those of the old ones."""
    texts = validate_texts(texts)
    first_U, same_N = count_different(texts)
    vectors_ND = check_vectors(model, texts, vectors, encoder)
    rows_NR = model.assigner.features(vectors_ND[first_U])[same_N]
    component_N, score_N = find_nearest(model.assigner, rows_NR)
    labels_N = label_documents(model, component_N, score_N)
    chosen = by or choose_tagger(model.tagger)
    bag = bag_words([texts[row] for row in first_U], chosen, known=frozenset(model.bag.vocabulary))
    old = model.documents
    documents = Documents(
        np.concatenate([old.keys_N, make_text_keys(texts)]),
        np.concatenate([old.rows_NR, rows_NR]),
        np.concatenate([old.component_N, component_N]),
        np.concatenate([old.score_N, score_N]),
        old.excerpts + tuple(map(excerpt, texts)),
    )
    grown = replace(model, documents=documents, bag=join_bags(model.bag, bag.select(same_N)))
    if isinstance(model.assigner, Prototypes):
        weight_P = np.bincount(old.component_N, minlength=len(model.topic_P))
        grown = _move_topics(grown, model.assigner, rows_NR, np.where(labels_N >= 0, component_N, -1), weight_P)
    return place_documents(grown)


def _move_topics(model: TopicModel, assigner: Prototypes, rows_NR: Vectors, component_N: Ints, weight_P: Ints) -> TopicModel:
    """Move centres towards the new rows that chose them, and add centres for rows that chose none, if they are too many."""
    count_P = np.bincount(component_N[component_N >= 0], minlength=len(weight_P))
    towards_PR = compute_centres(rows_NR, component_N, len(weight_P))
    centres_PR = normalize_rows(assigner.centres_PR * weight_P[:, None] + towards_PR * count_P[:, None])
    centres_PR = np.where((weight_P + count_P)[:, None] > 0, centres_PR, assigner.centres_PR).astype(np.float32)
    stray_MR = rows_NR[component_N < 0]
    topic_P = model.topic_P
    least = choose_smallest_size(len(rows_NR), model.settings.min_size)
    if len(stray_MR) > model.settings.outliers * len(rows_NR) and len(stray_MR) >= 2 * least:
        groups_M = find_groups(stray_MR, replace(model.settings, topics=None))
        fresh = int(groups_M.max()) + 1
        centres_PR = np.concatenate([centres_PR, compute_centres(stray_MR, groups_M, fresh)])
        topic_P = np.concatenate([topic_P, int(topic_P.max()) + 1 + np.arange(fresh)])
    return replace(model, assigner=replace(assigner, centres_PR=centres_PR), topic_P=topic_P)


def merge_topics(model: TopicModel, groups: Sequence[Sequence[int]]) -> TopicModel:
    """Make each group of topics one topic."""
    listed = [id for group in groups for id in group]
    if len(set(listed)) < len(listed):
        raise UsageError("merge: a topic occurs in more than one group, expected each topic once")
    topic_P, names = model.topic_P.copy(), dict(model.names)
    for group in groups:
        if len(group) < 2:
            raise UsageError(f"merge: a group of {len(group)} topics, expected at least 2 to merge")
        for id in group:
            model.topic(id)
            names.pop(id, None)
        topic_P[np.isin(topic_P, group)] = min(group)
    return describe_topics(replace(model, topic_P=topic_P, names=names))


def reduce_topics(model: TopicModel, topics: int) -> TopicModel:
    """Merge the closest topics until there are no more than `topics`."""
    if topics < 1:
        raise UsageError(f"topics={topics}, expected 1 or more")
    ids = np.unique(model.topic_P).tolist()
    under: list[list[int]] = [[id] for id in ids]
    gone: set[int] = set()
    for join in build_hierarchy(model)[: max(0, len(ids) - topics)]:
        gone |= {join.a, join.b}
        under.append(under[join.a] + under[join.b])
    groups = [members for node, members in enumerate(under) if node not in gone and len(members) > 1]
    return merge_topics(model, groups) if groups else model


def split_topic(model: TopicModel, id: int, parts: Annotated[int, Option("Number of parts.", min=2)] = 2) -> TopicModel:
    """Divide a topic into parts of its own by k-means."""
    check_options(split_topic, locals())
    if not isinstance(model.assigner, Prototypes):
        raise UsageError("split: a contextual model's topics cannot be divided\n  fit it again with more topics")
    model.topic(id)
    members = np.flatnonzero(model.labels == id)
    groups = run_kmeans(model.documents.rows_NR[members], parts, seed=model.settings.seed)
    if len(set(groups.tolist())) < parts:
        raise UsageError(f"split: topic {id} has too few different documents for {parts} parts")
    kept = np.flatnonzero(model.topic_P != id)
    fresh = int(model.topic_P.max()) + 1
    numbers = [id, *range(fresh, fresh + parts - 1)]
    assigner = replace(
        model.assigner,
        centres_PR=np.concatenate([model.assigner.centres_PR[kept], compute_centres(model.documents.rows_NR[members], groups, parts)]),
    )
    names = {topic: name for topic, name in model.names.items() if topic != id}
    return place_documents(replace(model, assigner=assigner, topic_P=np.concatenate([model.topic_P[kept], numbers]), names=names))


def set_outliers(model: TopicModel, share: float) -> TopicModel:
    """Let at most this share of the documents stay without a topic; 0 gives every document one."""
    return place_documents(replace(model, settings=replace(model.settings, outliers=share)))


def rename_topic(model: TopicModel, id: int, name: str) -> TopicModel:
    """Give a topic a name."""
    model.topic(id)
    if not name.strip():
        raise UsageError("the name is empty, expected a name for the topic")
    return describe_topics(replace(model, names={**model.names, id: " ".join(name.split())}))


def place_documents(model: TopicModel) -> TopicModel:
    """Ask the assigner anew for every document, set the floors, and describe the topics."""
    if model.streamed is not None:
        raise UsageError(
            f"the topics were counted over {model.size:,} documents, of which the model keeps {len(model.documents):,}; "
            "merging and naming topics need no documents, this does\n  fit the topics again"
        )
    component_N, score_N = find_nearest(model.assigner, model.documents.rows_NR)
    prototypes = len(model.topic_P)
    floors_P = np.full(prototypes, NO_FLOOR)
    if isinstance(model.assigner, Prototypes):
        floors_P = find_outlier_floors(component_N, score_N, prototypes, share=model.settings.outliers)
    documents = replace(model.documents, component_N=component_N, score_N=score_N)
    return describe_topics(_drop_empty(replace(model, documents=documents, floors_P=floors_P)))


def _drop_empty(model: TopicModel) -> TopicModel:
    """Drop prototypes that no document is nearest to."""
    held = np.flatnonzero(np.bincount(model.documents.component_N, minlength=len(model.topic_P)))
    if len(held) == len(model.topic_P) or not isinstance(model.assigner, Prototypes):
        return model
    return replace(
        model,
        assigner=replace(model.assigner, centres_PR=model.assigner.centres_PR[held]),
        floors_P=model.floors_P[held],
        topic_P=model.topic_P[held],
        documents=replace(model.documents, component_N=np.searchsorted(held, model.documents.component_N)),
    )
