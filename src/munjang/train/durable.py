"""Files and folders that are either whole or not there, however the process ends.

A folder is written beside its place under a temporary name, every file is flushed to disk, a manifest of checksums is added, and one rename
makes it visible. What a killed process leaves behind has a temporary name and is cleared by the next one.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

from safetensors import SafetensorError

from munjang.atomic import is_full, make_folder, sync, sync_folder
from munjang.errors import DamagedFile, MunjangError, NoSpace

MANIFEST = "manifest.json"
_TEMPORARY = ".partial-"


def write_folder(target: Path, fill: Callable[[Path], None]) -> None:
    """Make the folder `target` out of what `fill` writes into an empty one, in one step; an older `target` is replaced."""
    draft = target.parent / f"{_TEMPORARY}{target.name}-{os.getpid()}"
    shutil.rmtree(draft, ignore_errors=True)
    try:
        make_folder(target.parent)
        draft.mkdir()
        fill(draft)
        files = sorted(path for path in draft.rglob("*") if path.is_file())
        listed = {path.relative_to(draft).as_posix(): {"bytes": path.stat().st_size, "sha256": hash_file(path)} for path in files}
        (draft / MANIFEST).write_text(json.dumps(listed, indent=1), encoding="utf-8")
        sync_folder(draft)
        if target.exists():
            shutil.rmtree(target)
        draft.rename(target)
        sync(target.parent)
    except (OSError, SafetensorError) as error:
        raise _translate_error(error, target) from None
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def write_file(target: Path, fill: Callable[[Path], None]) -> None:
    """Make the file `target` in one step."""
    draft = target.parent / f"{_TEMPORARY}{target.name}-{os.getpid()}"
    try:
        fill(draft)
        sync(draft)
        draft.replace(target)
        sync(target.parent)
    except (OSError, SafetensorError) as error:
        raise _translate_error(error, target) from None
    finally:
        draft.unlink(missing_ok=True)


def write_text(target: Path, text: str) -> None:
    """Make the text file `target` in one step."""

    def fill(draft: Path) -> None:
        draft.write_text(text, encoding="utf-8")

    write_file(target, fill)


def _translate_error(error: OSError | SafetensorError, target: Path) -> OSError | MunjangError:
    """Return the error in our words where we have some."""
    if is_full(error):
        return NoSpace(f"{target}: the disk is full; what was there before is intact\n  free some space and resume")
    return error if isinstance(error, OSError) else MunjangError(f"{target}: cannot be written ({error})")


def check_folder(folder: Path) -> None:
    """Refuse a folder whose files are not those of its manifest."""
    try:
        listed = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        expected = {str(name): (facts["bytes"], facts["sha256"]) for name, facts in listed.items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise DamagedFile(f"{folder / MANIFEST}: cannot be read ({type(error).__name__})\n  restore it, or train again") from None
    found = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()} - {MANIFEST}
    for name in sorted(found | set(expected)):
        path = folder / name
        if name not in found or (path.stat().st_size, hash_file(path)) != expected.get(name):
            raise DamagedFile(f"{path}: is not what was written (size or checksum differs)\n  restore it, or train again")


def is_partial(path: Path) -> bool:
    """Return whether a name is one of those that unfinished files and folders have."""
    return path.name.startswith(_TEMPORARY)


def clear_partial(folder: Path) -> None:
    """Remove what killed processes left half written."""
    for path in filter(is_partial, list(folder.iterdir())):
        shutil.rmtree(path) if path.is_dir() else path.unlink()


def hash_file(path: Path) -> str:
    """Return a file's checksum."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
