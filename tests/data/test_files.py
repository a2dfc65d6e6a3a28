"""Files that are read whole, within a bound."""

from __future__ import annotations

import gzip

import pytest

from munjang.data.files import read_json, read_text
from munjang.errors import InputError


def test_a_gzip_file_that_unpacks_beyond_the_bound_is_refused(tmp_path):
    (tmp_path / "bomb.gz").write_bytes(gzip.compress(b"0" * 1_000_000))
    with pytest.raises(InputError, match="more than 1,000 bytes"):
        read_text(tmp_path / "bomb.gz", limit=1_000)


def test_a_byte_order_mark_goes_and_broken_text_is_named(tmp_path):
    (tmp_path / "a").write_bytes(b"\xef\xbb\xbfhello")
    assert read_text(tmp_path / "a") == "hello"
    (tmp_path / "b").write_bytes(b"abc\xff")
    with pytest.raises(InputError, match="b: byte 3 is not UTF-8"):
        read_text(tmp_path / "b")


@pytest.mark.parametrize(("data", "said"), [(b"\x1f\x8bnot gzip", "gzip"), (gzip.compress(b"hello world" * 99, mtime=0)[:-12], "gzip")])
def test_broken_gzip_is_named(data, said, tmp_path):
    (tmp_path / "a.gz").write_bytes(data)
    with pytest.raises(InputError, match=said):
        read_text(tmp_path / "a.gz")


def test_broken_and_bottomless_json_is_named(tmp_path):
    (tmp_path / "a.json").write_text('{"a":\n 1,}')
    with pytest.raises(InputError, match="a.json line 2: not JSON"):
        read_json(tmp_path / "a.json")
    (tmp_path / "b.json").write_text("[" * 200_000)
    with pytest.raises(InputError, match="b.json"):
        read_json(tmp_path / "b.json")


def test_a_missing_file_and_a_folder_are_named(tmp_path):
    with pytest.raises(InputError, match="no such file"):
        read_text(tmp_path / "none")
    with pytest.raises(InputError, match="a folder"):
        read_text(tmp_path)
