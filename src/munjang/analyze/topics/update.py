"""A TopicModel and more documents → the model that knows them too.

New documents go to the nearest topic, and its centre moves towards them by their share of its documents. Where more documents than may be
stay without a topic, those are grouped among themselves and become topics of their own. Words are counted over all documents.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from munjang.analyze.topics.ask import checked_vectors
from munjang.analyze.topics.bag import joined
from munjang.analyze.topics.change import placed
from munjang.analyze.topics.fitting import different
from munjang.analyze.topics.groups import find_groups, smallest_topic
from munjang.analyze.topics.kmeans import centres
from munjang.analyze.topics.model import Documents, TopicModel, excerpt, labels_of, text_keys
from munjang.analyze.topics.prototypes import Prototypes, nearest
from munjang.analyze.topics.reduce import unit_rows
from munjang.analyze.topics.topic_words import bag_of
from munjang.text.tagging import Tagger, tagger
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
    first_U, same_N = different(texts)
    vectors_ND = checked_vectors(model, texts, vectors, encoder)
    rows_NR = model.assigner.features(vectors_ND[first_U])[same_N]
    component_N, score_N = nearest(model.assigner, rows_NR)
    labels_N = labels_of(model, component_N, score_N)
    chosen = by or tagger(None if model.tagger.startswith("pos:") else model.tagger)
    bag = bag_of([texts[row] for row in first_U], chosen, known=frozenset(model.bag.vocabulary))
    old = model.documents
    documents = Documents(
        np.concatenate([old.keys_N, text_keys(texts)]),
        np.concatenate([old.rows_NR, rows_NR]),
        np.concatenate([old.component_N, component_N]),
        np.concatenate([old.score_N, score_N]),
        old.excerpts + tuple(map(excerpt, texts)),
    )
    grown = replace(model, documents=documents, bag=joined(model.bag, bag.chosen(same_N)))
    if isinstance(model.assigner, Prototypes):
        weight_P = np.bincount(old.component_N, minlength=len(model.topic_P))
        grown = _moved(grown, model.assigner, rows_NR, np.where(labels_N >= 0, component_N, -1), weight_P)
    return placed(grown)


def _moved(model: TopicModel, assigner: Prototypes, rows_NR: Vectors, component_N: Ints, weight_P: Ints) -> TopicModel:
    """Move centres towards the new rows that chose them, and add centres for rows that chose none, if they are too many."""
    count_P = np.bincount(component_N[component_N >= 0], minlength=len(weight_P))
    towards_PR = centres(rows_NR, component_N, len(weight_P))
    centres_PR = unit_rows(assigner.centres_PR * weight_P[:, None] + towards_PR * count_P[:, None])
    centres_PR = np.where((weight_P + count_P)[:, None] > 0, centres_PR, assigner.centres_PR).astype(np.float32)
    stray_MR = rows_NR[component_N < 0]
    topic_P = model.topic_P
    if len(stray_MR) > model.settings.outliers * len(rows_NR) and len(stray_MR) >= 2 * smallest_topic(len(rows_NR), model.settings):
        groups_M = find_groups(stray_MR, replace(model.settings, topics=None))
        fresh = int(groups_M.max()) + 1
        centres_PR = np.concatenate([centres_PR, centres(stray_MR, groups_M, fresh)])
        topic_P = np.concatenate([topic_P, int(topic_P.max()) + 1 + np.arange(fresh)])
    return replace(model, assigner=replace(assigner, centres_PR=centres_PR), topic_P=topic_P)
