"""A JSON list that is read in pieces: where a piece ends does not matter."""

from __future__ import annotations

import json

import pytest

from munjang.text import read_json
from munjang.text.readers import read_rows


@pytest.mark.parametrize("cut", range(20, 64))
def test_rows_do_not_depend_on_where_a_piece_of_the_file_ends(tmp_path, monkeypatch, cut):
    rows = [{"id": number, "text": f"비 {number}", "more": [1.5, {"a": "}"}]} for number in range(3)]
    (tmp_path / "a.json").write_text("[" + ",\n".join(json.dumps(row, ensure_ascii=False) for row in rows) + "]", encoding="utf-8")
    monkeypatch.setattr(read_json, "_CHUNK", cut)
    found = list(read_rows(tmp_path / "a.json"))
    assert [row.values for row in found] == rows
    assert [row.where for row in found] == [f"a.json line {number}" for number in (1, 2, 3)]
