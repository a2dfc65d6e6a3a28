"""Two files of lines as pairs."""

from __future__ import annotations

import pytest

from munjang.errors import InputError
from munjang.evaluate.datasets.parallel import read_parallel
from munjang.evaluate.datasets.rows import TextPair


def _files(tmp_path, left: str, right: str):
    a, b = tmp_path / "news.ko", tmp_path / "news.en"
    a.write_text(left, encoding="utf-8")
    b.write_text(right, encoding="utf-8")
    return a, b


def test_lines_are_paired_by_their_number(tmp_path):
    data = read_parallel(*_files(tmp_path, "비\n\n눈\r\n", "rain\n\nsnow"))
    assert data.rows == (TextPair("비", "rain", "news.ko line 1"), TextPair("눈", "snow", "news.ko line 3"))


def test_a_missing_translation_is_named_or_counted(tmp_path):
    files = _files(tmp_path, "비\n눈\n", "rain\n\n")
    with pytest.raises(InputError, match=r"news\.en line 2: empty"):
        read_parallel(*files)
    assert len(read_parallel(*files, skip_bad=True).skipped) == 1


def test_files_of_unequal_length_are_refused(tmp_path):
    with pytest.raises(InputError, match="2 lines.*1 lines"):
        read_parallel(*_files(tmp_path, "비\n눈\n", "rain\n"))
