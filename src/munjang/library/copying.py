"""One library → another, with vectors and words as they are: nothing is encoded again.

A library in SQLite becomes a new file as it stands at one commit (`snapshot`), while others go on writing to it. Into a library that
exists, or to and from a server, documents go batch by batch (`copy_documents`), and each batch is read back and compared.
"""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from munjang.errors import DamagedFile, UsageError, quote
from munjang.file_lock import PATIENCE, PatienceOption
from munjang.library.indexing import Progress
from munjang.library.open_store import ADDRESSES, DistributedOption, open_store
from munjang.library.sqlite_files import open_connection, translate_errors
from munjang.library.sqlite_store import SqliteStore
from munjang.library.store import Entry, NewWeights, Store, StoredCodebook

BATCH = 512
"""Documents that are read and committed at once."""


def copy_library(
    source: Store,
    target: str | Path,
    *,
    progress: Progress | None = None,
    patience: PatienceOption = PATIENCE,
    distributed: DistributedOption = False,
) -> int:
    """Copy a library to a path or an address and return how many documents were not there yet."""
    is_path = not str(target).startswith(ADDRESSES)
    if is_path and isinstance(source, SqliteStore) and not Path(target).exists() and not distributed:
        return snapshot(source, Path(target), progress=progress)
    with closing(open_store(target, source.settings(), distributed=distributed)[0]) as store:
        return copy_documents(source, store, progress=progress, patience=patience)


def snapshot(source: Store, path: Path, *, progress: Progress | None = None) -> int:
    """Write a library as it is now to a new file and return how many documents it holds."""
    if isinstance(source, SqliteStore):
        source.back_up(path)
        with closing(SqliteStore.open(path)) as copy:
            documents, _ = copy.count()
        if progress is not None:
            progress(documents)
        return documents
    with closing(SqliteStore.open(path, create_with=source.settings())) as copy:
        documents = copy_documents(source, copy, progress=progress)
    with translate_errors(str(path)), closing(open_connection(path, write=True)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")  # all of it is in the one file
    return documents


def copy_documents(source: Store, target: Store, *, progress: Progress | None = None, patience: float = 0.0) -> int:
    """Put every document of the source into the target and return how many were not there yet.

    Commits batch by batch, and lets other writers in between; whoever is interrupted begins again, and what is there is passed over. Other
    documents of the target stay.
    """
    mine, theirs = source.settings(), target.settings()
    if source.uuid == target.uuid:
        raise UsageError(f"{source.name}: is the library that it should be copied to")
    if mine != theirs:
        raise UsageError(
            f"{target.name}: holds vectors of {quote(theirs.model)} ({theirs.fingerprint[:12]}), "
            f"{source.name} those of {quote(mine.model)} ({mine.fingerprint[:12]}), or is split otherwise\n  copy to a new library"
        )
    book = _choose_codebook(source, target)
    copied = 0
    if mine.weights is not None and theirs.weights is None and not target.count()[0]:
        with target.writer(f"copy from {source.name}", patience=patience):
            target.put([NewWeights(mine.weights)])
    for block in source.entries(block=BATCH, tokens=book is not None):
        with target.writer(f"copy from {source.name}", patience=patience):
            if target.settings() != mine:
                raise UsageError(f"{target.name}: was re-encoded while it was copied to\n  copy to a new library")
            missing = _missing(block, target)
            if missing:
                target.put(missing, codebook=book if book is not None and target.codebook() is None else None)
                _compare(missing, target)
        copied += len(missing)
        if progress is not None:
            progress(len(block))
    return copied


def _compare(written: list[Entry], target: Store) -> None:
    """Read documents and vectors back, each by its checksum, and refuse a copy that is not what was copied."""
    ids = [entry.document.id for entry in written]
    found = target.get(ids)
    block = target.vectors_of(target.rows_of(ids))
    vectors: dict[str, list[bytes]] = {}
    for id, vector_D in zip(block.ids, block.vectors_ND, strict=True):
        vectors.setdefault(id, []).append(vector_D.tobytes())
    for entry in written:
        id = entry.document.id
        if found.get(id) != entry.document or vectors.get(id) != [vector_D.tobytes() for vector_D in entry.vectors_PD]:
            raise DamagedFile(
                f"{target.name}: document {quote(id)} is not what was copied\n  run munjang check {target.name}, then copy again"
            )


def _choose_codebook(source: Store, target: Store) -> StoredCodebook | None:
    """Return the codebook with which token codes are copied; None where they are not: the target has documents without any."""
    mine, theirs = source.codebook(), target.codebook()
    if theirs is None:
        return mine if mine is not None and mine.complete and not target.count()[0] else None
    if mine is None or not mine.complete:
        fact = f"{target.name}: keeps token vectors, {source.name} has none, or not yet for every passage"
        raise UsageError(f"{fact}\n  make them first with Library.add_token_vectors").at_shell(
            f"{fact}\n  make them first: munjang index {source.name} --late"
        )
    if not theirs.codebook.is_near(mine.codebook):
        raise UsageError(
            f"{target.name}: keeps token vectors in {theirs.codebook.format} ({theirs.codebook.fingerprint}), "
            f"{source.name} in {mine.codebook.format} ({mine.codebook.fingerprint})\n  copy to a new library"
        )
    return theirs


def _missing(block: list[Entry], target: Store) -> list[Entry]:
    known = target.get([entry.document.id for entry in block])
    return [entry for entry in block if known.get(entry.document.id) != entry.document]
