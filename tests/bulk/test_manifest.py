"""A job's papers: no damage is taken for what was written, and what a stranger wrote leads nowhere."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from typing import Any

import pytest
from tests.bulk.conftest import digest

from munjang.bulk.manifest import read_manifest
from munjang.bulk.output import open_output
from munjang.bulk.shard_files import CHECKSUM, read_checksummed, write_checksummed
from munjang.bulk.storage import LocalStorage
from munjang.errors import DamagedFile, MunjangError

pytest.importorskip("pyarrow")

HOSTILE = (None, -1, 10**30, float("nan"), "", "/dev/zero", "../../../etc/passwd", "x" * 5_000, [], [[]], {}, True)


def places(value: Any, path: tuple = ()) -> Iterator[tuple]:
    """Yield the way to every value inside a value."""
    for key, inner in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield (*path, key)
        yield from places(inner, (*path, key))


def replaced(value: Any, path: tuple, new: Any) -> Any:
    made = copy.deepcopy(value)
    inner = made
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = new
    return made


def test_what_is_written_is_read_back_whatever_its_text_holds():
    value = {"name": "문장 \udc80 \0", "numbers": [1, 0.1, 10**20], "none": None}
    assert read_checksummed(write_checksummed(value, indent=1), where="here", advice="") == value


def test_every_changed_value_is_seen(tmp_path, copy_output):
    output = copy_output(tmp_path / "out")
    for name in ("manifest.json", "receipts/part-00000001.json"):
        written = json.loads((output / name).read_bytes())
        for path in places(written):
            with pytest.raises(DamagedFile, match="here: is not what was written"):
                read_checksummed(json.dumps(replaced(written, path, "other")).encode(), where="here", advice="")


def test_a_manifest_without_its_checksum_is_an_older_one_and_with_a_strange_key_a_damaged_one(tmp_path, copy_output):
    output = copy_output(tmp_path / "out")
    written = json.loads((output / "manifest.json").read_bytes())
    checksum = written.pop(CHECKSUM)
    (output / "manifest.json").write_text(json.dumps(written), encoding="utf-8")
    assert open_output(output).rows == 90
    (output / "manifest.json").write_text(json.dumps({**written, "checksun": checksum}), encoding="utf-8")
    with pytest.raises(DamagedFile, match="other keys"):
        read_manifest(LocalStorage(output))


def test_a_damaged_receipt_is_told_and_its_shard_can_be_done_again(tmp_path, news, encode, copy_output):
    output = copy_output(tmp_path / "out")
    right = digest(output)
    manifest = read_checksummed((output / "manifest.json").read_bytes(), where="", advice="")
    (output / "manifest.json").write_bytes(write_checksummed({**manifest, "receipts": None}))
    receipt = output / "receipts" / "part-00000001.json"
    receipt.write_bytes(receipt.read_bytes().replace(b'"rows": ', b'"rows": 1'))
    with pytest.raises(DamagedFile, match=r"part-00000001.json: is not what was written.*\n.*--resume"):
        encode(news, output, resume=True)
    receipt.unlink()
    assert digest(encode(news, output, resume=True)) == right


@pytest.mark.parametrize("every", [4, pytest.param(1, marks=pytest.mark.slow)], ids=["short", "slow"])
def test_a_manifest_from_a_stranger_leads_nowhere(tmp_path, copy_output, every):
    """Its checksum is right: whoever writes one can count."""
    output = copy_output(tmp_path / "out")
    path = output / "manifest.json"
    written = read_checksummed(path.read_bytes(), where="", advice="")
    refused = 0
    for number, place in enumerate(places(written)):
        for new in HOSTILE[number % every :: every]:
            path.write_bytes(write_checksummed(replaced(written, place, new)))
            try:
                for block in open_output(output).blocks():
                    assert len(block.ids) < 50
            except MunjangError:
                refused += 1
    assert refused > 200 // every
