"""What is remembered of files is what computing it again would give, after every change that a program can make to them."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from munjang.engine import remembered
from munjang.engine.folder import fingerprint, read_folder
from munjang.engine.remembered import FILE, remember


@pytest.fixture(autouse=True)
def remember_small_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remembered, "SMALLEST", 1)
    monkeypatch.setattr(remembered, "SETTLED_SECONDS", -1.0)


def read(file: Path) -> Callable[[], str]:
    return lambda: file.read_text()


def refuse() -> str:
    raise AssertionError("computed again")


def write_new(file: Path) -> None:
    file.write_text("other")


def write_in_place(file: Path) -> None:
    before = file.stat()
    with file.open("r+") as handle:
        handle.write("other")
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))  # the same size and the same time


def replace(file: Path) -> None:
    before = file.stat()
    other = file.with_name("other")
    other.write_text("other")
    os.utime(other, ns=(before.st_atime_ns, before.st_mtime_ns))
    other.replace(file)


def test_unchanged_files_are_not_read_again(tmp_path: Path) -> None:
    file = tmp_path / "a"
    file.write_text("first")
    assert remember("content", [file], read(file), home=tmp_path / "home") == "first"
    assert remember("content", [file], refuse, home=tmp_path / "home") == "first"
    assert remember("something else", [file], lambda: "2", home=tmp_path / "home") == "2"
    assert remember("content", [file], refuse, home=tmp_path / "home") == "first"


@pytest.mark.parametrize("change", [write_new, write_in_place, replace])
def test_every_change_is_seen(tmp_path: Path, change: Callable[[Path], None]) -> None:
    file = tmp_path / "a"
    file.write_text("first")
    assert remember("content", [file], read(file), home=tmp_path / "home") == "first"
    time.sleep(0.02)  # a tick of the file system's clock
    change(file)
    assert remember("content", [file], read(file), home=tmp_path / "home") == "other"


def test_a_file_that_has_just_changed_is_not_remembered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remembered, "SETTLED_SECONDS", 2.0)
    file = tmp_path / "a"
    file.write_text("first")
    assert [remember("content", [file], lambda turn=turn: str(turn), home=tmp_path / "home") for turn in range(2)] == ["0", "1"]


def test_after_a_week_files_are_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "a"
    file.write_text("first")
    remember("content", [file], read(file), home=tmp_path)
    monkeypatch.setattr(remembered, "LONGEST_SECONDS", 0.0)
    assert remember("content", [file], lambda: "again", home=tmp_path) == "again"


def test_what_could_not_be_computed_is_not_remembered(tmp_path: Path) -> None:
    file = tmp_path / "a"
    file.write_text("first")
    assert remember("content", [file], lambda: None, home=tmp_path) is None
    assert remember("content", [file], read(file), home=tmp_path) == "first"


def test_a_damaged_memory_is_not_trusted(tmp_path: Path) -> None:
    file = tmp_path / "a"
    file.write_text("first")
    remember("content", [file], read(file), home=tmp_path)
    whole = (tmp_path / FILE).read_bytes()
    for damaged in (whole.replace(b"first", b"other"), whole[:-3], b"", b"\xff" * 90):
        (tmp_path / FILE).write_bytes(damaged)
        assert remember("content", [file], read(file), home=tmp_path) == "first"


def test_a_place_that_cannot_be_written_to_is_no_error(tmp_path: Path) -> None:
    file = tmp_path / "a"
    file.write_text("first")
    assert remember("content", [file], read(file), home=file) == "first"
    assert remember("content", [tmp_path / "missing"], lambda: "2", home=tmp_path) == "2"


def test_only_the_newest_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remembered, "MOST", 3)
    file = tmp_path / "a"
    file.write_text("first")
    for turn in range(5):
        remember(f"content {turn}", [file], read(file), home=tmp_path)
    assert remember("content 4", [file], refuse, home=tmp_path) == "first"
    assert remember("content 0", [file], lambda: "again", home=tmp_path) == "again"


def test_a_fingerprint_is_the_same_whether_remembered_or_not(
    tiny_bert_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MUNJANG_HOME", str(tmp_path))
    folder = read_folder(tiny_bert_folder)
    found = [fingerprint(folder, settings=settings) for settings in ("a", "b", "a")]
    monkeypatch.setattr(remembered, "SMALLEST", 2**60)
    assert found == [fingerprint(folder, settings=settings) for settings in ("a", "b", "a")]
    assert found[0] != found[1]
