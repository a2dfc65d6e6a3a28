"""The nouns of a request: what was called, what is answered, and what the log is told about it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from pydantic import BaseModel

from munjang.serve.engines import Errand
from munjang.serve.refusals import Dialect

if TYPE_CHECKING:
    from pathlib import Path

    from munjang.serve.service import Service

NAMED_TRUNCATED = 100
"""Indices of cut texts that fit into a header."""


@dataclass
class Seen:
    """What became known about a request on its way; for the log and the metrics, so never a text."""

    route: str = "unknown"
    dialect: Dialect = "munjang"
    """What the client speaks; a path may take two dialects, and the body says which."""
    texts: int = 0
    tokens: int = 0
    truncated: list[int] = field(default_factory=list)


@dataclass(eq=False)
class Call:
    """One request that came through the guard."""

    service: Service
    path: Mapping[str, str]
    query: Mapping[str, str]
    seen: Seen
    start: float = field(default_factory=time.perf_counter)
    """When the request's head was there."""
    errand: Errand = field(default_factory=Errand)
    upload: Path | None = None
    """The file that a client sent, where an operation takes one."""
    watcher: asyncio.Task[None] | None = None
    """Waits for the client to go away."""

    def note(self, *, texts: int, tokens: int = 0, truncated: list[int] | None = None) -> None:
        """Count texts and tokens, and remember which texts were cut."""
        self.seen.texts += texts
        self.seen.tokens += tokens
        self.seen.truncated += truncated or []

    def truncation_headers(self) -> dict[str, str]:
        """Say in headers which texts were cut, if any were."""
        cut = self.seen.truncated
        if not cut:
            return {}
        return {"x-munjang-truncated-count": str(len(cut)), "x-munjang-truncated": ",".join(map(str, cut[:NAMED_TRUNCATED]))}


@dataclass(frozen=True)
class Reply:
    """An answer: a JSON value, or text in a type of its own."""

    content: Any
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    media: str | None = None
    """None: JSON."""


Handler = Callable[[Call, Any], Awaitable[Reply]]


@dataclass(frozen=True)
class Operation:
    """One method on one path: what it takes, what it gives, and who does it. Routes and the OpenAPI description are made from these."""

    method: Literal["GET", "POST", "DELETE"]
    path: str
    dialect: Dialect
    summary: str
    handle: Handler
    request: type[BaseModel] | None = None
    response: Any = None
    """A type that pydantic can describe; None: text."""
    query: type[BaseModel] | None = None
    uploads: bool = False
    """The body is a file, not JSON."""
    computes: bool = False
    """Needs room in the queue: refused before its body is read when there is none."""
    open: bool = False
    """Needs no key."""
    other: Operation | None = None
    """Another dialect's operation on the same method and path, for bodies that are its own."""
    is_others: Callable[[Any], bool] = lambda _value: False
    """Says of a body's JSON whether it is the other dialect's."""

    def spoken(self, value: Any) -> Operation:
        """Return the operation that a body means: this one or the other."""
        return self.other if self.other is not None and self.is_others(value) else self
