"""The nouns of a request: what was called, what is answered, and what the log is told about it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from pydantic import BaseModel

from munjang.serve.errors import Dialect
from munjang.serve.keys import ANYONE, Key, Right
from munjang.serve.work_item import RequestWork

if TYPE_CHECKING:
    from pathlib import Path

    from munjang.models.ranking import Ranker
    from munjang.models.sentence_encoder import SentenceEncoder
    from munjang.serve.service import Service

NAMED_TRUNCATED = 100
"""Indices of cut texts that fit into a header."""


def client_of(scope: Mapping[str, Any]) -> str:
    """Return whom a request's work is counted for: the name of its key where keys have names, else the address that it comes from."""
    peer = scope.get("client")
    return scope.get("munjang.key", ANYONE).name or (peer[0] if peer else "")


@dataclass
class Seen:
    """What became known about a request on its way; for the log and the metrics, so never a text."""

    route: str = "unknown"
    dialect: Dialect = "munjang"
    """What the client speaks; a path may take two dialects, and the body says which."""
    texts: int = 0
    tokens: int = 0
    truncated: list[int] = field(default_factory=list)
    id: str = ""
    """What the request is called: `x-request-id`."""
    client: str | None = None
    """Who calls: the key's name where the server wants keys, the address otherwise."""
    key: str | None = None
    """The key's name, never the key."""


@dataclass(eq=False)
class Call:
    """One request that came through the guard."""

    service: Service
    path: Mapping[str, str]
    query: Mapping[str, str]
    seen: Seen
    key: Key = ANYONE
    model: str | None = None
    """Which of the served models the client asks for."""
    start: float = field(default_factory=time.perf_counter)
    """When the request's head was there."""
    request_work: RequestWork = field(default_factory=RequestWork)
    upload: Path | None = None
    """The file that a client sent, where an operation takes one."""
    discard_upload: Callable[[], None] = lambda: None
    """Deletes that file and gives its room back; may be called twice."""
    watcher: asyncio.Task[None] | None = None
    """Waits for the client to go away."""

    @property
    def encoder(self) -> SentenceEncoder:
        """The model that the client asks for, or the default one."""
        return self.service.find_encoder(self.model)

    @property
    def reranker(self) -> Ranker:
        """What ranks texts for the client: the model that it asks for, or the default one."""
        return self.service.find_reranker(self.model)

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
    file: Path | None = None
    """Sent instead of the content."""
    finish: Callable[[], None] = lambda: None
    """Called when the answer is out, or nobody takes it."""


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
    media: str = "text/plain"
    """Of an answer that is no JSON."""
    query: type[BaseModel] | None = None
    uploads: bool = False
    """The body is a file, not JSON."""
    computes: bool = False
    """Needs room in the queue: refused before its body is read when there is none."""
    open: bool = False
    """Needs no key."""
    right: Right = "read"
    """What a key must allow."""
    other: Operation | None = None
    """Another dialect's operation on the same method and path, for bodies that are its own."""
    is_others: Callable[[Any], bool] = lambda _value: False
    """Says of a body's JSON whether it is the other dialect's."""

    def spoken(self, value: Any) -> Operation:
        """Return the operation that a body means: this one or the other."""
        return self.other if self.other is not None and self.is_others(value) else self
