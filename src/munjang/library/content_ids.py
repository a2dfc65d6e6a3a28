"""Documents that came without an id → the same documents with one, made of their text.

The id is the beginning of the text's hash, 12 digits, so equal texts are one document in whatever file and order they come, and adding a
file again changes nothing. Where another text has the same beginning the id gets longer. Libraries of earlier versions hold the whole hash
as id (32 digits); a text that is there under such an id keeps it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from munjang.library.store import Document, Store

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
