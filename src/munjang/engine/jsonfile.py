"""One JSON configuration file of a model folder → a dict, or a clear error.

Nothing here interprets values; it only makes sure that what comes back is an object, not too large, with no key twice, and from inside the
folder it claims to be from.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from munjang.errors import FolderError, quote
from munjang.limits import LIMITS, Limits

_LONGEST_NAME, _LONGEST_PATH = 255, 1_000


def read_object(path: Path, *, limits: Limits = LIMITS) -> dict[str, Any]:
    """Return the JSON object in `path`."""
    value = read_json(path, limits=limits)
    if not isinstance(value, dict):
        raise FolderError(f"{path}: found a JSON {type(value).__name__}, expected an object")
    return value


def read_json(path: Path, *, limits: Limits = LIMITS) -> Any:
    """Return the JSON value in `path`."""
    if path.exists() and not path.is_file():  # opening a named pipe would wait for ever
        raise FolderError(f"{path}: not a file, expected JSON")
    try:
        with path.open("rb") as file:
            raw = file.read(limits.max_config_bytes + 1)
    except FileNotFoundError:
        raise FolderError(f"{path}: the file is missing\n  the model folder is incomplete; copy it again") from None
    except OSError as error:
        raise FolderError(f"{path}: cannot be read ({error.strerror})") from None
    if len(raw) > limits.max_config_bytes:
        raise FolderError(f"{path}: larger than {limits.max_config_bytes:,} bytes, too large for a configuration file")
    try:
        return json.loads(raw.decode("utf-8"), object_pairs_hook=_refuse_key_twice)
    except (UnicodeDecodeError, ValueError, RecursionError) as error:
        raise FolderError(f"{path}: not readable as JSON ({error})") from None


def resolve_inside(folder: Path, relative: str) -> Path:
    """Return `folder/relative`, refusing a path that leaves the folder."""
    target = folder / relative
    parts = Path(relative).parts
    if len(relative) > _LONGEST_PATH or not all(is_file_name(part) for part in parts):
        raise FolderError(f"{folder}: module path {quote(relative)} is no path on any disk")
    if Path(relative).is_absolute() or ".." in parts or not target.resolve().is_relative_to(folder.resolve()):
        raise FolderError(f"{folder}: module path {quote(relative)} leaves the model folder, which is refused")
    return target


def is_file_name(name: str) -> bool:
    """Say whether a disk could hold a file of this name: not too long, no NUL, no half of a character.

    >>> is_file_name("1_Pooling"), is_file_name("9" * 300), is_file_name("\\ud800")
    (True, False, False)
    """
    try:
        return "\x00" not in name and len(name.encode()) <= _LONGEST_NAME
    except UnicodeEncodeError:
        return False


def _refuse_key_twice(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key occurs twice in one object")
    return found
