"""Texts that wait for a compute thread, and whose turn it is. Plain data: no threads, no clock.

Clients take turns, and the requests of a client take turns among themselves: deficit round robin over tokens, with a quantum of one piece.
Whoever has had more than its piece waits as many rounds as it takes to pay for it, so every text is reached after a bounded number of
others, however many arrive behind it. A request that is larger than a piece is taken piece by piece, from its own texts alone; smaller
ones share a batch, so that none of them is as slow as a large one. A batch holds texts of one lane and of like length, and always the
oldest text of the request whose turn it is.
"""

from __future__ import annotations

import math
from collections import OrderedDict, deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice
from typing import Any

from munjang.serve.work_item import RequestWork, WorkItem
from munjang.text.batching import plan_batches

WINDOW = 256
"""Texts among which a batch is chosen, so that it holds texts of like length."""


@dataclass(eq=False, slots=True)
class QueuedText:
    """One text of a work item."""

    work_item: WorkItem
    place: int
    lane: Any
    content: Any
    tokens: int


@dataclass(eq=False, slots=True)
class _Client:
    name: str
    credit: int
    requests: OrderedDict[RequestWork, _Request] = field(default_factory=OrderedDict)
    tokens: int = 0
    next_round: int = 0
    """Tokens that one turn of each of its requests takes."""


@dataclass(eq=False, slots=True)
class _Request:
    client: _Client
    work: RequestWork
    credit: int
    texts: deque[QueuedText] = field(default_factory=deque)
    tokens: int = 0
    next_turn: int = 0
    """Tokens that its next turn takes: a piece, or all it has."""
    large: bool = False
    """It was larger than a piece once."""
    begun: bool = False


class FairQueue:
    """What waits, by client and request; the first of each is next."""

    def __init__(self, *, piece: int) -> None:
        self.piece = piece
        """Tokens of one turn."""
        self.texts = 0
        self.tokens = 0
        self._clients: OrderedDict[str, _Client] = OrderedDict()
        self._deadlines: deque[tuple[float, _Request]] = deque()

    def put(self, work: RequestWork, texts: Sequence[QueuedText], *, deadline: float = math.inf) -> None:
        """Let a request's texts wait behind those that it has waiting; from call to call, deadlines must not fall."""
        client = self._clients.get(work.client)
        if client is None:
            client = self._clients[work.client] = _Client(work.client, self.piece)
        request = client.requests.get(work)
        if request is None:
            request = client.requests[work] = _Request(client, work, self.piece)
        request.texts.extend(texts)
        self._count(request, len(texts), sum(text.tokens for text in texts))
        request.large = request.large or request.tokens > self.piece
        if deadline < math.inf:
            self._deadlines.append((deadline, request))

    def tokens_before(self, client: str, tokens: int) -> tuple[int, int]:
        """Return how many tokens of the same client, and of all, may come before the last text of a new request of such a size."""
        found = self._clients.get(client)
        rounds = math.ceil(tokens / self.piece)
        own = 0 if found is None else min(found.tokens, rounds * found.next_round)
        others = self.tokens - (0 if found is None else found.tokens)
        turns = len(self._clients) - (found is not None)
        return own, own + min(others, turns * max(own + tokens, self.piece))

    def share_of(self, client: str, limit: int) -> float:
        """Return what one more request of the client may have of a limit, if all clients get the same, and all requests of a client."""
        found = self._clients.get(client)
        clients = len(self._clients) + (found is None)
        return limit / clients / (1 if found is None else len(found.requests) + 1)

    def take(self, budget: int) -> tuple[list[QueuedText], bool]:
        """Take the next batch, and say whether it is a piece of a large request, or small ones with so many tokens together."""
        request = self._next_request()
        if request is None:
            return [], False
        if request.large:
            return self._take_from([request], self.piece), True
        return self._take_from(self._small_requests(request.texts[0].lane), budget), False

    def take_small(self, budget: int) -> list[QueuedText]:
        """Take small requests out of turn; whoever has them pays for it later."""
        first = next((each for each in self._small_requests() if not each.texts[0].work_item.dropped), None)
        if first is None:
            return []
        others = (each for each in self._small_requests(first.texts[0].lane) if each is not first)
        return self._take_from(chain([first], others), budget)

    def expire(self, now: float) -> list[WorkItem]:
        """Take out the requests that have not begun by their deadlines, and return their work items."""
        late: list[WorkItem] = []
        while self._deadlines and (self._deadlines[0][0] <= now or self._deadlines[0][1].begun):
            _, request = self._deadlines.popleft()
            if not request.begun and request.texts:
                late += dict.fromkeys(text.work_item for text in request.texts)
                self._remove(request, list(request.texts))
        return late

    def _next_request(self) -> _Request | None:
        """Return the request whose turn it is; its first text is wanted."""
        while self._clients:
            client = next(iter(self._clients.values()))
            if client.credit <= 0:
                client.credit += self.piece
                self._clients.move_to_end(client.name)
                continue
            request = next(iter(client.requests.values()))
            if request.credit <= 0:
                request.credit += self.piece
                client.requests.move_to_end(request.work)
            elif request.texts[0].work_item.dropped:
                self._remove(request, [text for text in islice(request.texts, WINDOW) if text.work_item.dropped])
            else:
                return request
        return None

    def _small_requests(self, lane: Any = None) -> Iterator[_Request]:
        """Yield small requests, those alone whose next text is of a lane: one of each client, then another of each."""
        rings = [iter(client.requests.values()) for client in self._clients.values()]
        while rings:
            for ring in list(rings):
                found = next((each for each in ring if not each.large and lane in (None, each.texts[0].lane)), None)
                if found is None:
                    rings.remove(ring)
                else:
                    yield found

    def _take_from(self, requests: Iterable[_Request], budget: int) -> list[QueuedText]:
        """Take texts that go well with the first one, and charge whoever they belong to."""
        window: list[QueuedText] = []
        owners: list[_Request] = []
        for request in requests:
            for text in islice(request.texts, WINDOW - len(window)):
                if not text.work_item.dropped and (not window or text.lane is window[0].lane):
                    window.append(text)
                    owners.append(request)
            if len(window) >= WINDOW:
                break
        plan = plan_batches([text.tokens for text in window], budget=budget, efficient=budget // 2)
        chosen = next(batch for batch in plan if 0 in batch)
        taken: dict[_Request, list[QueuedText]] = {}
        for place in chosen:
            taken.setdefault(owners[place], []).append(window[place])
        for request, texts in taken.items():
            request.begun = True
            self._remove(request, texts)
            tokens = sum(text.tokens for text in texts)
            request.credit -= tokens
            request.client.credit -= tokens
        return [window[place] for place in chosen]

    def _remove(self, request: _Request, texts: Sequence[QueuedText]) -> None:
        """Let some of the first texts of a request go, or all."""
        if len(texts) == len(request.texts):
            request.texts.clear()
        else:
            gone = set(texts)
            first = [request.texts.popleft() for _ in range(min(WINDOW, len(request.texts)))]
            request.texts.extendleft(text for text in reversed(first) if text not in gone)
        self._count(request, -len(texts), -sum(text.tokens for text in texts))
        client = request.client
        if not request.texts:
            del client.requests[request.work]
        if not client.requests:
            del self._clients[client.name]

    def _count(self, request: _Request, texts: int, tokens: int) -> None:
        client, turn = request.client, min(request.tokens + tokens, self.piece)
        request.tokens += tokens
        client.tokens += tokens
        client.next_round += turn - request.next_turn
        request.next_turn = turn
        self.tokens += tokens
        self.texts += texts
