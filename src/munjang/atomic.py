"""A file that appears whole or not at all: written beside its place under a temporary name, synced, renamed, and its folder synced too.

Every room that writes a file or a folder of its own writes it here.
"""

from __future__ import annotations

import errno
import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedRandom
from pathlib import Path

from munjang.errors import NoSpace, UsageError

PARTIAL = ".part"
"""How names of files end that are not whole yet."""

_ABANDONED_SECONDS = 3_600


@contextmanager
def atomic_file(path: Path) -> Iterator[BufferedRandom]:
    """Open a file for writing and reading back; it takes `path`'s place only when the block ends without an error."""
    if path.is_dir() or not path.name:
        raise UsageError(f"{path}: is a folder, expected the name of a file to write")
    if not path.parent.is_dir():
        raise UsageError(f"{path}: the folder {path.parent} does not exist\n  make it first")
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}{PARTIAL}")
    try:
        with translate_disk_errors(path):
            with temporary.open("x+b") as handle:
                yield handle
                handle.flush()
                os.fsync(handle.fileno())
            temporary.replace(path)
            sync(path.parent)
    finally:
        temporary.unlink(missing_ok=True)


def remove_abandoned(draft: Path, pattern: str) -> None:
    """Remove the files beside a draft just made that match its pattern and that nobody has written to for an hour: of killed writers.

    Times are compared with the draft's, which the same disk stamped.
    """
    limit = draft.stat().st_mtime - _ABANDONED_SECONDS
    for path in draft.parent.glob(pattern):
        try:
            if path.stat().st_mtime < limit:
                path.unlink()
        except OSError:  # another process removes them too
            continue


def atomic_write(path: Path, content: str | bytes) -> None:
    """Write a whole file at once."""
    with atomic_file(path) as handle:
        handle.write(content.encode() if isinstance(content, str) else content)


def sync(path: Path) -> None:
    """Wait until a file, or a folder's list of names, is on disk."""
    if os.name == "nt" and path.is_dir():  # a folder cannot be opened there
        return
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def make_folder(folder: Path) -> None:
    """Make a folder, and those above it that are missing; when this returns, their names are on disk."""
    folder = folder.absolute()
    missing = [each for each in (folder, *folder.parents) if not each.is_dir()]
    with translate_disk_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
        for each in missing:
            sync(each.parent)


def sync_folder(folder: Path) -> None:
    """Wait until everything in a folder is on disk; whoever may read the folder may read its files (safetensors lets the owner alone)."""
    mode = folder.stat().st_mode & 0o666
    for path in folder.rglob("*"):
        if path.is_file():
            path.chmod(mode)
        sync(path)
    sync(folder)


@contextmanager
def atomic_folder(target: Path) -> Iterator[Path]:
    """Yield an empty folder, which takes `target`'s place only when the block ends without an error; a target with content is refused."""
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise UsageError(f"{target}: exists already and is not empty; choose another name, or remove it first")
    temporary = target.with_name(f".{target.name}.{secrets.token_hex(4)}{PARTIAL}")
    try:
        with translate_disk_errors(target):
            make_folder(target.parent)
            temporary.mkdir()
            yield temporary
            sync_folder(temporary)
            temporary.replace(target)
            sync(target.parent)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


@contextmanager
def translate_disk_errors(path: Path) -> Iterator[None]:
    """Turn the error of a full disk into our own, which names `path`."""
    try:
        yield
    except Exception as error:
        if is_full(error) and not isinstance(error, NoSpace):
            raise NoSpace(f"{path}: the disk is full; what was there before is intact") from error
        raise


def is_full(error: BaseException) -> bool:
    """Return whether an error says that the disk is full; safetensors tells the system's errors in its message only."""
    codes = (errno.ENOSPC, errno.EDQUOT)
    return getattr(error, "errno", None) in codes or any(f"os error {code}" in str(error) for code in codes)
