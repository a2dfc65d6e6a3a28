from __future__ import annotations

import pytest

from munjang.cli.show import print_table, size_text


def test_a_table_without_rows_is_a_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(["score", "text"], [], empty="no pairs above 0.8")
    print_table(["score", "text"], [], title="rain", empty="nothing was found")
    print_table(["score", "text"], iter(()))
    assert capsys.readouterr().out == "no pairs above 0.8\nrain: nothing was found\nthere is nothing to show\n"


def test_a_table_with_rows_is_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(["score"], [["0.5"]], empty="no pairs")
    shown = capsys.readouterr().out
    assert "0.5" in shown
    assert "no pairs" not in shown


def test_one_byte_is_no_plural() -> None:
    assert [size_text(size) for size in (0, 1, 2)] == ["0 bytes", "1 byte", "2 bytes"]
