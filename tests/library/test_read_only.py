"""A library on a read-only disk: it can be searched and checked, nothing is written beside it, and writing is refused."""

from __future__ import annotations

import json
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from munjang.errors import InputError
from munjang.library import sqlite_files
from munjang.library.library import Library

RECORDS = [{"id": "a", "text": "rain in the summer"}, {"id": "b", "text": "snow on the train"}]

WORKER = """
import json, sys
from contextlib import suppress
from pathlib import Path
from tests.library.conftest import StubEncoder
from munjang.errors import InputError
from munjang.library.library import Library

folder = Path(sys.argv[1])
try:
    (folder / "probe").touch()
    sys.exit("the mount is not read-only")
except OSError:
    pass
before = sorted(each.name for each in folder.iterdir())
with Library.open(folder / "a.db", StubEncoder()) as library:
    hits = [hit.id for hit in library.search("snow train", k=1)]
    found = {"hits": hits, "check": library.check(), "documents": library.info().documents}
    try:
        library.add(["wind"], patience=0.1)
        found["added"] = True
    except InputError as error:
        found["refused"] = str(error)
found["new files"] = sorted({each.name for each in folder.iterdir()} - set(before))
print(json.dumps(found))
"""
MOUNT = 'mount --bind "$1" "$1" && mount -o remount,ro,bind "$1" && shift && exec "$@"'


def on_read_only_mount(folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    """Run a command in a mount namespace of its own in which the folder cannot be written to."""
    whole = ["unshare", "-m", "sh", "-c", MOUNT, "sh", str(folder), *command]
    done = subprocess.run(whole, capture_output=True, text=True, check=False, timeout=120, cwd=Path(__file__).parents[2])
    if "Operation not permitted" in done.stderr or "unshare failed" in done.stderr or "permission denied" in done.stderr.lower():
        pytest.skip("mounting is not permitted here")
    return done


@pytest.fixture
def folder(tmp_path, encoder) -> Path:
    with Library.open(tmp_path / "made.db", encoder, analyser="bigrams") as library:
        library.add(RECORDS)
    folder = tmp_path / "mounted"
    folder.mkdir()
    shutil.copy(tmp_path / "made.db", folder / "a.db")  # without a cache, as a copy is
    return folder


@pytest.mark.skipif(shutil.which("unshare") is None, reason="unshare is not installed")
def test_a_library_on_a_read_only_mount_is_searched_and_left_alone(folder):
    done = on_read_only_mount(folder, sys.executable, "-c", WORKER, str(folder))
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert "Read-only file system" in found.pop("refused")
    assert found == {"hits": ["b"], "check": [], "documents": 2, "new files": []}


@pytest.mark.skipif(shutil.which("unshare") is None, reason="unshare is not installed")
def test_the_command_searches_and_the_server_serves_a_read_only_volume(tmp_path):
    folder, texts, command = (
        tmp_path / "volume",
        tmp_path / "texts.txt",
        [sys.executable, "-c", "from munjang.cli.main import main; main()"],
    )
    folder.mkdir()
    texts.write_text("It rains in summer\nThe train is late because of snow\n")
    subprocess.run([*command, "add", str(folder / "a.db"), str(texts)], check=True, capture_output=True, timeout=120)
    done = on_read_only_mount(folder, *command, "search", str(folder / "a.db"), "winter weather", "-k", "1", "--json")
    assert [hit["text"] for hit in json.loads(done.stdout)] == ["The train is late because of snow"], done.stderr
    pytest.importorskip("starlette", reason="the extra serve is not installed")
    serve = ("serve", "--library", str(folder / "a.db"), "--data", str(folder / "data"), "--read-only", "--check")
    done = on_read_only_mount(folder, *command, *serve)
    assert json.loads(done.stdout)["libraries"] == ["a"], done.stderr


@pytest.fixture
def read_only(monkeypatch):
    """Where nothing can be mounted: every disk is taken for a read-only one."""
    monkeypatch.setattr(sqlite_files, "is_writable", lambda path: False)


def test_reading_makes_no_file(folder, encoder, read_only):
    with Library.open(folder / "a.db", encoder) as library:
        assert [hit.id for hit in library.search("rain summer", k=1)] == ["a"]
        assert [document.id for document in library.get(["b"])] == ["b"]
        assert library.check() == []
        library.prepare()
    assert [each.name for each in folder.iterdir() if each.name != "a.db.cache"] == ["a.db"]


def test_what_is_written_through_another_mount_is_seen(folder, encoder, monkeypatch):
    writer = Library.open(folder / "a.db", encoder)
    monkeypatch.setattr(sqlite_files, "is_writable", lambda path: False)
    with Library.open(folder / "a.db", encoder) as reader:
        assert reader.info().documents == 2
        writer.add(["wind"])
        assert reader.info().documents == 3
        writer.close()
        assert [hit.text for hit in reader.search("wind", k=1)] == ["wind"]


@pytest.mark.skipif(shutil.which("unshare") is None, reason="unshare is not installed")
def test_a_log_that_cannot_be_read_is_told_with_what_to_do(folder):
    """A copy of a library that was open: the log came along, its index did not."""
    connection = sqlite3.connect(folder / "a.db")
    connection.execute("UPDATE settings SET generation = generation + 1")
    connection.commit()
    shutil.copy(folder / "a.db-wal", folder / "kept")
    connection.close()
    (folder / "kept").rename(folder / "a.db-wal")
    done = on_read_only_mount(folder, sys.executable, "-c", "from munjang.cli.main import main; main()", "info", str(folder / "a.db"))
    assert done.returncode == InputError.exit_code
    assert "a.db: lies on a read-only disk, and its last commits are in the -wal file" in done.stderr
    assert "run munjang check on it where it can be written to" in done.stderr


def test_damage_is_found_on_a_read_only_disk_too(folder, encoder, read_only):
    content = bytearray((folder / "a.db").read_bytes())
    at = content.rindex(np.float32(encoder.encode(["snow on the train"])[0, 0]).tobytes())
    content[at] ^= 1
    (folder / "a.db").write_bytes(content)
    with Library.open(folder / "a.db", encoder) as library:
        assert library.check() != []
