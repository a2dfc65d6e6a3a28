"""Vectors of texts that were encoded before, in one SQLite file on a local disk; optional, and shared by runs and processes.

A vector is known by the model's fingerprint, every setting that shapes it, and the SHA-256 of the text. The file is a cache: it may be
deleted at any time, and whatever is wrong with it costs time only. A text's vector depends on the batch it was encoded in by up to 2e-6, so
an output made with a cache is as exact as one made without, but not byte for byte the same.
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from munjang.bulk.job import Job
from munjang.errors import DamagedFile
from munjang.types import Floats

_WAIT_SECONDS = 60
_AT_ONCE = 500


class EmbeddingCache:
    """The vectors of one job's model and settings; to be used by one thread."""

    def __init__(self, path: str | Path, job: Job) -> None:
        settings = job.settings
        shaped = (settings.precision, settings.dimensions, settings.normalize, settings.prompt_name, settings.long_text)
        self._key = hashlib.sha256(repr((job.model.fingerprint, shaped)).encode()).digest()
        try:
            self._file = sqlite3.connect(str(path), timeout=_WAIT_SECONDS, isolation_level=None)
            self._file.execute("PRAGMA journal_mode=WAL")
            self._file.execute("PRAGMA synchronous=NORMAL")
            self._file.execute(
                "CREATE TABLE IF NOT EXISTS vectors "
                "(model BLOB, text BLOB, dtype TEXT, vector BLOB, PRIMARY KEY (model, text)) WITHOUT ROWID"
            )
        except sqlite3.DatabaseError as error:
            raise DamagedFile(f"{path}: is not an embedding cache ({error})\n  it may be deleted; it is made anew") from None

    def known(self, texts: Sequence[str]) -> dict[str, Floats]:
        """Return the vectors of those texts that are in the cache."""
        by_hash = {_hash(text): text for text in texts}
        found: dict[str, Floats] = {}
        hashes = list(by_hash)
        for at in range(0, len(hashes), _AT_ONCE):
            part = hashes[at : at + _AT_ONCE]
            marks = ",".join("?" * len(part))
            query = f"SELECT text, dtype, vector FROM vectors WHERE model = ? AND text IN ({marks})"  # noqa: S608 - question marks only
            for hashed, dtype, vector in self._file.execute(query, (self._key, *part)):
                found[by_hash[hashed]] = np.frombuffer(vector, dtype=np.dtype(dtype))
        return found

    def keep(self, texts: Iterable[str], vectors_ND: Floats) -> None:
        """Remember vectors; equal texts of other processes do no harm."""
        dtype = vectors_ND.dtype.str
        rows = [(self._key, _hash(text), dtype, vector_D.tobytes()) for text, vector_D in zip(texts, vectors_ND, strict=True)]
        self._file.execute("BEGIN IMMEDIATE")
        try:
            self._file.executemany("INSERT OR IGNORE INTO vectors VALUES (?, ?, ?, ?)", rows)
        finally:
            self._file.execute("COMMIT")

    def close(self) -> None:
        """Let go of the file."""
        self._file.close()


def _hash(text: str) -> bytes:
    return hashlib.sha256(text.encode()).digest()
