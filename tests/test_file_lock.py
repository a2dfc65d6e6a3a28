"""One holder at a time: the others wait in turn, a killed holder leaves nothing, and a removed lock file locks nobody."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from munjang.errors import Busy, InputError
from munjang.file_lock import hold_lock, lock_files

HOLD = """
import sys, time
from pathlib import Path
from munjang.file_lock import hold_lock
with hold_lock(Path(sys.argv[1]), name="a.db", purpose="sleep"):
    print("held", flush=True)
    time.sleep(60)
"""


def test_who_waits_in_vain_is_told_who_holds_the_lock_unless_strangers_listen(tmp_path):
    path = tmp_path / "lock"
    for discreet, words in ((False, rf"a.db: process {os.getpid()} \('add news.csv', since"), (True, "^a.db: someone else is writing")):
        with hold_lock(path, name="a.db", purpose="add news.csv"), pytest.raises(Busy, match=words) as error:  # noqa: SIM117
            with hold_lock(path, name="a.db", purpose="x", discreet=discreet):
                pass
    assert not [secret for secret in (str(os.getpid()), "news.csv", str(tmp_path)) if secret in str(error.value)]
    with hold_lock(path, name="a.db", purpose="x"):
        pass


def test_a_waiting_one_gets_the_lock_when_the_other_is_done(tmp_path):
    held, seen = threading.Event(), []

    def first() -> None:
        with hold_lock(tmp_path / "lock", name="a.db", purpose="first"):
            held.set()
            time.sleep(0.15)
            seen.append("first is done")

    thread = threading.Thread(target=first)
    thread.start()
    held.wait(10)
    with hold_lock(tmp_path / "lock", name="a.db", purpose="second", patience=20):
        seen.append("second")
    thread.join()
    assert seen == ["first is done", "second"]


def test_whoever_wants_the_lock_again_and_again_does_not_starve_the_others(tmp_path):
    path, done = tmp_path / "lock", threading.Event()
    rounds = [0]

    def greedy() -> None:
        while not done.is_set():
            with hold_lock(path, name="a.db", purpose="greedy", patience=20):
                rounds[0] += 1
                time.sleep(0.05)

    thread = threading.Thread(target=greedy)
    thread.start()
    time.sleep(0.02)
    before = rounds[0]
    try:
        for _ in range(3):
            with hold_lock(path, name="a.db", purpose="modest", patience=20):
                pass
    finally:
        done.set()
        thread.join()
    assert rounds[0] - before <= 12  # with a plain lock, which is free for moments only, it was some hundred


def test_a_killed_holder_leaves_no_lock(tmp_path):
    path = tmp_path / "lock"
    process = subprocess.Popen([sys.executable, "-c", HOLD, str(path)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    with pytest.raises(Busy, match=f"process {process.pid}"), hold_lock(path, name="a.db", purpose="x"):
        pass
    process.kill()
    process.wait()
    process.stdout.close()
    with hold_lock(path, name="a.db", purpose="x", patience=5):
        pass


def test_a_lock_file_that_its_holder_removes_lets_one_in_at_a_time(tmp_path):
    path, inside, most = tmp_path / "lock", [0], [0]

    def work() -> None:
        for _ in range(10):
            with hold_lock(path, name="a.db", purpose="work", patience=30):
                inside[0] += 1
                most[0] = max(most[0], inside[0])
                time.sleep(0.001)
                inside[0] -= 1
                for file in lock_files(path):
                    file.unlink(missing_ok=True)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == [1]


def test_a_folder_that_is_gone_is_not_made_again(tmp_path):
    path = tmp_path / "gone" / "lock"
    with pytest.raises(InputError, match="^a.db: cannot be opened"), hold_lock(path, name="a.db", purpose="x", discreet=True):
        pass
    assert not (tmp_path / "gone").exists()


WITHOUT_FCNTL = """
import sys, warnings
from pathlib import Path

class Hidden:
    def find_spec(self, name, path=None, target=None):
        if name == "fcntl":
            raise ImportError("there is no fcntl here")

sys.modules.pop("fcntl", None)
sys.meta_path.insert(0, Hidden())
warnings.simplefilter("ignore")
import munjang, munjang.library.library, munjang.library.sqlite_store
from munjang.errors import Busy
from munjang.file_lock import hold_lock
assert "fcntl" not in sys.modules
path = Path(sys.argv[1])
for _ in range(2):
    with hold_lock(path, name="a.db", purpose="x"):
        try:
            with hold_lock(path, name="a.db", purpose="y"):
                raise SystemExit("two at once")
        except Busy:
            pass
"""


def test_libraries_and_locks_work_without_fcntl(tmp_path: Path):
    subprocess.run([sys.executable, "-c", WITHOUT_FCNTL, str(tmp_path / "lock")], check=True, timeout=60)
