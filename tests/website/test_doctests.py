"""The examples in docstrings of `website` hold."""

from __future__ import annotations

import doctest
from importlib import import_module

import pytest


@pytest.mark.parametrize("name", ["blocks", "korean_pages", "links", "outputs", "outside_links", "reference.markdown"])
def test_the_examples_hold(name: str) -> None:
    found = doctest.testmod(import_module(f"website.{name}"))
    assert found.attempted
    assert not found.failed


def test_types_are_said_as_in_toml() -> None:
    pytest.importorskip("torch", reason="the extra train is not installed")
    assert not doctest.testmod(import_module("website.reference.recipe_keys")).failed
