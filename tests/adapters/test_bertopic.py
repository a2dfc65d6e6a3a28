"""The back end in BERTopic's own hands."""

from __future__ import annotations

import importlib.util
import warnings

import numpy as np
import pytest
from tests.adapters.conftest import SHORT, adapter, library

from munjang import SentenceEncoder

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(importlib.util.find_spec("bertopic") is None, reason="bertopic, which the adapter is for, is not installed"),
]


def test_bertopic_takes_it_and_finds_topics(model: SentenceEncoder) -> None:
    made = adapter("bertopic", needs="bertopic").MunjangBERTopicBackend(model)
    np.testing.assert_allclose(made.embed(SHORT), model.encode(SHORT), atol=1e-6)
    bertopic, decomposition, cluster = library("bertopic"), library("sklearn.decomposition"), library("sklearn.cluster")
    texts = [f"{text} {number} winter snow" for number in range(5) for text in SHORT]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        topics = bertopic.BERTopic(
            embedding_model=made, umap_model=decomposition.PCA(4, random_state=0), hdbscan_model=cluster.KMeans(3, random_state=0, n_init=2)
        )
        found, _ = topics.fit_transform(texts)
        near, _ = topics.find_topics("winter snow", top_n=1)
    assert topics.embedding_model is made
    assert set(found) == {0, 1, 2}
    assert near[0] in (0, 1, 2)
