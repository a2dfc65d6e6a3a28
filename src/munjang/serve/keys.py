"""Who may call the server, and what each may do: keys with a name, a right, and the libraries it holds for.

A key file is TOML or JSON:

    [[keys]]
    name = "web"
    key = "at-least-16-characters"   # or sha256 = "…", the key's SHA-256 in hexadecimal digits
    rights = "read"                  # read, write or admin
    libraries = ["news"]             # without it, all

`read` is for vectors, scores, analyses and searches; `write` is for changing libraries too, and for copies of them; `admin` is for
`/metrics` too, and for every library. Only digests of keys are kept, all of them are compared every time, and each in constant time.
Everything that is counted or logged sees a key's name.
"""

from __future__ import annotations

import hmac
import json
import re
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass, field
from difflib import get_close_matches
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args

from munjang.errors import InputError, quote
from munjang.limits import LIMITS
from munjang.serve.errors import Refusal

Right: TypeAlias = Literal["read", "write", "admin"]
RIGHTS: tuple[Right, ...] = get_args(Right)
"""Each includes those before it."""

MIN_KEY = 16
"""Characters of a key, at least: shorter ones can be guessed."""

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
DIGEST = re.compile(r"[0-9a-fA-F]{64}")
FIELDS = ("name", "key", "sha256", "rights", "libraries")
ONLY_KEY = "default"
"""The name of the key of a server that has one alone."""


@dataclass(frozen=True)
class Key:
    """A client that is known by a key."""

    name: str
    digest: bytes = field(repr=False)
    right: Right = "admin"
    libraries: frozenset[str] | None = None
    """None: all."""

    def may_see(self, library: str) -> bool:
        """Say whether the key holds for a library."""
        return self.libraries is None or self.right == "admin" or library in self.libraries

    def check(self, right: Right, library: str | None = None) -> None:
        """Refuse what the key does not allow, and say which right is missing."""
        if RIGHTS.index(right) > RIGHTS.index(self.right):
            raise Refusal(403, f"the key {quote(self.name)} has the right {self.right}, this needs {right}")
        if library is not None and not self.may_see(library):
            raise Refusal(403, f"the key {quote(self.name)} has no right to the library {quote(library)}")


ANYONE = Key("", b"")
"""Whoever calls a server that wants no key."""


class KeyRing:
    """The keys of a server; those of a file can be read again while it runs."""

    def __init__(self, key: str | None, file: Path | None) -> None:
        self._own = () if key is None else (Key(ONLY_KEY, digest_of(key)),)
        self._file = file
        self._keys = self._read()

    def __len__(self) -> int:
        return len(self._keys)

    def reload(self) -> None:
        """Read the file again; where it cannot be taken, raise, and the keys stay as they were."""
        self._keys = self._read()

    def find(self, given: bytes) -> Key | None:
        """Return whose key this is."""
        digest, found = sha256(given).digest(), None
        for key in self._keys:
            if hmac.compare_digest(digest, key.digest):
                found = key
        return found

    def _read(self) -> tuple[Key, ...]:
        keys = (*self._own, *(() if self._file is None else read_keys(self._file)))
        for what, values in (("name", [key.name for key in keys]), ("key", [key.digest for key in keys])):
            if len(set(values)) < len(values):
                raise InputError(f"{self._file}: two keys have the same {what}")
        return keys


def digest_of(key: str) -> bytes:
    """Return what is kept of a key."""
    return sha256(key.encode()).digest()


def is_strong(key: str) -> bool:
    """Say whether a key is long enough and fits into a header."""
    return len(key) >= MIN_KEY and key.isascii() and key.isprintable() and " " not in key


def read_key(path: Path) -> str:
    """Return the key in a file: its only line."""
    lines = _read_text(path, "a file with one line, the key").splitlines()
    key = lines[0].strip() if lines else ""
    if len([line for line in lines if line.strip()]) != 1 or not is_strong(key):
        raise InputError(f"{path}: expected one line, the key, of at least {MIN_KEY} ASCII characters without spaces")
    return key


def read_keys(path: Path) -> list[Key]:
    """Return the keys of a TOML or JSON file; no error shows any of them."""
    text = _read_text(path, "a TOML or JSON file with keys")
    try:
        found = json.loads(text) if path.suffix.lower() == ".json" else tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        place = re.search(r"line \d+", str(error))
        raise InputError(
            f"{path}{' ' + place[0] if place else ''}: is not {'JSON' if path.suffix.lower() == '.json' else 'TOML'}"
        ) from None
    entries = found.get("keys") if isinstance(found, dict) and set(found) == {"keys"} else None
    if not isinstance(entries, list) or not entries:
        raise InputError(f"{path}: expected a list named keys, with at least one key\n  in TOML, each begins with [[keys]]")
    return [_key(entry, f"{path} key {number}") for number, entry in enumerate(entries, start=1)]


def _key(entry: Any, where: str) -> Key:
    if not isinstance(entry, dict):
        raise InputError(f"{where}: expected a table with {_join_names(FIELDS)}")
    unknown = next((name for name in entry if name not in FIELDS), None)
    if unknown is not None:
        near = get_close_matches(str(unknown), FIELDS, n=1)
        raise InputError(
            f"{where}: {quote(str(unknown))} is unknown\n  {f'is {near[0]} meant?' if near else f'known are {_join_names(FIELDS)}'}"
        )
    name, right, libraries = entry.get("name"), entry.get("rights", "read"), entry.get("libraries")
    if not isinstance(name, str) or not NAME.fullmatch(name):
        raise InputError(f"{where}: name: expected 1 to 64 letters, digits, '.', '-' or '_'")
    if right not in RIGHTS:
        raise InputError(f"{where}: rights are {quote(str(right))}, expected one of {_join_names(RIGHTS)}")
    if libraries is not None and not (isinstance(libraries, list) and all(isinstance(each, str) for each in libraries)):
        raise InputError(f"{where}: libraries: expected a list of names")
    return Key(name, _digest(entry, where), right, None if libraries is None else frozenset(libraries))


def _digest(entry: dict[str, Any], where: str) -> bytes:
    key, digest = entry.get("key"), entry.get("sha256")
    if (key is None) == (digest is None):
        raise InputError(f"{where}: expected either key or sha256")
    if key is not None:
        if not isinstance(key, str) or not is_strong(key):
            raise InputError(f"{where}: key: expected at least {MIN_KEY} ASCII characters without spaces")
        return digest_of(key)
    if not isinstance(digest, str) or not DIGEST.fullmatch(digest):
        raise InputError(f"{where}: sha256: expected 64 hexadecimal digits")
    return bytes.fromhex(digest)


def _read_text(path: Path, expected: str) -> str:
    try:
        with path.open("rb") as handle:
            content = handle.read(LIMITS.max_config_bytes + 1)
        if len(content) > LIMITS.max_config_bytes:
            raise InputError(f"{path}: is larger than {LIMITS.max_config_bytes:,} bytes, the limit")
        return content.decode("utf-8")
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from None
    except UnicodeDecodeError:
        raise InputError(f"{path}: is not text, expected {expected}") from None


def _join_names(names: Iterable[str]) -> str:
    return ", ".join(names)
