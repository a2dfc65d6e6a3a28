"""The power goes at any moment of a write: what is found afterwards is the old state or the new one, and never a mixture."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from tests.trust.crash_states import crash_states
from tests.trust.recording import recorded
from tests.trust.sizes import LENGTHS, sized
from tests.trust.table import WRITERS, Writers
from tests.trust.writers import Writer

from munjang.errors import MunjangError


def answer(writer: Writer, folder: Path) -> str:
    try:
        return writer.look(folder)
    except MunjangError as error:
        return f"refused: {error}"


def redone(writer: Writer, folder: Path) -> str:
    """Write once more in what a cut left, and return what is found: nothing that was left may stand in the way."""
    try:
        writer.write(folder)
    except (MunjangError, OSError) as error:
        return f"{type(error).__name__}: {error}"
    return answer(writer, folder)


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="needs /proc to know which file is synced")
@LENGTHS
@pytest.mark.parametrize("name", WRITERS)
def test_a_power_cut_leaves_old_or_new(writers: Writers, tmp_path, name, length, figures):
    writer = writers(name)
    (tmp_path / "whole").mkdir()
    writer.old(tmp_path / "whole")
    before = answer(writer, shutil.copytree(tmp_path / "whole", tmp_path / "before"))
    with recorded(tmp_path / "whole") as recorder:
        writer.write(tmp_path / "whole")
    trace = recorder.finish()
    after = answer(writer, shutil.copytree(tmp_path / "whole", tmp_path / "after"))
    right = {before, after, *writer.also}
    bad, refused, count = [], 0, 0
    for state in crash_states(trace, sized("power cuts per writer", length)):
        place = tmp_path / "state"
        place.mkdir()
        state.write(place)
        found = answer(writer, place)
        sure = state.acknowledged and writer.acknowledges
        count, refused = count + 1, refused + found.startswith("refused")
        if found not in ({after} if sure else right):
            bad.append((state.events, found, sorted(state.files)))
        elif found != after and (again := redone(writer, place)) != after:
            bad.append((state.events, f"written again: {again}", sorted(state.files)))
        shutil.rmtree(place)
    figures("a power cut leaves the old state or the new one", cases=count, bad=len(bad), notes=f"{len(trace.events)} events of the disk")
    assert not bad, f"{len(bad)} of {count}: {bad[:3]} of {trace.events[-1]}"
    assert count >= min(sized("power cuts per writer", length), 20)
