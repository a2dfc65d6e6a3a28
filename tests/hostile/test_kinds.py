"""Every hostile folder, opened under an audit hook: refused or harmless, no code runs, no socket, no process, the canary never appears."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from tests.hostile.kinds import HARMLESS, REFUSED

WATCHED = """
    import json, resource, sys
    resource.setrlimit(resource.RLIMIT_AS, (2 * 2**30, 2 * 2**30))
    watched = ("socket.", "subprocess.", "os.system", "os.exec", "os.posix_spawn", "os.fork", "os.spawn", "pty.", "pickle.", "marshal.",
               "urllib.", "ftplib.", "http.", "smtplib.", "shutil.unpack_archive", "ctypes.dlopen", "code.", "webbrowser.")
    from munjang import CrossEncoder, SentenceEncoder
    from munjang.errors import MunjangError
    good = SentenceEncoder.load(sys.argv[2])
    expected = good.encode(["rain and snow"]).tolist()
    armed, seen, reports = [False], [], {}
    def hook(event, arguments):
        if not armed[0]:
            return
        code = event in ("exec", "compile") and "evil" in repr(arguments)
        foreign = event == "import" and arguments[0].partition(".")[0] in ("evil", "torch", "transformers", "pickle")
        outside = event == "open" and str(arguments[0]).startswith(("/etc/", "/dev/zero"))
        if event.startswith(watched) or code or foreign or outside:
            seen.append(event + " " + repr(arguments)[:100])
    sys.addaudithook(hook)
    for path in json.loads(sys.argv[1]):
        seen.clear()
        armed[0] = True
        try:
            vectors = SentenceEncoder.load(path).encode(["rain and snow"]).tolist()
            result = "same" if vectors == expected else "changed"
        except MunjangError as error:
            result = "refused" if str(error).strip() else "refused without a word"
        except BaseException as error:
            result = type(error).__name__ + ": " + str(error)[:200]
        try:
            CrossEncoder.load(path)
        except MunjangError:
            pass
        armed[0] = False
        reports[path] = [result, list(seen)]
    print(json.dumps(reports))
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="limits memory as Linux does")
def test_no_hostile_folder_gets_anything_to_run(tiny_bert_folder, tmp_path, figures):
    expected, canary = {}, tmp_path / "canary"
    for name, spoil in {**REFUSED, **HARMLESS}.items():
        place = tmp_path / name / "model"
        shutil.copytree(tiny_bert_folder, place)
        spoil(place, canary)
        expected[str(place)] = "refused" if name in REFUSED else "same"
    command = [sys.executable, "-W", "ignore", "-c", textwrap.dedent(WATCHED), json.dumps(list(expected)), str(tiny_bert_folder)]
    at = tmp_path / "code_beside_the_model/model"  # as when a user works inside the folder
    done = subprocess.run(command, capture_output=True, text=True, cwd=at, check=False, timeout=120, env=_environment())
    assert done.returncode == 0, done.stderr[-2_000:]
    reports = json.loads(done.stdout)
    bad = {Path(path).parent.name: found for path, found in reports.items() if found != [expected[path], []]}
    figures(
        "a hostile model folder runs nothing", cases=len(reports), bad=len(bad), notes=f"{len(REFUSED)} refused, {len(HARMLESS)} harmless"
    )
    assert not bad
    assert not canary.exists()
    assert not list(tmp_path.rglob("canary"))
    assert len(reports) >= 40


def _environment() -> dict[str, str]:
    """Python must not look for modules in the folder it stands in: that would be the user's wish, not ours to judge."""
    return {**os.environ, "PYTHONSAFEPATH": "1", "OMP_NUM_THREADS": "1"}
