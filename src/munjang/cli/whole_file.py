"""A file that appears whole or not at all: written beside its place under a temporary name, synced, renamed."""

from __future__ import annotations

import errno
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from munjang.errors import NoSpace, UsageError


@contextmanager
def whole_file(path: Path) -> Iterator[BinaryIO]:
    """Open a file for writing and reading back; it takes `path`'s place only when the block ends without an error."""
    if path.is_dir() or not path.name:
        raise UsageError(f"{path}: is a folder, expected the name of a file to write")
    if not path.parent.is_dir():
        raise UsageError(f"{path}: the folder {path.parent} does not exist\n  make it first")
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
    try:
        with temporary.open("x+b") as handle:
            yield handle
            handle.flush()
            os.fsync(handle.fileno())
        temporary.replace(path)
        _sync_directory(path.parent)
    except OSError as error:
        if error.errno == errno.ENOSPC:
            raise NoSpace(f"{path}: the disk is full; nothing was written") from error
        raise
    finally:
        temporary.unlink(missing_ok=True)


def write_whole(path: Path, content: str | bytes) -> None:
    """Write a whole file at once."""
    with whole_file(path) as handle:
        handle.write(content.encode() if isinstance(content, str) else content)


def _sync_directory(folder: Path) -> None:
    if os.name == "nt":  # a directory cannot be opened there
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
