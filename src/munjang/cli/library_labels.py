"""Labels of a library's documents → its metadata, a batch at a time; texts and vectors stay as they are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from munjang.library.library import Library
    from munjang.library.store import Document
    from munjang.types import Vectors

BATCH = 1_000
"""Documents whose metadata is written in one commit."""


def read_document_blocks(library: Library) -> Iterator[tuple[list[Document], list[Vectors]]]:
    """Yield documents with the vector of each: of several passages, their mean."""
    from munjang.library.matrix import document_vector

    for block in library.store.entries():
        yield [entry.document for entry in block], [document_vector(entry.vectors_PD, entry.lengths_P) for entry in block]


def write_metadata(library: Library, key: str, labels: Sequence[tuple[str, Any]]) -> int:
    """Write each document's label under a key of its metadata, and remove the key where there is none; return how many changed.

    A run that was killed is repeated: what is there already is left alone.
    """
    changed = 0
    for start in range(0, len(labels), BATCH):
        wanted = dict(labels[start : start + BATCH])
        documents = []
        for id, document in library.store.get(list(wanted)).items():
            kept = {name: value for name, value in document.metadata.items() if name != key}
            metadata = kept | ({key: wanted[id]} if wanted[id] not in (None, []) else {})
            if metadata != document.metadata:
                documents.append({"id": id, "text": document.text, "metadata": metadata})
        if documents:
            changed += library.update(documents).relabelled
    return changed
