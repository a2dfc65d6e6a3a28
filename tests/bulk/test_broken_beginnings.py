"""Rows that cannot be read at the beginning of a file: none is lost, each is rejected by its line; a header must be readable."""

from __future__ import annotations

import pytest

from munjang.bulk.input_streams import inspect_input
from munjang.bulk.job import BulkSettings
from munjang.bulk.plan import plan_shards, read_shard
from munjang.errors import InputError

SETTINGS = BulkSettings(shard_rows=2)
SPOILT = "비가 온다".encode("cp949")
FILES = {
    "a row after the header.csv": (b"id,text\n1," + SPOILT + b"\n2,rain\n3,snow\n", ["rain", "snow"], [2]),
    "all rows.tsv": (b"id\ttext\n1\t" + SPOILT + b"\n2\t" + SPOILT + b"\n", [], [2, 3]),
    "an open quote.csv": (b'id,text\n1,"rain\n2,snow\n3,sun\n', ["snow", "sun"], [2]),
    "too few columns.csv": (b"id,text\nrain\n2,snow\n", ["snow"], [2]),
    "a header of two lines.csv": (b'"i\nd",text\nrain\n2,snow\n', ["snow"], [3]),
    "blank lines.csv": (b"\n\nid,text\n\n1,rain\n", ["rain"], []),
    "no header.csv": (b"1,rain is wet.\n2,snow is cold.\n", ["rain is wet.", "snow is cold."], []),
    "objects.jsonl": (b'{broken\n{"text": 3}\n{"text": "rain"}\n', ["rain"], [1, 2]),
    "no object at all.jsonl": (b"{broken\n{again\n", [], [1, 2]),
    "lines.txt": (SPOILT + b"\nrain\n", ["rain"], [1]),
}


@pytest.mark.parametrize("name", FILES)
def test_every_row_is_read_or_rejected_by_its_line(tmp_path, name):
    content, texts, rejected = FILES[name]
    path = tmp_path / name.replace(" ", "-")
    path.write_bytes(content)
    settings = BulkSettings(shard_rows=2, text_column="1") if name.startswith("no header") else SETTINGS
    file = inspect_input(str(path), settings)
    found = [(spec, read_shard(file, spec, settings)) for spec in plan_shards([file], settings)]
    assert [text for _, rows in found for text in rows.texts] == texts
    places = [content[: each.place].count(b"\n") + 1 for _, rows in found for each in rows.rejected]
    assert places == rejected
    assert file.first_line == content[: file.begin].count(b"\n") + 1


@pytest.mark.parametrize("content", ["번호,글\n1,비\n".encode("cp949"), b'"id,text\n1,rain\n'])
def test_a_header_that_cannot_be_read_is_refused(tmp_path, content):
    (tmp_path / "a.csv").write_bytes(content)
    with pytest.raises(InputError, match=r"a\.csv line 1: "):
        inspect_input(str(tmp_path / "a.csv"), SETTINGS)
