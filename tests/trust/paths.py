"""Which file a call means: a path, a number of an open file, or a name beside an open folder → the whole path."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any


def meant(path: Any, dir_fd: int | None = None) -> str:
    """Return the whole path, without following links."""
    if isinstance(path, int):
        return str(Path(f"/proc/self/fd/{path}").readlink())
    base = Path(f"/proc/self/fd/{dir_fd}").readlink() if dir_fd is not None else Path.cwd()
    return os.path.normpath(base / os.fspath(path))
