"""One store → another, with vectors and words as they are: nothing is encoded again."""

from __future__ import annotations

from munjang.errors import UsageError, shown
from munjang.library.adding import Progress
from munjang.library.store import Entry, Store

BATCH = 512
"""Documents that are read and committed at once."""


def copy_documents(source: Store, target: Store, *, progress: Progress | None = None) -> int:
    """Put every document of the source into the target and return how many were not there yet.

    Commits batch by batch; whoever is interrupted begins again, and what is there is passed over. Other documents of the target stay.
    """
    mine, theirs = source.settings(), target.settings()
    if source.uuid == target.uuid:
        raise UsageError(f"{source.name}: is the library that it should be copied to")
    if mine != theirs:
        raise UsageError(
            f"{target.name}: holds vectors of {shown(theirs.model)} ({theirs.fingerprint[:12]}), "
            f"{source.name} those of {shown(mine.model)} ({mine.fingerprint[:12]}), or is split otherwise\n  copy to a new library"
        )
    copied = 0
    with target.writer(f"copy from {source.name}"):
        for block in source.entries(block=BATCH):
            missing = _missing(block, target)
            if missing:
                target.put(missing)
            copied += len(missing)
            if progress is not None:
                progress(len(block))
    return copied


def _missing(block: list[Entry], target: Store) -> list[Entry]:
    known = target.get([entry.document.id for entry in block])
    return [entry for entry in block if known.get(entry.document.id) != entry.document]
