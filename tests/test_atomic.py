from __future__ import annotations

import errno
from pathlib import Path

import pytest

from munjang.atomic import atomic_file, atomic_write
from munjang.errors import NoSpace, UsageError


def test_a_file_appears_whole(tmp_path: Path) -> None:
    atomic_write(tmp_path / "a.txt", "비")
    assert (tmp_path / "a.txt").read_text(encoding="utf-8") == "비"


@pytest.mark.parametrize(
    ("error", "raised"), [(ValueError(), ValueError), (OSError(errno.ENOSPC, "full"), NoSpace), (OSError(5, "x"), OSError)]
)
def test_a_failure_keeps_the_old_file_and_leaves_no_other(tmp_path: Path, error: Exception, raised: type[Exception]) -> None:
    target = tmp_path / "a.txt"
    target.write_text("old")

    def fail() -> None:
        with atomic_file(target) as handle:
            handle.write(b"new")
            raise error

    with pytest.raises(raised):
        fail()
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("a.txt", "old")]


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="is a folder"):
        atomic_write(tmp_path, "x")
    with pytest.raises(UsageError, match="does not exist"):
        atomic_write(tmp_path / "no" / "a.txt", "x")
