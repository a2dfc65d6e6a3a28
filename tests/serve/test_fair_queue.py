"""Whose turn it is: laws of the queue, which is plain data."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("pydantic", reason="the extra serve is not installed")

from munjang.serve.fair_queue import FairQueue, QueuedText
from munjang.serve.work_item import RequestWork, WorkItem

PIECE = 50
LONGEST = 80
LANES = ("vectors", "pairs")


def put(queue: FairQueue, work: RequestWork, sizes: list[int], *, lane: str = "vectors", **deadline: float) -> list[QueuedText]:
    work_item = WorkItem([None] * len(sizes), len(sizes), None, None, None)
    texts = [QueuedText(work_item, place, lane, (work, place), size) for place, size in enumerate(sizes)]
    queue.put(work, texts, **deadline)
    return texts


def drain(queue: FairQueue, budget: int = PIECE) -> list[list[QueuedText]]:
    batches = []
    while batch := queue.take(budget)[0]:
        batches.append(batch)
    return batches


sizes = st.lists(st.integers(1, LONGEST), min_size=1, max_size=12)
arrivals = st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 3), sizes, st.sampled_from(LANES)), max_size=12)
"""Client, number of the request, tokens of its texts, lane."""


@settings(max_examples=40, deadline=None)
@given(arrivals=arrivals, budget=st.integers(PIECE, 200), dropped=st.sets(st.integers(0, 11)))
def test_every_text_is_taken_once_and_none_that_was_dropped(arrivals: list[Any], budget: int, dropped: set[int]) -> None:
    queue = FairQueue(piece=PIECE)
    works: dict[tuple[str, int], RequestWork] = {}
    wanted: list[QueuedText] = []
    for number, (client, request, lengths, lane) in enumerate(arrivals):
        texts = put(queue, works.setdefault((client, request), RequestWork(client)), lengths, lane=lane)
        if number in dropped:
            texts[0].work_item.dropped = True
        else:
            wanted += texts
    batches = drain(queue, budget)
    assert Counter(text for batch in batches for text in batch) == Counter(wanted)
    assert (queue.texts, queue.tokens) == (0, 0)
    for batch in batches:
        assert len({text.lane for text in batch}) == 1
        assert sum(text.tokens for text in batch) <= budget or len(batch) == 1


@settings(max_examples=40, deadline=None)
@given(arrivals=arrivals)
def test_while_something_waits_there_is_a_batch_and_it_has_the_oldest_text_of_a_request(arrivals: list[Any]) -> None:
    queue = FairQueue(piece=PIECE)
    waiting: dict[RequestWork, list[QueuedText]] = defaultdict(list)
    works: dict[tuple[str, int], RequestWork] = {}
    for client, request, lengths, lane in arrivals:
        work = works.setdefault((client, request), RequestWork(client))
        waiting[work] += put(queue, work, lengths, lane=lane)
    while any(waiting.values()):
        batch, _ = queue.take(PIECE)
        assert any(texts and texts[0] in batch for texts in waiting.values())
        for texts in waiting.values():
            texts[:] = [text for text in texts if text not in batch]


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(st.sampled_from("abcd"), sizes), min_size=2, max_size=20), st.data())
def test_no_text_waits_for_what_comes_after_it_for_long(arrivals: list[Any], data: st.DataObject) -> None:
    """A request of one text is taken before any other request that waits has had more than its share, whatever arrives meanwhile."""
    queue = FairQueue(piece=PIECE)
    for client, lengths in arrivals:
        put(queue, RequestWork(client), lengths)
    clients, requests = {client for client, _ in arrivals}, len(arrivals)
    mine = put(queue, RequestWork("me"), [LONGEST])[0]
    served = 0
    while mine not in (batch := queue.take(PIECE)[0]):
        served += sum(text.tokens for text in batch)
        put(queue, RequestWork(data.draw(st.sampled_from("abcdxyz"))), data.draw(sizes))
    assert served <= (len(clients) + 1) * 2 * (PIECE + LONGEST), (served, requests)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.lists(st.integers(1, LONGEST), min_size=40, max_size=60), min_size=2, max_size=4))
def test_clients_that_always_wait_get_the_same(backlogs: list[list[int]]) -> None:
    queue = FairQueue(piece=PIECE)
    for number, lengths in enumerate(backlogs):
        put(queue, RequestWork(str(number)), lengths)
    served: Counter[str] = Counter({str(number): 0 for number in range(len(backlogs))})
    left = {str(number): sum(lengths) for number, lengths in enumerate(backlogs)}
    while all(left.values()):
        for text in queue.take(PIECE)[0]:
            served[text.content[0].client] += text.tokens
            left[text.content[0].client] -= text.tokens
        assert max(served.values()) - min(served.values()) <= 2 * (PIECE + LONGEST)


def test_a_client_with_many_requests_gets_no_more_than_one_with_one() -> None:
    queue = FairQueue(piece=PIECE)
    for _ in range(100):
        put(queue, RequestWork("many"), [10] * 5)
    one = RequestWork("one")
    put(queue, one, [10] * 50)
    served: Counter[str] = Counter()
    while served["one"] < 500:
        for text in queue.take(PIECE)[0]:
            served[text.content[0].client] += text.tokens
    assert served["many"] <= 600


def test_a_small_request_does_not_wait_behind_a_large_one_of_the_same_client() -> None:
    queue = FairQueue(piece=PIECE)
    put(queue, RequestWork("same"), [10] * 2_000)
    queue.take(PIECE)
    small = put(queue, RequestWork("same"), [10])[0]
    assert small in queue.take(PIECE)[0] + queue.take(PIECE)[0]


def test_small_requests_share_a_batch_and_large_ones_do_not_slow_them() -> None:
    queue = FairQueue(piece=PIECE)
    large = put(queue, RequestWork("a"), [10] * 100)
    small = [put(queue, RequestWork(client), [10])[0] for client in "abc"]
    (first, of_large), (second, of_small) = queue.take(200), queue.take(200)
    assert (of_large, of_small) == (True, False)
    assert len(first) == 5
    assert set(first) < set(large)
    assert set(second) == set(small)


def test_small_requests_can_be_taken_out_of_turn_and_are_paid_for() -> None:
    queue = FairQueue(piece=PIECE)
    assert queue.take_small(PIECE) == []
    put(queue, RequestWork("a"), [10] * 100)
    assert queue.take_small(PIECE) == []
    gone, small = (put(queue, RequestWork("b"), [30] * 1)[0] for _ in range(2))
    put(queue, RequestWork("b"), [10] * 100)
    gone.work_item.dropped = True
    assert queue.take_small(PIECE) == [small]
    turns = [queue.take(PIECE)[0][0].content[0].client for _ in range(6)]
    assert turns.count("a") >= 3


def test_texts_of_like_length_go_together() -> None:
    queue = FairQueue(piece=PIECE)
    put(queue, RequestWork(), [5, 40] * 20)
    for batch in drain(queue)[:-5]:
        assert len({text.tokens for text in batch}) == 1


def test_what_has_not_begun_by_its_deadline_is_taken_out_and_what_has_stays() -> None:
    queue = FairQueue(piece=PIECE)
    begun = put(queue, RequestWork("a"), [PIECE] * 4, deadline=1.0)
    late = put(queue, RequestWork("b"), [PIECE] * 2, deadline=2.0)
    assert queue.take(PIECE) == (begun[:1], True)
    in_time = put(queue, RequestWork("c"), [PIECE], deadline=3.0)
    patient = put(queue, RequestWork("d"), [PIECE])
    assert queue.expire(1.9) == []
    assert queue.expire(2.0) == [late[0].work_item]
    assert Counter(text for batch in drain(queue) for text in batch) == Counter([*begun[1:], *in_time, *patient])
    assert queue.expire(9.0) == []
    assert (queue.texts, queue.tokens) == (0, 0)


@settings(max_examples=40, deadline=None)
@given(arrivals=arrivals, client=st.sampled_from("abcd"), tokens=st.integers(1, 500))
def test_what_is_said_to_come_before_a_request_is_no_more_than_what_waits(arrivals: list[Any], client: str, tokens: int) -> None:
    queue = FairQueue(piece=PIECE)
    for name, _, lengths, lane in arrivals:
        put(queue, RequestWork(name), lengths, lane=lane)
    own, all_before = queue.tokens_before(client, tokens)
    assert own == min(own, sum(sum(lengths) for name, _, lengths, _ in arrivals if name == client))
    assert own <= all_before <= queue.tokens


def test_a_large_request_hardly_counts_for_a_small_one_of_its_client_and_fully_for_a_large_one() -> None:
    queue = FairQueue(piece=PIECE)
    put(queue, RequestWork("a"), [10] * 2_000)
    assert queue.tokens_before("a", 10) == (PIECE, PIECE)
    assert queue.tokens_before("b", 10) == (0, PIECE)
    assert queue.tokens_before("a", 20_000) == (20_000, 20_000)
    assert queue.share_of("a", 1_000) == 500
    assert queue.share_of("b", 1_000) == 500
