"""A folder being written to → the trace of what a disk would have seen: contents, names made and taken away, and what was synced when.

The calls that change names and those that sync are watched (`os.fsync`, `os.replace`, `os.mkdir`, …). Contents are read from the folder
just before each of them, so it does not matter which language wrote them. Between two such calls nothing is promised to be on disk, which
is all that a replay has to know.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest import mock

from tests.trust.paths import meant

ROOT = 0
"""The number of the watched folder itself."""


@dataclass(frozen=True)
class Wrote:
    """A file's content changed."""

    file: int
    content: bytes


@dataclass(frozen=True)
class Named:
    """In one step a name may have come (`folder`, `name`, `what`) and another gone (`gone`)."""

    what: int
    folder: int | None = None
    name: str = ""
    gone: tuple[int, str] | None = None

    @property
    def folders(self) -> set[int]:
        return {each for each in (self.folder, self.gone and self.gone[0]) if each is not None}


@dataclass(frozen=True)
class Synced:
    """A file's content, or a folder's names, are on disk."""

    what: int


Event = Wrote | Named | Synced


@dataclass
class Trace:
    """What was there before, and what happened."""

    names: dict[int, dict[str, int]] = field(default_factory=lambda: {ROOT: {}})
    contents: dict[int, bytes] = field(default_factory=dict)
    events: list[Event] = field(default_factory=list)


class Recorder:
    """Follows one folder while a writer works in it."""

    def __init__(self, root: Path) -> None:
        self.root = root.resolve()
        self.numbers: dict[str, int] = {"": ROOT}
        self.seen: dict[int, bytes] = {}
        self.trace = Trace()
        self._next = ROOT + 1
        self._look()
        start = self.trace.events
        self.trace.events = []
        for event in start:  # what is there before counts as on disk
            if isinstance(event, Wrote):
                self.trace.contents[event.file] = event.content
            elif isinstance(event, Named) and event.folder is not None:
                self.trace.names.setdefault(event.folder, {})[event.name] = event.what
        for path, number in self.numbers.items():
            if (self.root / path).is_dir():
                self.trace.names.setdefault(number, {})

    def _look(self) -> None:
        """Take down new names and changed contents."""
        for folder, folders, files in os.walk(self.root):
            inside = os.path.relpath(folder, self.root)
            for name in [*sorted(folders), *sorted(files)]:
                path = os.path.normpath(os.path.join(inside, name))  # noqa: PTH118 - many small calls
                known = path in self.numbers
                if not known:
                    self.numbers[path] = self._next
                    self._next += 1
                number = self.numbers[path]
                if name in files:
                    content = (self.root / path).read_bytes()
                    if self.seen.get(number) != content:
                        self.seen[number] = content
                        self.trace.events.append(Wrote(number, content))
                if not known:
                    self.trace.events.append(Named(number, self._folder(path), name))

    def _folder(self, path: str) -> int:
        return self.numbers[os.path.dirname(path)]  # noqa: PTH120

    def inside(self, path: Any, dir_fd: int | None = None) -> str | None:
        """Return a path relative to the folder, None for one that is elsewhere."""
        relative = os.path.relpath(meant(path, dir_fd), self.root)
        return None if relative.startswith("..") else "" if relative == "." else relative

    def synced(self, path: str) -> None:
        self.trace.events.append(Synced(self.numbers[path]))

    def renamed(self, old: str, new: str) -> None:
        moved = {path: number for path, number in self.numbers.items() if path == old or path.startswith(old + "/")}
        event = Named(self.numbers[old], self._folder(new), os.path.basename(new), (self._folder(old), os.path.basename(old)))  # noqa: PTH119
        self.trace.events.append(event)
        for path in [path for path in self.numbers if path == new or path.startswith(new + "/")]:
            del self.numbers[path]
        for path, number in moved.items():
            del self.numbers[path]
            self.numbers[new + path[len(old) :]] = number

    def removed(self, path: str) -> None:
        self.trace.events.append(Named(self.numbers[path], gone=(self._folder(path), os.path.basename(path))))  # noqa: PTH119
        del self.numbers[path]

    def finish(self) -> Trace:
        self._look()
        return self.trace

    def watched(self, real: Callable[..., Any], note: Callable[..., None], paths: int) -> Callable[..., Any]:
        def call(*arguments: Any, **options: Any) -> Any:
            fds = [options.get("dir_fd"), None] if paths == 1 else [options.get("src_dir_fd"), options.get("dst_dir_fd")]
            found = [self.inside(path, fd) for path, fd in zip(arguments[:paths], fds, strict=False)]
            if None not in found:
                self._look()
            result = real(*arguments, **options)
            if None not in found:
                note(*found)
            return result

        return call


@contextmanager
def recorded(root: Path) -> Iterator[Recorder]:
    """Follow what happens in a folder inside the block; afterwards `finish()` returns the trace."""
    recorder = Recorder(root)
    one = {"fsync": recorder.synced, "fdatasync": recorder.synced, "unlink": recorder.removed, "remove": recorder.removed}
    one |= {"rmdir": recorder.removed, "mkdir": lambda path: recorder._look()}
    two = {"replace": recorder.renamed, "rename": recorder.renamed}
    patches = {name: recorder.watched(getattr(os, name), note, 1) for name, note in one.items()}
    patches |= {name: recorder.watched(getattr(os, name), note, 2) for name, note in two.items()}
    with mock.patch.multiple(os, **patches):
        yield recorder
