"""For the tests of readers: the shared data, where it is there."""

from __future__ import annotations

from tests.evaluate.conftest import shared_data

__all__ = ["shared_data"]
