"""Is the software there that Munjang needs: Python, packages, extras, SQLite, torch?

Nothing heavy is imported: an extra counts as installed when all its packages can be found, and torch is known by its files.
"""

from __future__ import annotations

import platform
import re
import sqlite3
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path

from munjang import __version__
from munjang.cli.doctor_findings import Finding, fine, said, wrong

OLDEST_PYTHON = (3, 11)

Present = Callable[[str], bool]


@dataclass(frozen=True)
class Extra:
    """An optional part: what it is good for, and the modules by which it is known."""

    name: str
    gives: str
    modules: tuple[str, ...]


EXTRAS = (
    Extra("korean", "Korean morphology: keywords, topics and hybrid search without particles", ("kiwipiepy",)),
    Extra("parquet", "Parquet files", ("pyarrow",)),
    Extra("search", "approximate search in libraries beyond 200,000 passages", ("faiss", "pyarrow")),
    Extra("topics", "k-means, agglomerative and HDBSCAN clusters", ("sklearn",)),
    Extra("umap", "UMAP before topics are grouped", ("umap",)),
    Extra("serve", "munjang serve", ("starlette", "uvicorn", "httptools", "pydantic", "orjson", "prometheus_client")),
    Extra("train", "training: train, distill, adapt, augment, ablate", ("torch", "transformers", "accelerate", "sklearn")),
    Extra("dask", "Dask dataframes and clusters", ("dask", "distributed", "pandas", "pyarrow")),
    Extra("pgvector", "libraries in PostgreSQL", ("psycopg",)),
)


def is_present(module: str) -> bool:
    """Say whether a module could be imported, without importing it."""
    return find_spec(module) is not None


def software(present: Present = is_present) -> Iterator[Finding]:
    """Yield what there is to say about the software."""
    yield python_finding(sys.version_info[:3])
    yield fine("platform", f"{platform.system()} {platform.machine()}, {platform.python_implementation()}")
    yield fine("munjang", f"{__version__} in {Path(__file__).parents[1]}")
    yield packages_finding()
    yield onnxruntime_finding()
    yield sqlite_finding()
    for extra in EXTRAS:
        yield extra_finding(extra, present)
    if present("torch"):
        yield torch_finding()


def python_finding(version: tuple[int, ...]) -> Finding:
    """Say whether Python is new enough."""
    text = ".".join(map(str, version))
    if version < OLDEST_PYTHON:
        return wrong("python", text, f"install Python {'.'.join(map(str, OLDEST_PYTHON))} or newer")
    return fine("python", text)


def packages_finding(requirements: list[str] | None = None) -> Finding:
    """Compare the packages that are always needed with the least versions that Munjang asks for."""
    try:
        lines = requirements if requirements is not None else metadata.requires("munjang") or []
    except metadata.PackageNotFoundError:
        return said("packages", "munjang is not installed as a package", "pip install munjang, so that versions can be compared")
    found, amiss = [], []
    for name, least in re.findall(r"^([\w.-]+)>=([\d.]+)$", "\n".join(lines), re.MULTILINE):
        try:
            version = metadata.version(name)
        except metadata.PackageNotFoundError:
            amiss.append(f"{name} is missing")
            continue
        found.append(f"{name} {version}")
        if _numbers(version) < _numbers(least):
            amiss.append(f"{name} is {version}, expected {least} or newer")
    if amiss:
        return wrong("packages", "; ".join(amiss), "pip install --upgrade munjang")
    return fine("packages", ", ".join(found))


def onnxruntime_finding() -> Finding:
    """Say whether onnxruntime starts; it is a compiled library, and a foreign machine may refuse it."""
    try:
        import onnxruntime

        providers = onnxruntime.get_available_providers()
    except Exception as error:  # whatever a broken shared library raises
        return wrong("onnxruntime", f"does not start: {error}", "pip install --force-reinstall onnxruntime")
    if "CPUExecutionProvider" not in providers:
        return wrong("onnxruntime", f"has no CPU provider, found {', '.join(providers)}", "pip install --force-reinstall onnxruntime")
    return fine("onnxruntime", f"{onnxruntime.__version__}, runs on the CPU")


def sqlite_finding(connect: Callable[[str], sqlite3.Connection] = sqlite3.connect) -> Finding:
    """Say whether SQLite can hold a library: it needs the full-text index FTS5."""
    connection = connect(":memory:")
    try:
        connection.execute("CREATE VIRTUAL TABLE probe USING fts5 (body)")
    except sqlite3.OperationalError:
        advice = "libraries cannot be made; use a Python whose sqlite3 has FTS5, such as python.org's or your distribution's"
        return wrong("sqlite", f"{sqlite3.sqlite_version} without FTS5", advice)
    finally:
        connection.close()
    return fine("sqlite", f"{sqlite3.sqlite_version} with FTS5")


def extra_finding(extra: Extra, present: Present = is_present) -> Finding:
    """Say whether an optional part is installed, and how to get it."""
    missing = [name for name in extra.modules if not present(name)]
    if not missing:
        return fine(f"extra {extra.name}", extra.gives)
    found = "not installed" if len(missing) == len(extra.modules) else f"incomplete, without {', '.join(missing)}"
    return said(f"extra {extra.name}", found, f"for {extra.gives}: pip install 'munjang[{extra.name}]'")


def torch_finding(version_file: Path | None = None) -> Finding:
    """Say which build of torch is installed, read from its own version file."""
    spec = find_spec("torch")
    file = version_file or (Path(spec.origin).parent / "version.py" if spec and spec.origin else None)
    text = file.read_text(encoding="utf-8") if file is not None and file.is_file() else ""
    version = re.search(r"^__version__\s*=\s*['\"]([^'\"]+)", text, re.MULTILINE)
    cuda = re.search(r"^cuda\b[^=]*=\s*['\"]([^'\"]+)", text, re.MULTILINE)
    build = f"CUDA {cuda.group(1)} build" if cuda else "CPU build"
    if version is None:
        return said("torch", "installed, but its version file cannot be read", "pip install --force-reinstall torch, if training fails")
    return fine("torch", f"{version.group(1)}, {build}")


def _numbers(version: str) -> tuple[int, ...]:
    """Return the numbers of a version, up to its first word.

    >>> _numbers("1.22.1rc1"), _numbers("2.0") < _numbers("2.0.1")
    ((1, 22, 1), True)
    """
    return tuple(int(number) for number in re.match(r"\d+(?:\.\d+)*", version)[0].split("."))  # type: ignore[index]
