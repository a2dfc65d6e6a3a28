"""Names that a user gives → the files to read: paths, folders, patterns and addresses that fsspec knows."""

from __future__ import annotations

import glob
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from munjang.bulk.storage import is_url, open_filesystem
from munjang.errors import InputError, UsageError
from munjang.text.readers import find_format
from munjang.types import Format

_WILD = "*?["


def find_inputs(names: Sequence[str], *, format: Format | None = None) -> list[str]:
    """Return the paths of all files to read, each once."""
    if not names:
        raise UsageError("there is nothing to read, expected files, folders or patterns")
    return list(dict.fromkeys(path for name in names for path in _find_files(str(name), format)))


def _find_files(name: str, format: Format | None) -> Iterator[str]:
    if name == "-":
        raise UsageError("standard input cannot be read twice, which continuing a job needs\n  write it to a file first")
    found = list(_find_remote(name, format) if is_url(name) else _find_local(name, format))
    if not found:
        raise InputError(f"{name}: no file there, expected txt, csv, tsv, jsonl or parquet files, each but parquet also with .gz")
    yield from found


def _find_local(name: str, format: Format | None) -> Iterable[str]:
    path = Path(name)
    if path.is_file():
        return [str(path.absolute())]
    if path.is_dir():
        below = (each for each in path.rglob("*") if each.is_file() and not _is_hidden(each.relative_to(path).as_posix()))
        return _keep_known(sorted(str(each.absolute()) for each in below), format)
    if any(mark in name for mark in _WILD):
        return _keep_known(sorted(str(Path(each).absolute()) for each in glob.glob(name, recursive=True) if Path(each).is_file()), format)  # noqa: PTH207
    return []


def _find_remote(url: str, format: Format | None) -> Iterable[str]:
    system, path = open_filesystem(url)
    if any(mark in path for mark in _WILD):
        found = sorted(map(str, system.glob(path)))
    elif system.isdir(path):
        root = path.rstrip("/") + "/"
        found = [each for each in sorted(map(str, system.find(path))) if not _is_hidden(each.removeprefix(root))]
    else:
        return [url] if system.exists(path) else []
    return _keep_known([str(system.unstrip_protocol(each)) for each in found], format)


def _keep_known(paths: Iterable[str], format: Format | None) -> Iterator[str]:
    for path in paths:
        try:
            if format is not None or find_format(Path(path)) != "json":
                yield path
        except UsageError:
            continue


def _is_hidden(name: str) -> bool:
    return any(part.startswith(".") for part in name.split("/"))
