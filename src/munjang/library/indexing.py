"""Documents → entries in a store, a batch at a time; only texts that are new or have changed are encoded.

What `progress` was told is on disk. Whoever is interrupted begins again with the same records: those that are there are passed over.

A document that comes without an id gets one made of its text. The id is the beginning of the text's hash, 12 digits, so equal texts are
one document in whatever file and order they come, and adding a file again changes nothing. Where another text has the same beginning the
id gets longer. Libraries of earlier versions hold the whole hash as id (32 digits); a text that is there under such an id keeps it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from itertools import islice

import numpy as np

from munjang.errors import InputError, quote
from munjang.library.index_config import Tuning
from munjang.library.passages import fitting_passages
from munjang.library.store import Change, CommitUnknown, Document, Entry, NewMetadata, Passage, Settings, Store
from munjang.library.words import passage_words
from munjang.types import Encoder, Vectors
from munjang.wording import brief_repr

Progress = Callable[[int], None]
"""Is told how many more records are on disk; 0 again and again in between, where it may raise to stop."""


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

    def __add__(self, other: AddReport) -> AddReport:
        """Return what became of both."""
        return AddReport(**{each.name: getattr(self, each.name) + getattr(other, each.name) for each in fields(self)})

    @property
    def records(self) -> int:
        """All of them."""
        return self.added + self.changed + self.relabelled + self.unchanged + self.replaced

    @property
    def written(self) -> int:
        """Those that changed something in the store."""
        return self.added + self.changed + self.relabelled


def add_batch(
    store: Store, encoder: Encoder, waiting: Sequence[Document], *, must_exist: bool = False, progress: Progress | None = None
) -> AddReport:
    """Write a batch of documents in one commit; the caller holds the writer's lock. With `must_exist` a new id is refused."""
    start = time.perf_counter()
    [report] = _write_groups(store, encoder, [waiting], must_exist=must_exist, progress=progress)
    return replace(report, seconds=time.perf_counter() - start)


def add_groups(store: Store, encoder: Encoder, groups: Sequence[Sequence[Document]]) -> list[AddReport]:
    """Write the documents of several callers in one commit and return what became of each one's; the caller holds the writer's lock."""
    start = time.perf_counter()
    reports = _write_groups(store, encoder, groups)
    return [replace(report, seconds=time.perf_counter() - start) for report in reports]


def _write_groups(
    store: Store,
    encoder: Encoder,
    groups: Sequence[Sequence[Document]],
    *,
    must_exist: bool = False,
    progress: Progress | None = None,
) -> list[AddReport]:
    batch, known = give_ids([document for group in groups for document in group], store)
    if must_exist:
        _refuse_new(batch, known, store.name)
    latest = {document.id: document for document in batch}
    fresh = [each for each in latest.values() if each.id not in known or known[each.id].content_hash != each.content_hash]
    fresh_ids = {each.id for each in fresh}
    entries = {entry.document.id: entry for entry in make_entries(fresh, encoder, store.settings(), progress=progress)}
    kept = [each for each in latest.values() if each.id not in fresh_ids]
    other = {each.id: NewMetadata(each.id, each.metadata) for each in kept if known[each.id].metadata != each.metadata}
    if progress is not None:
        progress(0)

    def outcome(document: Document) -> dict[str, int]:
        """Say what becomes of a document, as AddReport counts it, with its passages that were encoded."""
        last = latest[document.id]
        if document.content_hash != last.content_hash:
            return {"replaced": 1}
        if document is last and document.id in fresh_ids:
            passages = len(entries[document.id].passages) if document.id in entries else 0
            return {"changed" if document.id in known else "added": 1, "passages": passages}
        return {"relabelled" if document is last and document.id in other else "unchanged": 1}

    outcomes = map(outcome, batch)
    reports = [sum((AddReport(**each) for each in islice(outcomes, len(group))), AddReport()) for group in groups]
    changes: list[Change] = [*entries.values(), *other.values()]
    try:
        if changes:
            store.put(changes)
    except CommitUnknown as error:
        error.result = reports if len(groups) > 1 else reports[0]
        raise
    return reports


def make_entries(documents: Sequence[Document], encoder: Encoder, settings: Settings, *, progress: Progress | None = None) -> list[Entry]:
    """Split documents into passages, encode these together, and find their words."""
    places = fitting_passages([each.text for each in documents], encoder, settings)
    texts = [each.text[start:stop] for each, spans in zip(documents, places, strict=True) for start, stop in spans]
    if not texts:
        return []
    vectors_PD = _encoded(encoder, texts, settings)
    entries, at = [], 0
    for document, spans in zip(documents, places, strict=True):
        passages = []
        for span, text in zip(spans, texts[at : at + len(spans)], strict=True):
            if progress is not None:
                progress(0)
            passages.append(Passage(*span, tuple(passage_words(text, settings.analyser))))
        entries.append(Entry(document, tuple(passages), vectors_PD[at : at + len(spans)]))
        at += len(spans)
    return entries


def _encoded(encoder: Encoder, texts: list[str], settings: Settings) -> Vectors:
    vectors_PD = np.asarray(encoder.encode(texts), dtype=np.float32)
    if vectors_PD.shape != (len(texts), settings.dimension):
        raise InputError(f"the model gave vectors of shape {vectors_PD.shape}, expected {(len(texts), settings.dimension)}")
    return vectors_PD


def split_batches(documents: Iterable[Document], tuning: Tuning) -> Iterator[list[Document]]:
    """Yield documents in batches that are encoded and committed together."""
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
        raise InputError(f"{name}: there is no document {quote(missing[0])} to update\n  add it, or check the id")


LENGTHS = (12, 20, 32)
"""Digits of an id: the shortest that no other text has."""


def give_ids(batch: Sequence[Document], store: Store) -> tuple[list[Document], dict[str, Document]]:
    """Return a batch whose every document has an id, and those documents of the store that have one of these ids."""
    wanted = {id for document in batch for id in ([document.id] if document.id else _candidates(document))}
    known = store.get(sorted(wanted))
    taken = {document.id: document.content_hash for document in batch if document.id}
    taken |= {id: document.content_hash for id, document in known.items()}
    given = []
    for document in batch:
        id = document.id or _choose(document, taken)
        taken[id] = document.content_hash
        given.append(document if document.id else replace(document, id=id))
    ids = {document.id for document in given}
    return given, {id: document for id, document in known.items() if id in ids}


def _candidates(document: Document) -> list[str]:
    return [document.content_hash[:length] for length in LENGTHS]


def _choose(document: Document, taken: dict[str, str]) -> str:
    """Return the id under which the text is there already, or the shortest that no other text has made its own.

    A document under such an id whose text was changed later is that document still: the text that made its id replaces it again.
    """
    candidates = _candidates(document)
    there = next((id for id in candidates if taken.get(id) == document.content_hash), None)
    edited = next((id for id in reversed(candidates) if id in taken and not taken[id].startswith(id)), None)
    return there or edited or next(id for id in candidates if id not in taken or len(id) == LENGTHS[-1])
