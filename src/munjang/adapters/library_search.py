"""A library behind the stores of other libraries: how it is searched, and which of its documents meet a filter.

Leaves to each adapter how its library writes a filter and what a document looks like there.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from munjang.library.library import Library
from munjang.library.ranking import By
from munjang.library.results import Hit
from munjang.library.store import Document
from munjang.library.where import Condition, matches
from munjang.types import Scorer


@dataclass(frozen=True)
class LibrarySearch:
    """How a library is searched, unless a call says otherwise."""

    library: Library
    by: By = None
    """Meaning alone, words alone, or both with other weights; None is both."""
    rerank: Scorer | None = None
    """A cross-encoder that reads the best hits again."""

    def find_hits(
        self,
        query: str,
        k: int,
        *,
        where: str | Condition | None = None,
        by: By = None,
        rerank: Scorer | None = None,
        min_score: float | None = None,
    ) -> list[Hit]:
        """Return the k best documents, best first."""
        return self.library.search(
            query,
            k,
            where=where,
            by=self.by if by is None else by,
            rerank=rerank or self.rerank,
            min_score=min_score,
        )


def list_documents(library: Library, condition: Condition | None) -> Iterator[Document]:
    """Yield the documents that meet a condition; every document is looked at, since a library has no index of its metadata."""
    for block in library.store.entries():
        for entry in block:
            document = entry.document
            if condition is None or matches(condition, {"id": document.id, "text": document.text, **document.metadata}):
                yield document
