"""The disk is full, or broken, at each call of a writer in turn: a clear error, the old state, and nothing that could be taken for real."""

from __future__ import annotations

import errno
import shutil
from pathlib import Path

import pytest
from tests.trust.failing import REMOVING, failing
from tests.trust.table import WRITERS, Writers
from tests.trust.test_power_cut import answer

from munjang.errors import MunjangError, NoSpace

pytest.importorskip("torch", reason="checkpoints are written by the extra train")
TOLERATED = {*REMOVING, "sendfile"}
"""Calls that may fail without an error: a removal is tried again later, and copying goes on by reading and writing."""
CODES = {"full": errno.ENOSPC, "broken": errno.EIO}


def names(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*")}


def judged(writer, folder: Path, error: Exception | None, *, code: int, failed: str, before: str, after: str) -> str | None:
    """Return what is wrong after a failed write, None if nothing is."""
    if error is None and failed not in TOLERATED and writer.full_disk_is_an_error:
        return f"no error although {failed} failed"
    if not isinstance(error, MunjangError | OSError | None):
        return f"{type(error).__name__} is not a clear error"
    if code == errno.ENOSPC and writer.full_disk_is_an_error and error is not None and not isinstance(error, NoSpace):
        return f"{type(error).__name__} although the disk is full"
    if failed not in REMOVING and any(".part" in name or "/.tmp" in f"/{name}" for name in names(folder)):
        return f"left behind: {sorted(names(folder))}"
    found = answer(writer, folder)
    return None if found in {before, after, *writer.also} else f"found {found}"


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="needs /proc to know which file is written")
@pytest.mark.parametrize("kind", CODES)
@pytest.mark.parametrize("name", WRITERS)
def test_a_failure_at_any_call_leaves_the_old_state(writers: Writers, tmp_path, name, kind, figures):
    writer, code = writers(name), CODES[kind]
    (tmp_path / "old").mkdir()
    writer.old(tmp_path / "old")
    before = answer(writer, shutil.copytree(tmp_path / "old", tmp_path / "before"))
    with failing(shutil.copytree(tmp_path / "old", tmp_path / "whole")) as disk:
        writer.write(tmp_path / "whole")
    after, calls, bad = answer(writer, tmp_path / "whole"), disk.count, []
    for at in range(1, calls + 1):
        folder, error = Path(shutil.copytree(tmp_path / "old", tmp_path / "failing")), None
        with failing(folder, at=at, code=code) as disk:
            try:
                writer.write(folder)
            except Exception as caught:
                error = caught
        wrong = judged(writer, folder, error, code=code, failed=disk.failed, before=before, after=after)
        if wrong:
            bad.append((at, disk.failed, wrong))
        shutil.rmtree(folder)
    figures(f"a disk that is {kind} at any call leaves the old state", cases=calls, bad=len(bad))
    assert not bad, f"{len(bad)} of {calls}: {bad[:4]}"
    assert calls >= 5
