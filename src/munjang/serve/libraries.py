"""The libraries of a server, by name: those it was started with, those that clients made, and the sample collection where there is none.

A library's name is its file's name without the ending; in PostgreSQL, its name there (behind #), never a part of the address. Libraries are
opened under these names, so that no message tells a client where one lies. A library's model is the one among the served ones that made
it, read with its prompts for queries and documents.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from munjang.atomic import make_folder
from munjang.errors import MunjangError, NoSpace, UsageError, quote
from munjang.file_lock import lock_files
from munjang.library.index_config import Tuning
from munjang.library.open_store import ADDRESSES
from munjang.library.pg_connections import Address
from munjang.library.sqlite_store import SqliteStore
from munjang.serve.errors import Refusal

if TYPE_CHECKING:
    from munjang.library.library import Library
    from munjang.models.prompted_encoder import PromptedEncoder
    from munjang.models.sentence_encoder import SentenceEncoder
    from munjang.text.dictionary import Dictionary
    from munjang.text.korean import Analyser
    from munjang.vectors.maxsim import TokenFormat

SAMPLE = "sample"
SUFFIX = ".db"
NAME = re.compile(r"[\w][\w.\-]{0,63}")
"""What a client may call a library: it becomes a file's name."""
NAME_BYTES = 200
"""Of a name in UTF-8: file systems take 255, and endings are added."""

BATCH_CHARACTERS = 400_000
"""Are tokenised and committed at once: a job that is stopped meanwhile takes no longer."""


class Libraries:
    """Open libraries by name; safe from many threads."""

    def __init__(
        self,
        models: Sequence[SentenceEncoder],
        paths: Iterable[str],
        data: Path | None,
        *,
        scratch: Path,
        analyser: Analyser | None = None,
        dictionary: Dictionary | None = None,
    ) -> None:
        self._encoders = {each.name: each.with_prompt(warn=False) for each in models}  # whoever answers a client says there what was cut
        self._data, self._scratch, self._analyser, self._dictionary = data, scratch, analyser, dictionary
        self._tuning = Tuning(batch_characters=BATCH_CHARACTERS)
        self._lock = threading.Lock()
        self._open: dict[str, Library] = {}
        self._samples: Library | None = None
        self.skipped: list[str] = []
        """Why files in the data folder are not served."""
        for path in paths:
            self._add_given(path)
        for file in sorted(data.glob(f"*{SUFFIX}")) if data is not None and data.is_dir() else []:
            self._add_found(file)

    def __iter__(self) -> Iterator[tuple[str, Library]]:
        """Yield names and libraries; the sample collection where there is no other."""
        with self._lock:
            found = sorted(self._open.items())
        yield from found or [(SAMPLE, self.get(SAMPLE))]

    def warm(self) -> None:
        """Make the sample collection now where it will be shown."""
        if not self._open:
            self.get(SAMPLE)

    def get(self, name: str) -> Library:
        """Return a library, or refuse a name that no library has."""
        with self._lock:
            found = self._open.get(name)
            if found is not None:
                return found
            if name == SAMPLE and not self._open:
                return self._sample()
            known = ", ".join(sorted(self._open)) or SAMPLE
        raise Refusal(404, f"there is no library {quote(name)}; there is: {known}")

    def create(self, name: str, *, model: str, passage_characters: int | None = None, token_vectors: TokenFormat | None = None) -> Library:
        """Make an empty library in the data folder, for one of the served models."""
        if self._data is None:
            raise Refusal(403, "this server keeps no new libraries\n  start it with --data FOLDER")
        if not NAME.fullmatch(name) or len(name.encode()) > NAME_BYTES:
            rule = f"1 to 64 letters, digits, '.', '-' or '_' ({NAME_BYTES} bytes at most), a letter or digit first"
            raise Refusal(422, f"name {quote(name)}: expected {rule}", field="name")
        with self._lock:
            path = self._data / f"{name}{SUFFIX}"
            if name in self._open and self._place_of(name) == path and not path.exists():
                self._open.pop(name).close()  # somebody took its file away
            if name in self._open or name == SAMPLE or path.exists():
                raise Refusal(409, f"there is a library {quote(name)} already", field="name")
            try:
                make_folder(self._data)
            except (MunjangError, OSError) as error:
                status = NoSpace.http_status if isinstance(error, NoSpace) else 503
                raise Refusal(status, f"{quote(name)}: the folder for new libraries cannot be made on this server") from error
            self._open[name] = self._made(path, name, model, passage_characters=passage_characters, token_vectors=token_vectors)
            return self._open[name]

    def forget(self, name: str) -> None:
        """Close a library that a client made and delete its files; others are refused."""
        with self._lock:
            library = self._open.get(name)
            path = None if self._data is None else self._data / f"{name}{SUFFIX}"
            if library is None or path is None or self._place_of(name) != path:
                raise Refusal(403, f"{quote(name)} was not made through this server, so it is not deleted by it")
            del self._open[name]
            library.close()
            beside = (path.with_name(path.name + ending) for ending in ("-wal", "-shm"))
            for file in (path, *beside, *lock_files(path.with_name(path.name + ".lock"))):
                file.unlink(missing_ok=True)
            _delete_folder(path.with_name(path.name + ".cache"))

    def close(self) -> None:
        """Close all."""
        with self._lock:
            for library in self._open.values():
                library.close()
            self._open.clear()
            if self._samples is not None:
                self._samples.close()

    def _add_given(self, path: str) -> None:
        if path.startswith(ADDRESSES):
            schema = Address.parse(path).schema
            name = next(name for name in (schema, *(f"{schema}-{number}" for number in range(2, 1_000))) if name not in self._open)
        else:
            name = Path(path).stem
        if name in self._open:
            raise UsageError(f"{path}: there is a library named {quote(name)} already\n  rename one of the files")
        self._open[name] = self._open_library(path, name)

    def _add_found(self, file: Path) -> None:
        if file.stem in self._open or not NAME.fullmatch(file.stem):
            return
        try:
            self._open[file.stem] = self._open_library(file, file.stem)
        except MunjangError as error:
            self.skipped.append(f"{file}: {error}")

    def _place_of(self, name: str) -> Path | None:
        """Return the file of an open library; None for one on a server."""
        store = self._open[name].store
        return store.path if isinstance(store, SqliteStore) else None

    def _open_library(self, path: str | Path, name: str) -> Library:
        """Open a library with the model that made it."""
        from munjang.library.library import Library

        return Library.open(path, self._encoder_of(path, name), create=False, tuning=self._tuning, name=name)

    def _encoder_of(self, path: str | Path, name: str) -> PromptedEncoder:
        """Choose among the served models by the fingerprint that the library holds; one model alone is for the library to refuse."""
        from munjang.library.library import Library

        if len(self._encoders) == 1:
            return next(iter(self._encoders.values()))
        with Library.open(path, create=False, name=name) as opened:
            made = opened.store.settings()
        for encoder in self._encoders.values():
            if encoder.for_documents().fingerprint == made.fingerprint:
                return encoder
        served = ", ".join(f"{quote(name)} ({encoder.fingerprint[:12]})" for name, encoder in self._encoders.items())
        fact = f"{name}: was built with the model {quote(made.model)} ({made.fingerprint[:12]}), which is not served; there is: {served}"
        raise UsageError(f"{fact}\n  name that model with --model too")

    def _made(
        self, path: Path, name: str, model: str, *, passage_characters: int | None = None, token_vectors: TokenFormat | None = None
    ) -> Library:
        from munjang.library.library import Library

        library = Library.open(
            path,
            self._encoders[model],
            analyser=self._analyser,
            passage_characters=passage_characters,
            tuning=self._tuning,
            name=name,
            token_vectors=token_vectors,
        )
        if self._dictionary:
            library.use_dictionary(self._dictionary)
        return library

    def _sample(self) -> Library:
        """Return the sample collection, made at its first use; called with the lock held."""
        from munjang.models.samples import load_samples

        path = self._scratch / f"{SAMPLE}{SUFFIX}"
        if self._samples is None:
            self._samples = self._made(path, SAMPLE, next(iter(self._encoders)))
        library = self._samples
        if not library.info().documents:
            library.add(
                {"id": each.id, "text": each.text, "metadata": {"language": each.language, "subject": each.subject}}
                for each in load_samples()
            )
        return library


def _delete_folder(folder: Path) -> None:
    if folder.is_dir():
        for file in folder.iterdir():
            file.unlink(missing_ok=True)
        folder.rmdir()
