"""Documents → entries in a store, a batch at a time; only texts that are new or have changed are encoded.

What `progress` was told is on disk. Whoever is interrupted begins again with the same records: those that are there are passed over.

A document that comes without an id gets one made of its text. The id is the beginning of the text's hash, 12 digits, so equal texts are
one document in whatever file and order they come, and adding a file again changes nothing. Where another text has the same beginning the
id gets longer. Libraries of earlier versions hold the whole hash as id (32 digits); a text that is there under such an id keeps it.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from itertools import islice, takewhile
from threading import Event

import numpy as np

from munjang.errors import InputError, quote
from munjang.library.index_config import Tuning
from munjang.library.late import check_format, choose_codebook, encode_passages, make_codebook
from munjang.library.passages import fitting_passages
from munjang.library.store import (
    Change,
    CommitUnknown,
    Document,
    Entry,
    NewMetadata,
    NewTokenCodes,
    Passage,
    Settings,
    Store,
    StoredCodebook,
)
from munjang.library.store import Progress as Progress
from munjang.library.words import iterate_words
from munjang.types import Encoder, Vectors
from munjang.vectors.maxsim import TokenFormat
from munjang.wording import brief_repr

_LOOK_SECONDS = 0.05
"""How long words are waited for before `progress` is asked again."""


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
    store: Store,
    encoder: Encoder,
    waiting: Sequence[Document],
    *,
    must_exist: bool = False,
    progress: Progress | None = None,
    tokens: TokenFormat | None = None,
) -> AddReport:
    """Write a batch of documents in one commit; the caller holds the writer's lock. With `must_exist` a new id is refused.

    `tokens` is how a library without documents keeps token vectors from now on; another one does as before.
    """
    start = time.perf_counter()
    [report] = _write_groups(store, encoder, [waiting], must_exist=must_exist, progress=progress, tokens=tokens)
    return replace(report, seconds=time.perf_counter() - start)


def add_groups(
    store: Store, encoder: Encoder, groups: Sequence[Sequence[Document]], *, tokens: TokenFormat | None = None
) -> list[AddReport]:
    """Write the documents of several callers in one commit and return what became of each one's; the caller holds the writer's lock."""
    start = time.perf_counter()
    reports = _write_groups(store, encoder, groups, tokens=tokens)
    return [replace(report, seconds=time.perf_counter() - start) for report in reports]


def _write_groups(
    store: Store,
    encoder: Encoder,
    groups: Sequence[Sequence[Document]],
    *,
    must_exist: bool = False,
    progress: Progress | None = None,
    tokens: TokenFormat | None = None,
) -> list[AddReport]:
    batch, known = give_ids([document for group in groups for document in group], store)
    if must_exist:
        _refuse_new(batch, known, store.name)
    latest = {document.id: document for document in batch}
    fresh = [each for each in latest.values() if each.id not in known or known[each.id].content_hash != each.content_hash]
    fresh_ids = {each.id for each in fresh}
    book = choose_codebook(store, encoder, tokens) if fresh else None
    made = make_entries(fresh, encoder, store.settings(), progress=progress, book=book)
    entries = {entry.document.id: entry for entry in made}
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
    reports = [_count_outcomes(islice(outcomes, len(group))) for group in groups]
    changes: list[Change] = [*entries.values(), *other.values()]
    try:
        if changes:
            store.put(changes, codebook=_unless_stored(book, store))
    except CommitUnknown as error:
        error.result = reports if len(groups) > 1 else reports[0]
        raise
    return reports


def _count_outcomes(outcomes: Iterable[dict[str, int]]) -> AddReport:
    counts: Counter[str] = Counter()
    for outcome in outcomes:
        counts.update(outcome)
    return AddReport(**counts)


def _unless_stored(book: StoredCodebook | None, store: Store) -> StoredCodebook | None:
    stored = store.codebook()
    return None if book is None or (stored is not None and stored.checksum == book.checksum) else book


def add_missing_codes(store: Store, encoder: Encoder, format: TokenFormat, *, limit: int) -> tuple[int, bool]:
    """Write the token codes of some passages that have none; return how many got them, and whether all have them now.

    The caller holds the writer's lock and calls again until all have them; whoever is stopped goes on later. Only then are they used.
    """
    stored = store.codebook()
    if stored is None or stored.fingerprint != encoder.fingerprint:
        stored = make_codebook(encoder, format, complete=False)
    elif stored.codebook.format != format:
        check_format(store, format)
    rows = store.rows_without_codes(limit)
    places = store.places(rows)
    documents = store.get(sorted({place.id for place in places.values()}))
    found = [(row, documents[place.id].text[place.start : place.stop]) for row, place in sorted(places.items())]
    codes = encode_passages(encoder, [text for _, text in found], stored)[1] if found else []
    is_last = len(rows) < limit
    if found or stored.complete != is_last:
        changes = [NewTokenCodes(row, code) for (row, _), code in zip(found, codes, strict=True)]
        store.put(changes, codebook=_unless_stored(replace(stored, complete=is_last), store))
    return len(found), is_last


def make_entries(
    documents: Sequence[Document],
    encoder: Encoder,
    settings: Settings,
    *,
    progress: Progress | None = None,
    book: StoredCodebook | None = None,
) -> list[Entry]:
    """Split documents into passages, encode these together, with the codes of their tokens if there is a codebook, and find their words."""
    places = fitting_passages([each.text for each in documents], encoder, settings)
    texts = [each.text[start:stop] for each, spans in zip(documents, places, strict=True) for start, stop in spans]
    if not texts:
        return []
    with _find_words_beside(texts, settings) as waiting:
        vectors_PD, codes = _encode_passages(encoder, texts, settings, book)
        while progress is not None and not waiting.done():
            progress(0)
            wait((waiting,), timeout=_LOOK_SECONDS)
        words = waiting.result()
    entries, at = [], 0
    for document, spans in zip(documents, places, strict=True):
        if progress is not None:
            progress(0)
        found = zip(spans, words[at : at + len(spans)], strict=True)
        passages = [Passage(start, stop, tuple(each)) for (start, stop), each in found]
        own_codes = None if codes is None else tuple(codes[at : at + len(spans)])
        entries.append(Entry(document, tuple(passages), vectors_PD[at : at + len(spans)], own_codes))
        at += len(spans)
    return entries


@contextmanager
def _find_words_beside(texts: Sequence[str], settings: Settings) -> Iterator[Future[list[list[str]]]]:
    """Find the words of passages in a thread; it ends soon after the block does, whatever is left."""
    stopped = Event()

    def find() -> list[list[str]]:
        return list(takewhile(lambda _: not stopped.is_set(), iterate_words(texts, settings.analyser)))

    with ThreadPoolExecutor(1, thread_name_prefix="munjang-words") as beside:
        try:
            yield beside.submit(find)
        finally:
            stopped.set()


def reencode_entries(
    store: Store, encoder: Encoder, settings: Settings, tuning: Tuning, *, book: StoredCodebook | None, progress: Progress | None
) -> Iterator[Entry]:
    """Yield every document of a store, encoded anew."""
    for block in store.entries(block=tuning.batch_documents):
        yield from make_entries([entry.document for entry in block], encoder, settings, book=book)
        if progress is not None:
            progress(len(block))


def remake_words(blocks: Iterable[list[Entry]], settings: Settings, *, progress: Progress | None = None) -> Iterator[Entry]:
    """Yield the same entries with words made as the settings say; vectors and token codes stay."""
    for block in blocks:
        for entry in block:
            text = entry.document.text
            words = map(tuple, iterate_words([text[each.start : each.stop] for each in entry.passages], settings.analyser))
            passages = tuple(Passage(each.start, each.stop, found) for each, found in zip(entry.passages, words, strict=True))
            yield replace(entry, passages=passages)
        if progress is not None:
            progress(len(block))


def _encode_passages(
    encoder: Encoder, texts: list[str], settings: Settings, book: StoredCodebook | None
) -> tuple[Vectors, list[bytes] | None]:
    vectors, codes = (encoder.encode(texts), None) if book is None else encode_passages(encoder, texts, book)
    vectors_PD = np.asarray(vectors, dtype=np.float32)
    if vectors_PD.shape != (len(texts), settings.dimension):
        raise InputError(f"the model gave vectors of shape {vectors_PD.shape}, expected {(len(texts), settings.dimension)}")
    return vectors_PD, codes


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
