"""A stream that says it is a terminal, or that it is not."""

from __future__ import annotations

import io


class Terminal(io.StringIO):
    """Keeps what is written to it."""

    def __init__(self, *, is_one: bool) -> None:
        super().__init__()
        self._is_one = is_one

    def isatty(self) -> bool:
        return self._is_one
