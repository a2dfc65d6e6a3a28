"""A sentence encoder as a Scorer: the cosine of a query with a document, every text encoded once.

For re-ranking with a stronger bi-encoder than the one that made the first run. It is made for one task and one run, and only knows the
texts in them; a cross-encoder, which reads both texts together, is another Scorer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from munjang.evaluate.datasets.rows import RetrievalTask
from munjang.evaluate.ranking import Run, ranked
from munjang.evaluate.similarities import pair_similarities
from munjang.types import Encoder, Vectors, check_encoder


@dataclass(frozen=True)
class CosineScorer:
    """Scores pairs of texts whose vectors it holds."""

    queries: Mapping[str, Vectors]
    documents: Mapping[str, Vectors]

    def predict(self, pairs: Sequence[tuple[str, str]], /) -> Vectors:
        """Return the cosine of each pair."""
        if not pairs:
            return np.zeros(0, np.float32)
        left, right = np.stack([self.queries[query] for query, _ in pairs]), np.stack([self.documents[document] for _, document in pairs])
        return pair_similarities(left, right).astype(np.float32)


def cosine_scorer(encoder: Encoder, task: RetrievalTask, run: Run, *, depth: int, query_encoder: Encoder | None = None) -> CosineScorer:
    """Return a scorer for the judged queries of a task and the first `depth` documents that the run has for each."""
    check_encoder(encoder)
    check_encoder(query_encoder or encoder, "query_encoder")
    asked = dict.fromkeys(task.queries[query] for query in task.judgements if query in task.queries)
    head = [document for query in task.judgements for document in ranked(run.get(query, {}))[:depth]]
    found = dict.fromkeys(task.corpus[document] for document in head if document in task.corpus)
    queries, documents = list(asked), list(found)
    return CosineScorer(
        dict(zip(queries, (query_encoder or encoder).encode(queries), strict=True)),
        dict(zip(documents, encoder.encode(documents), strict=True)),
    )
