"""Documents → entries in a store, a batch at a time; only texts that are new or have changed are encoded.

What `progress` was told is on disk. Whoever is interrupted begins again with the same records: those that are there are passed over.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from munjang.errors import InputError, shown
from munjang.library.content_ids import give_ids
from munjang.library.fitting import fitting_passages
from munjang.library.store import Change, Document, Entry, NewMetadata, Passage, Settings, Store
from munjang.library.tuning import Tuning
from munjang.library.words import passage_words
from munjang.types import Encoder, Vectors
from munjang.wording import brief_repr

Progress = Callable[[int], None]
"""Is told how many more records are on disk."""


@brief_repr
@dataclass(frozen=True)
class AddReport:
    """What became of the records."""

    added: int = 0
    changed: int = 0
    relabelled: int = 0
    """Only their metadata changed."""
    unchanged: int = 0
    replaced: int = 0
    """Behind them, in the same batch, came another text with their id."""
    passages: int = 0
    """Passages that were encoded."""
    seconds: float = 0.0

    @property
    def records(self) -> int:
        """All of them."""
        return self.added + self.changed + self.relabelled + self.unchanged + self.replaced


def add_documents(
    store: Store,
    encoder: Encoder,
    documents: Iterable[Document],
    *,
    tuning: Tuning,
    progress: Progress | None = None,
    must_exist: bool = False,
) -> AddReport:
    """Write documents batch by batch; the caller holds the writer's lock. With `must_exist` a new id is refused."""
    settings = store.settings()
    report = AddReport()
    start = time.perf_counter()
    for waiting in _batches(documents, tuning):
        batch, known = give_ids(waiting, store)
        if must_exist:
            _refuse_new(batch, known, store.name)
        latest = {document.id: document for document in batch}
        fresh = [each for each in latest.values() if each.id not in known or known[each.id].content_hash != each.content_hash]
        fresh_ids = {each.id for each in fresh}
        kept = [each for each in latest.values() if each.id not in fresh_ids]
        other = [NewMetadata(each.id, each.metadata) for each in kept if known[each.id].metadata != each.metadata]
        entries = make_entries(fresh, encoder, settings)
        changes: list[Change] = [*entries, *other]
        if changes:
            store.put(changes)
        new = sum(each.id not in known for each in fresh)
        replaced = sum(each.content_hash != latest[each.id].content_hash for each in batch)
        report = AddReport(
            added=report.added + new,
            changed=report.changed + len(fresh) - new,
            relabelled=report.relabelled + len(other),
            unchanged=report.unchanged + len(batch) - len(fresh) - len(other) - replaced,
            replaced=report.replaced + replaced,
            passages=report.passages + sum(len(entry.passages) for entry in entries),
            seconds=time.perf_counter() - start,
        )
        if progress is not None:
            progress(len(batch))
    return report


def make_entries(documents: Sequence[Document], encoder: Encoder, settings: Settings) -> list[Entry]:
    """Split documents into passages, encode these together, and find their words."""
    places = fitting_passages([each.text for each in documents], encoder, settings)
    texts = [each.text[start:stop] for each, spans in zip(documents, places, strict=True) for start, stop in spans]
    if not texts:
        return []
    vectors_PD = _encoded(encoder, texts, settings)
    entries, at = [], 0
    for document, spans in zip(documents, places, strict=True):
        passages = tuple(
            Passage(*span, tuple(passage_words(text, settings.analyser))) for span, text in zip(spans, texts[at:], strict=False)
        )
        entries.append(Entry(document, passages, vectors_PD[at : at + len(spans)]))
        at += len(spans)
    return entries


def _encoded(encoder: Encoder, texts: list[str], settings: Settings) -> Vectors:
    vectors_PD = np.asarray(encoder.encode(texts), dtype=np.float32)
    if vectors_PD.shape != (len(texts), settings.dimension):
        raise InputError(f"the model gave vectors of shape {vectors_PD.shape}, expected {(len(texts), settings.dimension)}")
    return vectors_PD


def _batches(documents: Iterable[Document], tuning: Tuning) -> Iterator[list[Document]]:
    batch: list[Document] = []
    characters = 0
    for document in documents:
        batch.append(document)
        characters += len(document.text)
        if len(batch) >= tuning.batch_documents or characters >= tuning.batch_characters:
            yield batch
            batch, characters = [], 0
    if batch:
        yield batch


def _refuse_new(batch: Sequence[Document], known: dict[str, Document], name: str) -> None:
    missing = [document.id for document in batch if document.id not in known]
    if missing:
        raise InputError(f"{name}: there is no document {shown(missing[0])} to update\n  add it, or check the id")
