"""Where a job's output lives: a folder, or a place that fsspec knows (s3://…, gs://…). A file appears there whole or not at all.

In a folder a file is written under a temporary name, synced and renamed, and the folder's list of names is synced. Object stores show an
object only when all of it has arrived. What a killed process leaves behind has a temporary name and is cleared when the job is done, or by
the next run.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeAlias

from munjang.atomic import PARTIAL, atomic_file, is_full, make_folder
from munjang.errors import MissingExtra, MunjangError, NoSpace, UsageError

FILE = "file://"
"""An address that is a path after all."""


def is_url(path: str) -> bool:
    """Tell an address of fsspec's from a path.

    >>> is_url("s3://bucket/news"), is_url("C:/news")
    (True, False)
    """
    return "://" in path


def open_filesystem(url: str) -> tuple[Any, str]:
    """Return fsspec's file system for an address, and the address as it knows it."""
    try:
        import fsspec
    except ImportError as error:
        raise MissingExtra(f"{url.partition('://')[0]}://", "dask") from error
    try:
        found: tuple[Any, str] = fsspec.core.url_to_fs(url)
    except (ImportError, ValueError) as error:
        raise UsageError(f"{url}: {error}") from None
    return found


def open_storage(place: str, *, create: bool = False) -> Storage:
    """Return the storage at a path or address; with `create`, a folder that is not there is made."""
    if is_url(place) and not place.startswith(FILE):
        return RemoteStorage(place)
    place = place.removeprefix(FILE)
    folder = Path(place)
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"{place}: is a file, expected a folder for the output")
    if create and not folder.is_dir():
        with _translate_full_disk(folder):
            make_folder(folder)
    return LocalStorage(folder)


@contextmanager
def _translate_full_disk(path: Path) -> Iterator[None]:
    """Turn a full disk into our words."""
    try:
        yield
    except (OSError, NoSpace) as error:
        if isinstance(error, NoSpace) or is_full(error):
            raise NoSpace(
                f"{path}: the disk is full; every shard that is done is whole\n  free some space and continue with --resume"
            ) from None
        raise


class LocalStorage:
    """A folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.place = str(folder)

    def write(self, name: str, data: bytes | Iterable[bytes]) -> None:
        """Write the file whole, and its folder if there is none yet."""
        path = self.folder / name
        with _translate_full_disk(path):
            make_folder(path.parent)
            with atomic_file(path) as handle:
                handle.writelines([data] if isinstance(data, bytes) else data)

    def read(self, name: str) -> bytes | None:
        """Return a file's content, None if there is no such file."""
        try:
            return (self.folder / name).read_bytes()
        except FileNotFoundError:
            return None

    def read_all(self, folder: str, wanted: AbstractSet[str]) -> dict[str, bytes]:
        """Return the content of those files of a folder that are wanted and there, by name."""
        return {name: (self.folder / folder / name).read_bytes() for name in self.sizes(folder).keys() & wanted}

    def size(self, name: str) -> int | None:
        """Return a file's size, None if there is no such file."""
        try:
            return (self.folder / name).stat().st_size
        except FileNotFoundError:
            return None

    def sizes(self, folder: str) -> dict[str, int]:
        """Return the size of every file of a folder by its name."""
        place = self.folder / folder
        return {each.name: each.stat().st_size for each in os.scandir(place) if each.is_file()} if place.is_dir() else {}

    def clear_partial(self) -> None:
        """Remove what killed processes left half written."""
        for path in [*self.folder.glob(f".*{PARTIAL}"), *self.folder.glob(f"*/.*{PARTIAL}")]:
            path.unlink(missing_ok=True)


class RemoteStorage:
    """A place that fsspec knows; its own writes are whole or nothing."""

    def __init__(self, url: str) -> None:
        self.place = url.rstrip("/")
        self._system, root = open_filesystem(self.place)
        self._root = root.rstrip("/")

    def write(self, name: str, data: bytes | Iterable[bytes]) -> None:
        """Put an object."""
        try:
            self._system.makedirs(self._path(name).rpartition("/")[0], exist_ok=True)
            if isinstance(data, bytes):
                self._system.pipe_file(self._path(name), data)
            else:
                with self._system.open(self._path(name), "wb") as handle:
                    for piece in data:
                        handle.write(piece)
        except OSError as error:
            if is_full(error):
                raise NoSpace(f"{self.place}/{name}: no space is left\n  free some and continue with --resume") from None
            raise MunjangError(f"{self.place}/{name}: cannot be written ({error})") from error

    def read(self, name: str) -> bytes | None:
        """Return an object's content, None if there is no such object."""
        try:
            data: bytes = self._system.cat_file(self._path(name))
        except FileNotFoundError:
            return None
        return data

    def read_all(self, folder: str, wanted: AbstractSet[str]) -> dict[str, bytes]:
        """Return the content of those objects of a folder that are wanted and there, many at a time where the store can do that."""
        names = list(self.sizes(folder).keys() & wanted)
        found = self._system.cat([self._path(f"{folder}/{name}") for name in names]) if names else {}
        return {str(path).rpartition("/")[2]: content for path, content in found.items()}

    def size(self, name: str) -> int | None:
        """Return an object's size, None if there is no such object."""
        try:
            return int(self._system.size(self._path(name)))
        except FileNotFoundError:
            return None

    def sizes(self, folder: str) -> dict[str, int]:
        """Return the size of every object of a folder by its name."""
        self._system.invalidate_cache()
        try:
            listed = self._system.ls(self._path(folder), detail=True)
        except FileNotFoundError:
            return {}
        return {str(each["name"]).rpartition("/")[2]: int(each["size"]) for each in listed if each["type"] == "file"}

    def clear_partial(self) -> None:
        """Nothing is ever half written."""

    def _path(self, name: str) -> str:
        return f"{self._root}/{name}"


Storage: TypeAlias = LocalStorage | RemoteStorage
"""Files by name; a name may have one folder before it."""
