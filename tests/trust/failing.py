"""A disk that fails at the n-th call: every call of Python's that changes files counts, and the n-th one raises.

Counted are opening for writing, each write and flush, syncs, renames, new folders and removals under one folder. safetensors writes from
Rust: a call of it counts once, writes half a file and raises its own kind of error, as it does on a full disk.
"""

from __future__ import annotations

import builtins
import errno
import io
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

from safetensors import SafetensorError
from tests.trust.paths import meant

WRITING = set("wax+")
REMOVING = {"unlink", "remove", "rmdir"}


class FailingDisk:
    """Lets all calls through but number `at`; without a number it only counts."""

    def __init__(self, root: Path, at: int | None, code: int) -> None:
        self.root, self.at, self.code = str(root.resolve()), at, code
        self.count = 0
        self.failed = ""
        """The call that was refused."""

    def step(self, what: str) -> None:
        """Count one call; raise if it is the one."""
        self.count += 1
        if self.count == self.at:
            self.failed = what
            raise OSError(self.code, os.strerror(self.code))

    def is_inside(self, path: Any, dir_fd: int | None = None) -> bool:
        found = meant(path, dir_fd)
        return found == self.root or found.startswith(self.root + "/")

    def call(self, real: Callable[..., Any], name: str) -> Callable[..., Any]:
        def counted(path: Any, *arguments: Any, **options: Any) -> Any:
            if self.is_inside(path, options.get("dir_fd") or options.get("src_dir_fd")) and self._changes(name, path, arguments, options):
                self.step(name)
            return real(path, *arguments, **options)

        return counted

    def _changes(self, name: str, path: Any, arguments: tuple[Any, ...], options: dict[str, Any]) -> bool:
        if name == "open":
            return bool(arguments[0] & (os.O_WRONLY | os.O_RDWR))
        if name == "mkdir":
            return not Path(path).is_dir()
        if name in REMOVING:  # it needs no space, and something to remove
            return self.code != errno.ENOSPC and (options.get("dir_fd") is not None or Path(path).exists())
        return True

    def opener(self, real: Callable[..., Any]) -> Callable[..., Any]:
        def opened(file: Any, mode: str = "r", *arguments: Any, **options: Any) -> Any:
            if not WRITING & set(mode) or not self.is_inside(file):
                return real(file, mode, *arguments, **options)
            self.step("open")
            return _File(real(file, mode, *arguments, **options), self)

        return opened

    def tensors(self, real: Callable[..., Any]) -> Callable[..., Any]:
        def saved(tensors: Any, filename: Any, *arguments: Any, **options: Any) -> Any:
            try:
                self.step("save_file")
            except OSError as error:
                Path(filename).write_bytes(b"\x10\0\0\0\0\0\0\0{half of it")
                raise SafetensorError(f"Error while serializing: I/O error: {error.strerror} (os error {error.errno})") from None
            return real(tensors, filename, *arguments, **options)

        return saved


class _File:
    """A file whose writes count."""

    def __init__(self, inner: Any, disk: FailingDisk) -> None:
        self._inner, self._disk = inner, disk

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def __enter__(self) -> _File:
        return self

    def __exit__(self, *_: object) -> None:
        self._inner.close()

    def write(self, data: Any) -> int:
        self._disk.step("write")
        return int(self._inner.write(data))

    def writelines(self, parts: Any) -> None:
        for part in parts:
            self.write(part)

    def flush(self) -> None:
        self._disk.step("flush")
        self._inner.flush()


@contextmanager
def failing(root: Path, *, at: int | None = None, code: int = errno.ENOSPC) -> Iterator[FailingDisk]:
    """Let the n-th call that changes something under `root` fail."""
    import safetensors.torch

    disk = FailingDisk(root, at, code)
    names = ("open", "fsync", "replace", "rename", "mkdir", "sendfile", *REMOVING)
    opened = disk.opener(io.open)
    with (
        mock.patch.multiple(os, **{name: disk.call(getattr(os, name), name) for name in names}),
        mock.patch.object(io, "open", opened),
        mock.patch.object(builtins, "open", opened),
        mock.patch.object(safetensors.torch, "save_file", disk.tensors(safetensors.torch.save_file)),
    ):
        yield disk
