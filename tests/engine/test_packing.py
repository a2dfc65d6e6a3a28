"""Packing loses nothing: every token stands once, at its text and place."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from munjang.engine.layout import pack

BATCHES = st.lists(st.lists(st.integers(0, 10**6), min_size=1, max_size=12), min_size=1, max_size=8)


@given(BATCHES, st.integers(0, 5))
def test_every_text_can_be_read_back(ids, first_position):
    feed = pack(ids, first_position=first_position)
    for number, one in enumerate(ids):
        slots = feed["slots"][number][feed["mask"][number] == 1]
        assert feed["ids"][slots].tolist() == one
        assert feed["positions"][slots].tolist() == list(range(first_position, first_position + len(one)))


@given(BATCHES)
def test_there_are_no_padding_rows(ids):
    feed = pack(ids, first_position=0)
    assert len(feed["ids"]) == len(feed["positions"]) == sum(map(len, ids))
    assert bool(feed["padded"]) == (len({len(one) for one in ids}) > 1)
    assert feed["slots"].shape == feed["mask"].shape == feed["pool_mask"].shape == (len(ids), max(map(len, ids)))


@given(BATCHES)
def test_the_rows_lead_back_from_the_grid(ids):
    feed = pack(ids, first_position=0)
    if feed["padded"]:
        grid = feed["ids"][feed["slots"]]
        assert grid.reshape(-1)[feed["rows"]].tolist() == feed["ids"].tolist()


@given(BATCHES, st.integers(0, 15))
def test_a_hidden_prefix_does_not_count_in_pooling(ids, prefix):
    feed = pack(ids, first_position=0, hidden_prefix=prefix)
    assert feed["pool_mask"].sum(axis=1).tolist() == [max(len(one) - prefix, 0) for one in ids]
    assert feed["mask"].sum(axis=1).tolist() == [len(one) for one in ids]


@given(BATCHES)
def test_the_types_are_those_of_the_graph(ids):
    feed = pack(ids, first_position=2)
    assert {name: array.dtype for name, array in feed.items()} == {
        **dict.fromkeys(("ids", "positions", "slots", "rows"), np.dtype(np.int64)),
        "mask": np.dtype(np.int32),
        "pool_mask": np.dtype(np.float32),
        "padded": np.dtype(bool),
    }
