"""What a library is and holds, in one commit."""

from __future__ import annotations

from dataclasses import dataclass

from munjang.library.store import Store
from munjang.wording import brief_repr


@brief_repr
@dataclass(frozen=True)
class Info:
    """What a library is and holds."""

    name: str
    documents: int
    passages: int
    model: str
    fingerprint: str
    dimension: int
    analyser: str
    passage_characters: int
    passage_overlap: int
    generation: int
    compute: str | None
    """How the model computed; None where nobody wrote it down."""
    pooling: str | None


def info_of(store: Store) -> Info:
    """Return what the store holds in its last commit."""
    with store.snapshot():
        documents, passages = store.count()
        settings = store.settings()
        return Info(
            name=store.name,
            documents=documents,
            passages=passages,
            model=settings.model,
            fingerprint=settings.fingerprint,
            dimension=settings.dimension,
            analyser=settings.analyser,
            passage_characters=settings.passage_characters,
            passage_overlap=settings.passage_overlap,
            generation=store.generation(),
            compute=settings.compute,
            pooling=settings.pooling,
        )
