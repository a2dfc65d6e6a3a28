"""A trace → the folders that a power cut could leave, as far as POSIX promises: only what was synced is sure.

After any event the power may go. A name that came or went since its folder was last synced may be there or not, alone or with others. A
file's content since it was last synced may be old, new, cut off, full of zeros, or a mixture of blocks. A rename is one step.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tests.trust.recording import ROOT, Named, Synced, Trace, Wrote

Kept = Literal["all", "none", "first", "some"]
Content = Literal["new", "old", "torn"]
BLOCK = 512


@dataclass(frozen=True)
class State:
    """A folder as a power cut after `events` events left it; `acknowledged` when the writer had returned and all it synced is here."""

    files: dict[str, bytes]
    folders: frozenset[str]
    events: int
    acknowledged: bool

    def write(self, folder: Path) -> None:
        for name in sorted(self.folders):
            (folder / name).mkdir(parents=True, exist_ok=True)
        for name, content in self.files.items():
            (folder / name).write_bytes(content)

    def digest(self) -> bytes:
        made = hashlib.sha256(repr((sorted(self.folders), self.acknowledged)).encode())
        for name, content in sorted(self.files.items()):
            made.update(repr((name, len(content))).encode() + content)
        return made.digest()


def crash_states(trace: Trace, wanted: int, *, seed: int = 0) -> Iterator[State]:
    """Yield up to `wanted` different states: every prefix in the plainest ways first, then chance."""
    chance, seen = random.Random(seed), set()
    count = len(trace.events)
    plain: list[tuple[int, Kept, Content]] = [(count, kept, content) for kept in ("none", "some", "all") for content in ("old", "torn")]
    plain += [(at, kept, content) for at in range(count + 1) for kept in ("all", "none") for content in ("new", "torn", "old")]
    chance.shuffle(plain)
    kinds: tuple[Kept, ...] = ("first", "some", "all")
    ways: tuple[Content, ...] = ("new", "old", "torn", "torn")
    more = [(chance.randint(0, count), chance.choice(kinds), chance.choice(ways)) for _ in range(20 * wanted)]
    for at, kept, content in [*plain, *more]:
        if len(seen) == wanted:
            return
        state = _state(trace, at, kept, content, chance)
        if state.digest() not in seen:
            seen.add(state.digest())
            yield state


def _state(trace: Trace, at: int, kept: Kept, content: Content, chance: random.Random) -> State:
    events = trace.events[:at]
    names = {folder: dict(inside) for folder, inside in trace.names.items()}
    for event in _surviving(events, kept, chance):
        if event.folder is not None:
            names.setdefault(event.folder, {})[event.name] = event.what
        if event.gone is not None and names.get(event.gone[0], {}).get(event.gone[1]) == event.what:
            del names[event.gone[0]][event.gone[1]]
    contents = _contents(trace, events, content, chance)
    files: dict[str, bytes] = {}
    folders: set[str] = set()

    def walk(folder: int, path: str) -> None:
        for name, what in names.get(folder, {}).items():
            inside = f"{path}{name}"
            if what in contents:
                files[inside] = contents[what]
            else:
                folders.add(inside)
                walk(what, inside + "/")

    walk(ROOT, "")
    return State(files, frozenset(folders), at, at == len(trace.events))


def _surviving(events: list[Wrote | Named | Synced], kept: Kept, chance: random.Random) -> list[Named]:
    """Return the changes of names that are on disk, in order: the synced ones, and of the others as many as `kept` says."""
    last_sync = {event.what: place for place, event in enumerate(events) if isinstance(event, Synced)}
    named = [(place, event) for place, event in enumerate(events) if isinstance(event, Named)]
    sure = {place for place, event in named if any(place < last_sync.get(folder, -1) for folder in event.folders)}
    unsure = [place for place, _ in named if place not in sure]
    first = chance.randint(0, len(unsure))
    extra = {"all": unsure, "none": [], "first": unsure[:first], "some": [place for place in unsure if chance.random() < 0.5]}[kept]
    return [event for place, event in named if place in sure or place in set(extra)]


def _contents(trace: Trace, events: list[Wrote | Named | Synced], content: Content, chance: random.Random) -> dict[int, bytes]:
    synced, newest = dict(trace.contents), dict(trace.contents)
    for event in events:
        if isinstance(event, Wrote):
            newest[event.file] = event.content
        elif isinstance(event, Synced) and event.what in newest:
            synced[event.what] = newest[event.what]
    made = {}
    for file, new in newest.items():
        old = synced.get(file, b"")
        how = content if content != "torn" or chance.random() < 0.8 else chance.choice(("new", "old"))
        made[file] = new if how == "new" or new == old else old if how == "old" else _torn(old, new, chance)
    return made


def _torn(old: bytes, new: bytes, chance: random.Random) -> bytes:
    """Return one of the ways in which half a write may be found."""
    cut = chance.randint(0, len(new))
    match chance.randrange(4):
        case 0:
            return new[:cut]
        case 1:  # the length is on disk, the end is not
            return new[:cut] + bytes(len(new) - cut)
        case 2:
            return bytes(len(new))
        case _:  # some blocks came, in any order
            padded = old[: len(new)].ljust(len(new), b"\0")
            return b"".join((new if chance.random() < 0.5 else padded)[at : at + BLOCK] for at in range(0, len(new), BLOCK))
