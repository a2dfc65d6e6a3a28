"""The libraries of a server, by name: those it was started with, those that clients made, and the sample collection where there is none.

A library's name is its file's name without the ending. All share the server's model, read with its prompts for queries and documents.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from munjang.errors import MunjangError, UsageError, shown
from munjang.serve.refusals import Refusal
from munjang.types import Vectors
from munjang.whole_file import make_folder

if TYPE_CHECKING:
    from munjang.engine.transformer import Compute
    from munjang.library.library import Library
    from munjang.models.sentence_encoder import SentenceEncoder
    from munjang.text.korean import Analyser

SAMPLE = "sample"
SUFFIX = ".db"
NAME = re.compile(r"[\w][\w.\-]{0,63}")
"""What a client may call a library: it becomes a file's name."""

QUERY = ("query",)
DOCUMENT = ("document", "passage", "corpus")


class Prompted:
    """An Encoder that puts the first of some prompts that the model has before every text; its fingerprint says which.

    It never warns of a cut: whoever answers a client says it there.
    """

    def __init__(self, model: SentenceEncoder, prompts: Sequence[str]) -> None:
        self._model = model
        self._prompt_name = next((name for name in prompts if name in model.prompts), None)
        self.name, self.dimension, self.max_length = model.name, model.dimension, model.max_length
        self.compute, self.pooling = model.compute, model.pooling
        self.fingerprint = f"{model.fingerprint} {self._prompt_name}" if self._prompt_name else model.fingerprint

    def fingerprint_as(self, compute: Compute) -> str:
        """Return the fingerprint that this encoder has when the model computes so."""
        found = self._model.fingerprint_as(compute)
        return f"{found} {self._prompt_name}" if self._prompt_name else found

    def encode(self, texts: Iterable[str], /) -> Vectors:
        """Return one row per text."""
        vectors: Vectors = self._model.encode_with_report(texts, prompt_name=self._prompt_name).vectors
        return vectors


class Libraries:
    """Open libraries by name; safe from many threads."""

    def __init__(
        self, model: SentenceEncoder, paths: Iterable[str], data: Path | None, *, scratch: Path, analyser: Analyser | None = None
    ) -> None:
        self._queries, self._documents = Prompted(model, QUERY), Prompted(model, DOCUMENT)
        self._data, self._scratch, self._analyser = data, scratch, analyser
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
        raise Refusal(404, f"there is no library {shown(name)}; there is: {known}")

    def create(self, name: str, *, passage_characters: int | None = None) -> Library:
        """Make an empty library in the data folder."""
        if self._data is None:
            raise Refusal(403, "this server keeps no new libraries\n  start it with --data FOLDER")
        if not NAME.fullmatch(name):
            raise Refusal(
                422, f"name {shown(name)}: expected 1 to 64 letters, digits, '.', '-' or '_', a letter or digit first", field="name"
            )
        with self._lock:
            path = self._data / f"{name}{SUFFIX}"
            if name in self._open and self._open[name].store.name == str(path) and not path.exists():
                self._open.pop(name).close()  # somebody took its file away
            if name in self._open or name == SAMPLE or path.exists():
                raise Refusal(409, f"there is a library {shown(name)} already", field="name")
            make_folder(self._data)
            self._open[name] = self._opened(path, create=True, passage_characters=passage_characters)
            return self._open[name]

    def forget(self, name: str) -> None:
        """Close a library that a client made and delete its files; others are refused."""
        with self._lock:
            library = self._open.get(name)
            path = None if self._data is None else self._data / f"{name}{SUFFIX}"
            if library is None or path is None or library.store.name != str(path):
                raise Refusal(403, f"{shown(name)} was not made through this server, so it is not deleted by it")
            del self._open[name]
            library.close()
            for file in (path, *(path.with_name(path.name + ending) for ending in ("-wal", "-shm", ".lock"))):
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
        name = Path(path.split("?")[0]).stem or path
        if name in self._open:
            raise UsageError(f"{path}: there is a library named {shown(name)} already\n  rename one of the files")
        self._open[name] = self._opened(path, create=False)

    def _add_found(self, file: Path) -> None:
        if file.stem in self._open or not NAME.fullmatch(file.stem):
            return
        try:
            self._open[file.stem] = self._opened(file, create=False)
        except MunjangError as error:
            self.skipped.append(str(error))

    def _opened(self, path: str | Path, *, create: bool, passage_characters: int | None = None) -> Library:
        from munjang.library.library import Library

        return Library.open(
            path,
            self._documents,
            query_encoder=self._queries,
            create=create,
            analyser=self._analyser,
            passage_characters=passage_characters,
        )

    def _sample(self) -> Library:
        """Return the sample collection, made at its first use; called with the lock held."""
        from munjang.models.samples import load_samples

        path = self._scratch / f"{SAMPLE}{SUFFIX}"
        if self._samples is None:
            self._samples = self._opened(path, create=True)
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
