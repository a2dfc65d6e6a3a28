"""Is the machine fit: cores and threads, BLAS, instruction sets, memory, a place to write to, a terminal that knows Hangul?

Each function takes what the system says as an argument with the real thing as default, so that a test can hand in another machine.
"""

from __future__ import annotations

import math
import os
import platform
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from munjang.cli.doctor_findings import Finding, fine, said, wrong
from munjang.cli.show import size_text
from munjang.limits import usable_cores

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
        return said("cores", f"{cores} usable, but the container's limit is {quota:g}", advice)
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
        return said("threads", f"{', '.join(many)} for {cores} usable cores", f"unset, or set to {cores} or less: more threads are slower")
    if environment.get("TOKENIZERS_PARALLELISM", "").lower() in ("0", "false", "off", "no"):
        return said("threads", "TOKENIZERS_PARALLELISM is off", "texts are tokenised on one core; unset it for files")
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
        return said("numpy", f"{np.__version__} with plain BLAS ({name})", "search is slow; pip install numpy brings OpenBLAS")
    return fine("numpy", f"{np.__version__} with {name} {version}".rstrip())


def cpu_flags(cpuinfo: Path) -> frozenset[str] | None:
    """Return what the processor says it can do; None where the system does not tell."""
    line = re.search(r"^(?:flags|Features)\s*:\s*(.*)$", _read(cpuinfo), re.MULTILINE)
    return frozenset(line.group(1).split()) if line else None


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
        return said("instructions", found or "no avx2", "encoding is several times slower here; a processor of 2015 or later has avx2")
    if not sets["vnni"]:
        return said("instructions", f"{found}; no vnni", 'compute="int8" gains little here; munjang bench encode measures it')
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
    advice = "int8 models are prepared anew at every start; set MUNJANG_HOME to a folder that you may write to"
    if not place.is_dir():
        return said("home", f"{home}: {place} is a file", advice)
    try:
        with tempfile.TemporaryFile(dir=place):
            pass
    except OSError as error:
        return said("home", f"{home}: {error.strerror}", advice)
    free = shutil.disk_usage(place).free
    if free < LITTLE_DISK:
        return said("home", f"{home}: {size_text(free)} free on the disk", "models and libraries may not fit; set MUNJANG_HOME elsewhere")
    return fine("home", f"{home}, {size_text(free)} free")


def terminal_finding(encoding: str) -> Finding:
    """Say whether Hangul can be shown."""
    try:
        "한".encode(encoding)
    except (UnicodeEncodeError, LookupError):
        return said("terminal", f"{encoding} has no Hangul", "Korean is shown as escapes; set PYTHONUTF8=1 or a UTF-8 locale")
    return fine("terminal", encoding)


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
