"""TREC's line formats, read, written and refused."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from munjang.errors import InputError, UsageError
from munjang.evaluate.datasets.trec import read_qrels, read_run, write_run

names = st.text(st.characters(categories=["L", "N", "P"]), min_size=1, max_size=6)


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.dictionaries(names, st.dictionaries(names, st.floats(-1e9, 1e9), min_size=1, max_size=5), max_size=4))
def test_a_run_reads_back_exactly(tmp_path, run):
    write_run(tmp_path / "run", run)
    assert read_run(tmp_path / "run") == run


def test_ranks_are_written_in_order(tmp_path):
    write_run(tmp_path / "run", {"q": {"a": 0.1, "b": 0.9}}, tag="t")
    assert (tmp_path / "run").read_text() == "q Q0 b 1 0.9 t\nq Q0 a 2 0.1 t\n"


def test_judgements_are_read_with_carriage_returns_and_blank_lines(tmp_path):
    (tmp_path / "q").write_bytes(b"1 0 d1 1\r\n\r\n1 0 d2 0\r\n2 0 d1 2")
    assert read_qrels(tmp_path / "q") == {"1": {"d1": 1, "d2": 0}, "2": {"d1": 2}}


@pytest.mark.parametrize(
    ("text", "said"), [("1 0 d1", "3 fields"), ("1 0 d1 high", "'high'"), ("1 0 d 1\n1 0 d 1", "line 2.*judged twice")]
)
def test_broken_judgements_are_named(text, said, tmp_path):
    (tmp_path / "q").write_text(text)
    with pytest.raises(InputError, match=said):
        read_qrels(tmp_path / "q")


@pytest.mark.parametrize(("text", "said"), [("q Q0 d 1 x t", "'x'"), ("q Q0 d 1 1 t\nq Q0 d 2 0 t", "ranked twice")])
def test_broken_runs_are_named(text, said, tmp_path):
    (tmp_path / "r").write_text(text)
    with pytest.raises(InputError, match=said):
        read_run(tmp_path / "r")


def test_an_id_with_a_space_is_not_written(tmp_path):
    with pytest.raises(UsageError, match="white space"):
        write_run(tmp_path / "r", {"q 1": {"d": 1.0}})
