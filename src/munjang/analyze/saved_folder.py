"""A folder of one JSON file and parts beside it; nothing in it can run.

Parts carry their checksum in their names and are written first; the JSON file names them and takes its place in one step. So a folder holds
the old result or the new one, never a mixture, and what was changed or damaged is refused.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from munjang.atomic import PARTIAL, atomic_write, make_folder, translate_disk_errors
from munjang.errors import DamagedFile, FolderError, UsageError

LONGEST = 2**31
"""Bytes of one file that are read."""


@dataclass(frozen=True)
class FolderPart:
    """A file beside the JSON file."""

    kind: str
    suffix: str
    content: bytes

    @cached_property
    def name(self) -> str:
        """Its kind and its checksum."""
        return f"{self.kind}-{hashlib.sha256(self.content).hexdigest()}{self.suffix}"


@dataclass(frozen=True)
class SavedFolder:
    """How one kind of result is saved."""

    format: str
    main: str
    """The name of the JSON file."""
    kinds: tuple[str, ...]
    """The kinds of parts."""
    noun: str
    """What it is, in messages: "the topics"."""
    command: str
    """What writes it."""
    others: str = ""
    """A pattern of the names of parts that others write."""

    def check(self, folder: Path) -> None:
        """Refuse to save where something else is."""
        if folder.exists() and not folder.is_dir():
            raise UsageError(f"{folder}: is a file, expected a folder to save {self.noun} in")
        if folder.is_dir() and not (folder / self.main).is_file() and not all(self._owns(path.name) for path in folder.iterdir()):
            raise UsageError(f"{folder}: holds other files, expected an empty folder or one that `{self.command}` wrote")

    def write(self, folder: Path, facts: Mapping[str, Any], parts: Sequence[FolderPart], *, keep: Sequence[str] = ()) -> None:
        """Write a result, whose facts name the parts; one that was there is replaced as a whole, but for what is to be kept."""
        self.check(folder)
        with translate_disk_errors(folder):
            make_folder(folder)
            for part in parts:
                atomic_write(folder / part.name, part.content)
            whole = {"format": self.format, **facts}
            atomic_write(folder / self.main, to_json({**whole, "checksum": _hash_json(whole)}))
        stay = {*keep, *(part.name for part in parts)}
        for old in list(folder.iterdir()):
            if self._owns(old.name) and old.name not in stay:
                shutil.rmtree(old, ignore_errors=True) if old.is_dir() else old.unlink(missing_ok=True)

    def read(self, folder: Path) -> dict[str, Any]:
        """Return the facts of a saved result; a damaged one is refused."""
        path = folder / self.main
        if not path.is_file():
            raise FolderError(f"{folder}: holds no {self.main}, expected a folder that `{self.command}` wrote")
        try:
            facts = json.loads(_read_bytes(path))
        except ValueError:
            raise self._name_damage(path, "is no JSON") from None
        if not isinstance(facts, dict):
            raise self._name_damage(path, "holds no object")
        if facts.get("format") != self.format:
            raise FolderError(f"{path}: the format is not {self.format!r}\n  fit {self.noun} again with this version")
        checksum = facts.pop("checksum", None)
        if _hash_json(facts) != checksum:
            raise self._name_damage(path, "the checksum is wrong")
        return facts

    def read_part(self, folder: Path, name: str) -> bytes:
        """Return the content of a part that the facts name."""
        match = re.fullmatch(rf"({'|'.join(self.kinds)})-([0-9a-f]{{64}})\.\w+", name)
        if match is None:
            raise DamagedFile(f"{folder / self.main}: names a file that is none of its own")
        if not (folder / name).is_file():
            raise DamagedFile(f"{folder / name}: is missing\n  fit {self.noun} again")
        content = _read_bytes(folder / name)
        if hashlib.sha256(content).hexdigest() != match[2]:
            raise self._name_damage(folder / name, "the checksum is wrong")
        return content

    def refuse(self, folder: Path, error: Exception) -> DamagedFile:
        """Return the error of a folder whose content makes no sense."""
        return DamagedFile(f"{folder}: cannot be understood ({type(error).__name__})\n  fit {self.noun} again")

    def _name_damage(self, path: Path, fact: str) -> DamagedFile:
        return DamagedFile(f"{path}: {fact}, the file was changed or damaged\n  fit {self.noun} again")

    def _owns(self, name: str) -> bool:
        """Say whether saving, this one or one that was killed, gives such a name to a file beside the JSON file."""
        kinds, main, partial = "|".join(self.kinds), re.escape(self.main), re.escape(PARTIAL)
        own = rf"({kinds})-[0-9a-f]{{64}}\.\w+|\.({kinds})-.*{partial}|\.{main}\..*{partial}"
        return re.fullmatch(f"{own}|{self.others}" if self.others else own, name) is not None


def to_json(value: Any) -> bytes:
    """Return JSON as it is written, for people to read too."""
    return (json.dumps(value, ensure_ascii=False, indent=1) + "\n").encode()


def _hash_json(facts: Mapping[str, Any]) -> str:
    return hashlib.sha256(to_json(facts)).hexdigest()


def _read_bytes(path: Path) -> bytes:
    size = path.stat().st_size
    if size > LONGEST:
        raise DamagedFile(f"{path}: is {size:,} bytes, the limit is {LONGEST:,}")
    return path.read_bytes()
