"""kill -9 at random moments, many times: nothing acknowledged is lost, nothing is unreadable, and what is resumed ends the same."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest
from tests.trust import kill_rig
from tests.trust.sizes import LENGTHS, sized

JOBS = {
    "library": "kills of a library",
    "model save": "kills of a model save",
    "graph cache": "kills of a graph cache",
    "bulk job": "kills of a bulk job",
    "training": "kills of a training",
}
ENDS = {"bulk job", "training"}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@LENGTHS
@pytest.mark.parametrize("job", JOBS)
def test_kills_lose_nothing(tiny_bert_folder, tmp_path, job, length, figures):
    if job == "bulk job":
        pytest.importorskip("pyarrow", reason="the extra parquet is not installed")
    kills = sized(JOBS[job], length)
    one = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1") | {"TOKENIZERS_PARALLELISM": "false"}
    command = [sys.executable, "-W", "ignore", kill_rig.__file__, job, str(tmp_path), str(tiny_bert_folder), str(kills)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600 + 60 * kills, env={**os.environ, **one})
    assert done.returncode == 0, done.stderr[-2_000:]
    found = json.loads(done.stdout)
    ended, said = f"{found['ended']:,} resumed to the end, byte for byte the same", f"{found['acknowledged']:,} acknowledged writes"
    figures("kill -9 at any moment loses nothing", cases=found["kills"], bad=len(found["bad"]), notes=ended if job in ENDS else said)
    assert not found["bad"], (found["bad"], done.stderr[-1_000:])
    assert found["kills"] == kills
    assert found["ended" if job in ENDS else "acknowledged"] > 0
