"""Damaged files of every kind: opened in a child with 2 GB and 10 s, none crashes, hangs or eats memory, and no checksum is fooled."""

from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
import threading
from collections import Counter
from pathlib import Path

import pytest
from tests.trust import opening
from tests.trust.looks import LIBRARY_DOCUMENTS, LOOKS, UNSUMMED
from tests.trust.sizes import LENGTHS, sized
from tests.trust.table import Writers

SECONDS = 10
START_SECONDS = 120
AT_ONCE = 500


class Child:
    """One process that opens damaged folders."""

    def __init__(self, kind: str, folder: Path, scratch: Path, first: int, count: int) -> None:
        scratch.mkdir(parents=True)
        one = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "RAYON_NUM_THREADS"), "1")
        command = [sys.executable, opening.__file__, kind, str(folder), str(scratch), str(first), str(count)]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, **one})
        self._lines: queue.Queue[str | None] = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        for line in self.process.stdout:
            self._lines.put(line)
        self._lines.put(None)

    def line(self, seconds: float) -> dict | None:
        """Return the next report, None at the end; raise queue.Empty when it takes too long."""
        line = self._lines.get(timeout=seconds)
        return None if line is None else json.loads(line)

    def end(self) -> str:
        self.process.kill()
        errors = self.process.communicate()[1]
        return f"died with {self.process.returncode}: {errors[-300:]}"


def open_damaged(kind: str, folder: Path, scratch: Path, count: int) -> list[dict]:
    """Return what came of each of `count` damages; a child that dies or hangs is followed by another."""
    reports: list[dict] = []
    while len(reports) < count:
        first = len(reports)
        child = Child(kind, folder, scratch / str(first), first, min(AT_ONCE, count - first))
        begun: dict | None = None
        try:
            while (line := child.line(SECONDS if begun else START_SECONDS)) is not None:
                begun = line if "is" not in line else {**line, "ended": True}
                if "is" in line:
                    reports.append(line)
        except queue.Empty:
            assert begun, f"the child does not start: {child.end()}"
            reports.append({**begun, "is": "hangs"})
        died = child.end()
        if len(reports) < min(first + AT_ONCE, count) and begun and "ended" not in begun and reports[-1:] != [{**begun, "is": "hangs"}]:
            reports.append({**begun, "is": died})
        assert len(reports) > first, died
    return reports


def make_library(folder: Path) -> None:
    from tests.faults.library_worker import opened, record

    with opened(str(folder / "a.db")) as library:
        library.add([{**record(str(number), number), "kind": "odd" if number % 2 else "even"} for number in range(LIBRARY_DOCUMENTS)])
        library.compact()


def made(kind: str, writers: Writers, folder: Path) -> None:
    """Write an undamaged folder of the kind."""
    if kind == "library":
        make_library(folder)
        return
    writers({"bulk directory": "bulk job"}.get(kind, kind)).write(folder)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="limits memory as Linux does")
@LENGTHS
@pytest.mark.parametrize("kind", LOOKS)
def test_damaged_files_are_refused_or_harmless(writers: Writers, tmp_path, kind, length, figures):
    (tmp_path / "whole").mkdir()
    made(kind, writers, tmp_path / "whole")
    reports = open_damaged(kind, tmp_path / "whole", tmp_path / "scratch", sized("damages per kind", length))
    right = {"same", "refused", "changed"} if kind in UNSUMMED else {"same", "refused"}
    bad = [report for report in reports if report["is"] not in right]
    counts = Counter(report["is"] for report in reports if report["is"] in right)
    notes = ", ".join(f"{count:,} {what}" for what, count in counts.most_common())
    figures("a damaged file is refused or does no harm", cases=len(reports), bad=len(bad), notes=notes)
    assert not bad, f"{len(bad)} of {len(reports)}: {bad[:50]}"
    assert counts["refused"] > 0


PARTS = (
    "inner pages", "sqlite_schema", "settings", "documents", "sqlite_autoindex_documents_1", "passages", "passages_of", "vectors",
    "words_data", "words_idx", "words_docsize", "words_content",
)  # fmt: skip


@pytest.fixture(scope="module")
def deep_library(tmp_path_factory) -> Path:
    """A library with small pages, so that few documents make deep trees."""
    folder = tmp_path_factory.mktemp("deep")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("munjang.library.sqlite_schema.PAGE_BYTES", 512)
        make_library(folder)
    return folder


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="limits memory as Linux does")
@pytest.mark.parametrize(
    ("part", "length"), [("every part", "short"), *(pytest.param(part, "slow", marks=pytest.mark.slow) for part in PARTS)]
)
def test_a_flipped_bit_in_any_part_of_a_library_is_refused_or_harmless(deep_library, tmp_path, part, length, figures):
    parts = PARTS if part == "every part" else (part,)
    count = len(parts) * sized("flips per part of a library", length)
    reports = open_damaged(f"library/{','.join(parts)}", deep_library, tmp_path / "scratch", count)
    bad = [report for report in reports if report["is"] not in {"same", "refused"}]
    counts = Counter(report["is"] for report in reports)
    figures(
        "a flipped bit of a library is refused or does no harm", cases=len(reports), bad=len(bad), notes=f"{counts['refused']:,} refused"
    )
    assert not bad, f"{len(bad)} of {len(reports)}: {bad[:50]}"
