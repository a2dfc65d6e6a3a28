from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from munjang.wording import LONGEST_REPR, brief_repr, count, name_facts, plural, quote_place


@pytest.mark.parametrize(
    ("number", "noun", "said"),
    [
        (1, "cluster", "1 cluster"),
        (0, "cluster", "0 clusters"),
        (2, "cluster", "2 clusters"),
        (1_234, "row", "1,234 rows"),
        (2, "match", "2 matches"),
        (1, "judged query", "1 judged query"),
        (3, "judged query", "3 judged queries"),
        (2, "class", "2 classes"),
        (-1, "step", "-1 steps"),
    ],
)
def test_a_count_has_the_noun_in_the_right_number(number: int, noun: str, said: str) -> None:
    assert count(number, noun) == said


def test_verbs_go_with_their_number() -> None:
    assert [plural(n, verb) for verb in ("is", "has", "was") for n in (1, 2)] == ["is", "are", "has", "have", "was", "were"]


@brief_repr
@dataclass
class Held:
    value: Any
    secret: str = field(default="hunter2", repr=False)


@pytest.mark.parametrize(
    "value",
    [
        "long " * 1_000,
        "two\nlines\x1b[31m",
        list(range(10**6)),
        {f"key {n}" * 50: "x" * 500 for n in range(100)},
        np.zeros((1_000, 384), dtype=np.float32),
        [np.zeros(10_000)] * 3,
        [["deep"] * 1_000] * 1_000,
        Held(Held(Held("x" * 300))),
        b"bytes" * 1_000,
        Path("/a" * 500),
        float("nan"),
        None,
    ],
)
def test_a_brief_repr_is_one_short_line_without_hidden_fields(value: Any) -> None:
    said = repr(Held(value))
    assert said.startswith("Held(value=")
    assert len(said) < LONGEST_REPR
    assert said.isprintable()
    assert "hunter2" not in said


def test_small_values_are_shown_as_they_are() -> None:
    assert repr(Held([1, 2])) == "Held(value=[1, 2])"
    assert repr(Held({"f1": 0.81234})) == "Held(value=[f1: 0.8123])"
    assert repr(Held(())) == "Held(value=[])"


@pytest.mark.parametrize(
    "address",
    [
        "postgresql://me:hunter2@host/db",
        "sftp://me:hunt:er2@host/x",
        "sftp://me:a/b@hunter2@host/x",
        "s3://bucket?secret=hunter2",
        "postgresql://h/db?password=hunter2&a=b",
    ],
)
def test_a_password_in_an_address_is_never_quoted(address: str) -> None:
    for said in (quote_place(address), repr(Held(address)), repr(Held([address])), repr(Held({"place": address}))):
        assert "er2" not in said


def test_facts_beyond_the_limit_are_left_out() -> None:
    said = name_facts("Thing", ["x" * 60] * 10)
    assert said.endswith(", …)")
    assert len(said) < LONGEST_REPR
