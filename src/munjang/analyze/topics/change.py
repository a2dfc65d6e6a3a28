"""A TopicModel → another one with topics merged, split, named, fewer, or with fewer outliers.

Numbers of topics stay what they were: a merged topic takes the lowest of its numbers, the parts of a split one take its number and new
ones. Merging moves no other document; splitting may move some that lie on the border to a part.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from munjang.analyze.topics.describe import described
from munjang.analyze.topics.hierarchy import topic_hierarchy
from munjang.analyze.topics.kmeans import centres, kmeans
from munjang.analyze.topics.model import TopicModel
from munjang.analyze.topics.outliers import NO_FLOOR, outlier_floors
from munjang.analyze.topics.prototypes import Prototypes, nearest
from munjang.errors import UsageError


def merge_topics(model: TopicModel, groups: Sequence[Sequence[int]]) -> TopicModel:
    """Make each group of topics one topic."""
    listed = [id for group in groups for id in group]
    if len(set(listed)) < len(listed):
        raise UsageError("merge: a topic stands in more than one group, expected each topic once")
    topic_P, names = model.topic_P.copy(), dict(model.names)
    for group in groups:
        if len(group) < 2:
            raise UsageError(f"merge: a group of {len(group)} topics, expected at least 2 to merge")
        for id in group:
            model.topic(id)
            names.pop(id, None)
        topic_P[np.isin(topic_P, group)] = min(group)
    return described(replace(model, topic_P=topic_P, names=names))


def with_fewer_topics(model: TopicModel, topics: int) -> TopicModel:
    """Merge the closest topics until there are no more than `topics`."""
    if topics < 1:
        raise UsageError(f"topics={topics}, expected 1 or more")
    ids = np.unique(model.topic_P).tolist()
    under: list[list[int]] = [[id] for id in ids]
    gone: set[int] = set()
    for join in topic_hierarchy(model)[: max(0, len(ids) - topics)]:
        gone |= {join.a, join.b}
        under.append(under[join.a] + under[join.b])
    groups = [members for node, members in enumerate(under) if node not in gone and len(members) > 1]
    return merge_topics(model, groups) if groups else model


def split_topic(model: TopicModel, id: int, parts: int = 2) -> TopicModel:
    """Divide a topic into parts of its own by k-means."""
    if not isinstance(model.assigner, Prototypes):
        raise UsageError("split: a contextual model's topics cannot be divided\n  fit it again with more topics")
    if parts < 2:
        raise UsageError(f"parts={parts}, expected 2 or more")
    model.topic(id)
    members = np.flatnonzero(model.labels == id)
    groups = kmeans(model.documents.rows_NR[members], parts, seed=model.settings.seed)
    if len(set(groups.tolist())) < parts:
        raise UsageError(f"split: topic {id} has too few different documents for {parts} parts")
    kept = np.flatnonzero(model.topic_P != id)
    fresh = int(model.topic_P.max()) + 1
    numbers = [id, *range(fresh, fresh + parts - 1)]
    assigner = replace(
        model.assigner,
        centres_PR=np.concatenate([model.assigner.centres_PR[kept], centres(model.documents.rows_NR[members], groups, parts)]),
    )
    names = {topic: name for topic, name in model.names.items() if topic != id}
    return placed(replace(model, assigner=assigner, topic_P=np.concatenate([model.topic_P[kept], numbers]), names=names))


def with_outliers(model: TopicModel, share: float) -> TopicModel:
    """Let at most this share of the documents stay without a topic; 0 gives every document one."""
    return placed(replace(model, settings=replace(model.settings, outliers=share)))


def renamed(model: TopicModel, id: int, name: str) -> TopicModel:
    """Give a topic a name."""
    model.topic(id)
    if not name.strip():
        raise UsageError("the name is empty, expected a name for the topic")
    return described(replace(model, names={**model.names, id: " ".join(name.split())}))


def placed(model: TopicModel) -> TopicModel:
    """Ask the assigner anew for every document, set the floors, and describe the topics."""
    component_N, score_N = nearest(model.assigner, model.documents.rows_NR)
    prototypes = len(model.topic_P)
    floors_P = np.full(prototypes, NO_FLOOR)
    if isinstance(model.assigner, Prototypes):
        floors_P = outlier_floors(component_N, score_N, prototypes, share=model.settings.outliers)
    documents = replace(model.documents, component_N=component_N, score_N=score_N)
    return described(_without_empty(replace(model, documents=documents, floors_P=floors_P)))


def _without_empty(model: TopicModel) -> TopicModel:
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
