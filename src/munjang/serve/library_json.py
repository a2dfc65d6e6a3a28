"""Libraries, reports and hits as clients see them: never where a library lies on disk."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import asdict
from typing import Any

from munjang.library.indexing import AddReport
from munjang.library.library import Library
from munjang.library.results import Hit
from munjang.library.sqlite_files import LibraryGone, LibraryReplaced
from munjang.serve.libraries import SAMPLE


def facts(name: str, library: Library) -> dict[str, Any]:
    """Return what clients may know of a library; not where it lies."""
    info = library.info()
    names = ("documents", "passages", "model", "dimension", "analyser", "passage_characters", "generation", "token_vectors")
    return {"name": name, **{each: getattr(info, each) for each in names}, "sample": name == SAMPLE}


def facts_of_all(libraries: Iterable[tuple[str, Library]]) -> list[dict[str, Any]]:
    """Return the facts of all libraries, without those whose files somebody took away or replaced."""
    found = []
    for name, library in libraries:
        with suppress(LibraryGone, LibraryReplaced):
            found.append(facts(name, library))
    return found


def added(library: Library, report: AddReport) -> dict[str, Any]:
    """Return a report for clients."""
    return {**asdict(report), "seconds": round(report.seconds, 3), "documents": library.info().documents}


def hit_json(hit: Hit) -> dict[str, Any]:
    """Return a hit for clients."""
    names = ("id", "score", "text", "metadata", "start", "stop", "reranked", "scored_by")
    found = {name: getattr(hit, name) for name in names}
    if hit.citation is not None:
        found["citation"] = hit.citation
    if hit.explanation is not None:
        found["explanation"] = asdict(hit.explanation)
    return found
