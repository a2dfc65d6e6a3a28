"""A library's life, from nothing, is killed at one changing call of the system after the other; then lived again, it comes to its end.

strace sends SIGKILL at the n-th call that opens, writes, syncs or renames one of the library's files. Random kills seldom hit the moments
in which a file is new; this hits each of them.
"""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.trust.sizes import sized

LIFE = """
import sys
from munjang import Library, SentenceEncoder
model, records = SentenceEncoder.load(sys.argv[2]), [{"id": str(number), "text": f"rain {number}"} for number in range(20)]
with Library.open(sys.argv[1], model) as library:
    library.add(records)
    library.remove(["3", "4"])
    library.compact()
    library.reencode(model)
    library.add(records)
with Library.open(sys.argv[1], model) as library:
    assert (library.info().documents, library.check()) == (20, [])
    assert library.search("rain 7", k=1)[0].id == "7"
"""
CALLS = "openat,pwrite64,write,ftruncate,fsync,fdatasync,unlink,unlinkat,rename,renameat,mkdir"


def lived(path: Path, model: Path, *, killed_at: int | None = None) -> subprocess.CompletedProcess[str]:
    """Live the library's life in a process of its own, up to a call that it does not survive."""
    command = [sys.executable, "-c", LIFE, str(path), str(model)]
    if killed_at is not None:
        watched = [f"--trace-path={path}{end}" for end in ("", "-wal", "-shm", "-journal", ".lock")]
        command = ["strace", "-f", "-o", "/dev/null", *watched, f"--inject={CALLS}:signal=SIGKILL:when={killed_at}", *command]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)


@pytest.mark.slow
def test_a_library_killed_at_any_call_lives_on(tiny_bert_folder, tmp_path, figures):
    if shutil.which("strace") is None or lived(tmp_path / "try.munjang", tiny_bert_folder, killed_at=1).returncode != -signal.SIGKILL:
        pytest.skip("strace is not installed, or may not be used here")
    bad, kills, limit = [], 0, sized("kills at one call after the other", "slow")
    while kills < limit:
        folder = tmp_path / "life"
        folder.mkdir()
        if lived(folder / "a.munjang", tiny_bert_folder, killed_at=kills + 1).returncode == 0:
            break
        kills += 1
        again = lived(folder / "a.munjang", tiny_bert_folder)
        bad += [(kills, again.stderr[-500:])] if again.returncode else []
        shutil.rmtree(folder)
    figures("a library killed at any call of the system lives on", cases=kills, bad=len(bad))
    assert not bad, bad[:3]
    assert kills >= min(limit, 100)
