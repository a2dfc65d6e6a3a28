"""`munjang doctor`: is this installation fit, and what is to be done where it is not?"""

from __future__ import annotations

import math
import os
import platform
import re
import shutil
import sqlite3
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path

import typer

from munjang import __version__
from munjang.cli.finding import Finding, devices, fine, tell, wrong
from munjang.cli.options import JsonOption, examples, new_app
from munjang.cli.show import emit, one_line, size_text
from munjang.engine.devices import DEVICES
from munjang.errors import FolderError
from munjang.limits import usable_cores
from munjang.models.registry import Found, list_models, models_home, resolve
from munjang.wording import count

app = new_app()


@app.command(epilog=examples("munjang doctor", "munjang doctor --json"))
def doctor(as_json: JsonOption = False) -> None:
    """Check the installation and say what to fix.

    Checks Python, packages and extras, cores and threads, instruction sets, memory, folders, SQLite, devices and models. The exit code is
    1 if something will not work; notes alone leave it at 0.
    """
    findings = examine()
    problems = [finding for finding in findings if finding.state == "problem"]
    if as_json:
        emit({"ok": not problems, "findings": [asdict(finding) for finding in findings]})
    else:
        _show(findings)
    if problems:
        raise typer.Exit(1)


def examine() -> list[Finding]:
    """Look at everything and return what was found, in the order in which it is shown."""
    return [*software(), *machine(models_home().parent), *devices(), *models()]


def _show(findings: list[Finding]) -> None:
    width = max(len(finding.name) for finding in findings)
    for finding in findings:
        print(f"{finding.state:<8} {finding.name:<{width}}  {one_line(finding.found)}")
        if finding.advice is not None:
            print(f"{'':<8} {'':<{width}}  → {one_line(finding.advice)}")
    counts = {state: sum(finding.state == state for finding in findings) for state in ("problem", "note")}
    print(f"{count(counts['problem'], 'problem')}, {count(counts['note'], 'note')}")


def models() -> Iterator[Finding]:
    """Yield what there is to say about models."""
    known = list_models()
    default = None
    try:
        default = resolve()
    except FolderError as error:
        yield wrong("default model", *str(error).split("\n  ", 1))
    looked_at = [found for found in known if found.origin == "bundled" or (default is not None and found.path == default.path)]
    for found in looked_at:
        yield model_finding(found, is_default=default is not None and found.path == default.path)
    others = len(known) - len(looked_at)
    if others:
        yield fine("other models", f"{others}; munjang models check NAME checks one")


def model_finding(found: Found, *, is_default: bool) -> Finding:
    """Check one model as `munjang models check` does: every tensor, a probe, and the SHA-256 of bundled files."""
    from munjang.cli.models import check_model

    name = f"model {found.name}"
    checked = check_model(found)
    if checked.problem is not None:
        what, _, advice = checked.problem.partition("\n  ")
        return wrong(name, what, advice or "install it again, or name another model in your commands")
    return fine(name, f"{found.origin}{', the default' if is_default else ''}: sound, {checked.tensors} tensors")


THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "RAYON_NUM_THREADS")
CGROUP = Path("/sys/fs/cgroup")
CPUINFO = Path("/proc/cpuinfo")
MEMINFO = Path("/proc/meminfo")

NEEDED_BYTES = 350 * 10**6
"""What a process with the default model takes (docs/results.md: 324 MB), rounded up."""

LITTLE_DISK = 500 * 10**6
"""Graphs of int8 models and libraries are written; less than this is soon full."""


def machine(home: Path) -> Iterator[Finding]:
    """Yield what there is to say about the machine; `home` is where models and caches are kept."""
    yield cores_finding(usable_cores(), cpu_quota(CGROUP))
    yield threads_finding(os.environ, usable_cores())
    yield blas_finding()
    yield instructions_finding(cpu_flags(CPUINFO), platform.machine())
    yield memory_finding(available_bytes(MEMINFO, CGROUP))
    yield home_finding(home)
    yield terminal_finding(sys.stdout.encoding or "ascii")


def cores_finding(cores: int, quota: float | None) -> Finding:
    """Compare the cores that may be used with the time that a container is given."""
    if quota is not None and math.ceil(quota) < cores:
        advice = f"{cores} threads would wait for each other; start it as: taskset -c 0-{math.ceil(quota) - 1} munjang …"
        return tell("cores", f"{cores} usable, but the container's limit is {quota:g}", advice)
    return fine("cores", f"{cores} usable, one thread each")


def cpu_quota(cgroup: Path) -> float | None:
    """Return how many cores' time a container may use; None where there is no limit."""
    fields = _read(cgroup / "cpu.max").split()
    return int(fields[0]) / int(fields[1]) if len(fields) == 2 and fields[0].isdigit() else None


def threads_finding(environment: Mapping[str, str], cores: int) -> Finding:
    """Look for variables that ask for more threads than there are cores, or that switch tokenising in parallel off."""
    asked = {name: environment[name] for name in THREAD_VARIABLES if environment.get(name)}
    many = [f"{name}={value}" for name, value in asked.items() if value.isdigit() and int(value) > cores]
    if many:
        return tell("threads", f"{', '.join(many)} for {cores} usable cores", f"unset, or set to {cores} or less: more threads are slower")
    if environment.get("TOKENIZERS_PARALLELISM", "").lower() in ("0", "false", "off", "no"):
        return tell("threads", "TOKENIZERS_PARALLELISM is off", "texts are tokenised on one core; unset it for files")
    return fine("threads", ", ".join(f"{name}={value}" for name, value in asked.items()) or "no variable limits them")


def blas_finding() -> Finding:
    """Say which BLAS numpy was built with; without an optimised one search and clustering are slow."""
    try:
        import numpy as np

        blas = np.show_config(mode="dicts")["Build Dependencies"]["blas"]
    except Exception as error:  # a numpy that does not load, or one that does not tell
        return wrong("numpy", f"does not load, or does not say how it was built: {error}", "pip install --force-reinstall numpy")
    name, version = str(blas.get("name", "unknown")), str(blas.get("version", ""))
    if not blas.get("found", False) or name in ("blas", "cblas", "none"):
        return tell("numpy", f"{np.__version__} with plain BLAS ({name})", "search is slow; pip install numpy brings OpenBLAS")
    return fine("numpy", f"{np.__version__} with {name} {version}".rstrip())


def cpu_flags(cpuinfo: Path) -> frozenset[str] | None:
    """Return what the processor says it can do; None where the system does not tell."""
    from munjang.engine.devices import read_flags

    return read_flags(cpuinfo) or None


def instructions_finding(flags: frozenset[str] | None, architecture: str) -> Finding:
    """Say which instruction sets there are: they decide what float32 and int8 are worth."""
    if architecture.lower() in ("arm64", "aarch64"):
        dot = "with int8 dot products" if flags is None or flags & {"asimddp", "i8mm"} else "without int8 dot products"
        return fine("instructions", f"NEON {dot}")
    if flags is None:
        return fine("instructions", f"{architecture}; this system does not say more")
    sets = {"avx2": "avx2" in flags, "avx512": "avx512f" in flags, "vnni": bool(flags & {"avx512_vnni", "avx_vnni"})}
    found = ", ".join(name for name, there in sets.items() if there)
    if not sets["avx2"]:
        return tell("instructions", found or "no avx2", "encoding is several times slower here; a processor of 2015 or later has avx2")
    if not sets["vnni"]:
        return tell("instructions", f"{found}; no vnni", 'compute="int8" gains little here; munjang bench encode measures it')
    return fine("instructions", found)


def available_bytes(meminfo: Path, cgroup: Path) -> int | None:
    """Return the memory that is free for us, a container's limit included; None where the system does not tell."""
    line = re.search(r"^MemAvailable:\s*(\d+) kB", _read(meminfo), re.MULTILINE)
    free = int(line.group(1)) * 1024 if line else None
    limit, used = _read(cgroup / "memory.max").strip(), _read(cgroup / "memory.current").strip()
    if limit.isdigit() and used.isdigit():
        left = max(int(limit) - int(used), 0)
        return left if free is None else min(free, left)
    return free


def memory_finding(available: int | None) -> Finding:
    """Say whether the default model fits into memory."""
    if available is None:
        return fine("memory", "this system does not say how much is free")
    if available < NEEDED_BYTES:
        return wrong("memory", f"{size_text(available)} free", f"the default model needs {size_text(NEEDED_BYTES)}; close something")
    return fine("memory", f"{size_text(available)} free")


def home_finding(home: Path) -> Finding:
    """Say whether models and caches can be kept; nothing is left behind there."""
    place = next(path for path in (home, *home.absolute().parents) if path.exists())
    advice = "int8 models are prepared again at every start; set MUNJANG_HOME to a folder that you may write to"
    if not place.is_dir():
        return tell("home", f"{home}: {place} is a file", advice)
    try:
        with tempfile.TemporaryFile(dir=place):
            pass
    except OSError as error:
        return tell("home", f"{home}: {error.strerror}", advice)
    free = shutil.disk_usage(place).free
    if free < LITTLE_DISK:
        return tell("home", f"{home}: {size_text(free)} free on the disk", "models and libraries may not fit; set MUNJANG_HOME elsewhere")
    return fine("home", f"{home}, {size_text(free)} free")


def terminal_finding(encoding: str) -> Finding:
    """Say whether Hangul can be shown."""
    try:
        "한".encode(encoding)
    except (UnicodeEncodeError, LookupError):
        return tell("terminal", f"{encoding} has no Hangul", "Korean is shown as escapes; set PYTHONUTF8=1 or a UTF-8 locale")
    return fine("terminal", encoding)


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


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
    Extra("openvino", "the device openvino, which computes in bfloat16", ("openvino",)),
    Extra("serve", "munjang serve", ("starlette", "uvicorn", "httptools", "pydantic", "orjson", "prometheus_client")),
    Extra("mcp", "munjang mcp", ("mcp", "starlette", "uvicorn", "httptools", "pydantic", "orjson", "prometheus_client")),
    Extra("documents", "PDF, Office, HTML and HWP files", ("xberg", "pypdfium2", "unhwp")),
    Extra("train", "training: train, distill, adapt, augment, ablate", ("torch", "transformers", "accelerate", "sklearn")),
    Extra("dask", "Dask dataframes and clusters", ("dask", "distributed", "pandas", "pyarrow")),
    Extra("ray", "munjang bulk --ray", ("ray", "pyarrow")),
    Extra("spark", "munjang bulk --spark", ("pyspark", "pyarrow")),
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
        return tell("packages", "munjang is not installed as a package", "pip install munjang, so that versions can be compared")
    found, amiss = [], []
    for name, least in re.findall(r"^([\w.-]+)>=([\d.]+)$", "\n".join(lines), re.MULTILINE):
        version = _find_version(name)
        if version is None:
            amiss.append(f"{name} is missing")
            continue
        found.append(f"{name} {version}")
        if _numbers(version) < _numbers(least):
            amiss.append(f"{name} is {version}, expected {least} or newer")
    if amiss:
        return wrong("packages", "; ".join(amiss), "pip install --upgrade munjang")
    return fine("packages", ", ".join(found))


def _find_version(name: str) -> str | None:
    """Return the version of a package; builds of onnxruntime for other devices stand for onnxruntime."""
    builds = [each for spec in DEVICES for each in spec.packages if each.startswith("onnxruntime-")] if name == "onnxruntime" else []
    for each in (name, *builds):
        try:
            return metadata.version(each)
        except metadata.PackageNotFoundError:
            continue
    return None


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
    return tell(f"extra {extra.name}", found, f"for {extra.gives}: pip install 'munjang[{extra.name}]'")


def torch_finding(version_file: Path | None = None) -> Finding:
    """Say which build of torch is installed, read from its own version file."""
    spec = find_spec("torch")
    file = version_file or (Path(spec.origin).parent / "version.py" if spec and spec.origin else None)
    text = file.read_text(encoding="utf-8") if file is not None and file.is_file() else ""
    version = re.search(r"^__version__\s*=\s*['\"]([^'\"]+)", text, re.MULTILINE)
    cuda = re.search(r"^cuda\b[^=]*=\s*['\"]([^'\"]+)", text, re.MULTILINE)
    build = f"CUDA {cuda.group(1)} build" if cuda else "CPU build"
    if version is None:
        return tell("torch", "installed, but its version file cannot be read", "pip install --force-reinstall torch, if training fails")
    return fine("torch", f"{version.group(1)}, {build}")


def _numbers(version: str) -> tuple[int, ...]:
    """Return the numbers of a version, up to its first word.

    >>> _numbers("1.22.1rc1"), _numbers("2.0") < _numbers("2.0.1")
    ((1, 22, 1), True)
    """
    return tuple(int(number) for number in re.match(r"\d+(?:\.\d+)*", version)[0].split("."))  # type: ignore[index]
