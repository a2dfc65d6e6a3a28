"""Every field of every route takes time in proportion to what a client puts there, up to its limit.

All pairs of texts are compared by design in /api/similarity, /api/pairs and the like; those routes have limits of their own, and here their
texts get longer and not more.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tests.growth import LONG, SHORT, check_growth
from tests.serve.conftest import Running, running
from tests.text.test_growth import TEXTS

from munjang import CrossEncoder, SentenceEncoder
from munjang.serve.endpoint import parse_json
from munjang.serve.settings import ServerSettings

BODIES: dict[str, Callable[[int], bytes]] = {
    "keys": lambda n: b"{" + b",".join(b'"k%d":1' % number for number in range(n)) + b"}",
    "keys, the last one twice": lambda n: b"{" + b",".join(b'"k%d":1' % min(number, n - 2) for number in range(n)) + b"}",
    "small objects": lambda n: b"[" + b'{"a":1},' * n + b"1]",
    "brackets": lambda n: b"[" * n,
    "brackets in a text": lambda n: b'["' + b"[{" * n + b'"]',
    "quotes": lambda n: b'"' * n,
    "escaped quotes": lambda n: b'"' + b'\\"' * n + b'"',
    "backslashes": lambda n: b'"' + b"\\" * n,
    "surrogates": lambda n: b'"' + b"\\ud83d\\ude00" * n + b'"',
    "digits": lambda n: b"1" * n,
    "decimals": lambda n: b"1." + b"1" * n,
    "numbers": lambda n: b"[" + b"1e5," * n + b"1]",
    "spaces": lambda n: b" " * n,
}


@pytest.mark.parametrize("seconds", [SHORT, pytest.param(LONG, marks=pytest.mark.slow)], ids=["short", "long"])
@pytest.mark.parametrize("name", BODIES)
def test_json_is_parsed_in_linear_time(name: str, seconds: float) -> None:
    def prepare(size: int) -> Callable[[], object]:
        body = BODIES[name](size)[: 8 * 2**20]
        return lambda: parse_json(body)

    check_growth(name, prepare, limit=2**17 if seconds == SHORT else 2**22, seconds=seconds)


@pytest.fixture(scope="module")
def open_server(model: SentenceEncoder, reranker: CrossEncoder, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    settings = ServerSettings(data=tmp_path_factory.mktemp("libraries"), analyser="bigrams")
    with running(settings, model, reranker) as started:
        records = [{"text": f"the rain {number}", "id": str(number), "metadata": {f"k{number}": number}} for number in range(200)]
        assert started.post("/api/libraries", {"name": "news", "records": records}).status == 201
        yield started


def words(size: int) -> str:
    return "rain " * size


SEARCH = "/api/libraries/news/search"
MANY: dict[str, tuple[str, int, Callable[[int], Any]]] = {
    "texts to embed": ("/embed", 2_048, lambda n: {"inputs": ["rain"] * n}),
    "token arrays": ("/v1/embeddings", 2_048, lambda n: {"input": [[5, 6]] * n}),
    "a token array": ("/v1/embeddings", 2**18, lambda n: {"input": [5] * n}),
    "a model's name": ("/v1/embeddings", 2**20, lambda n: {"input": "rain", "model": "m" * n}),
    "a user": ("/v1/embeddings", 2**20, lambda n: {"input": "rain", "user": "u" * n}),
    "a prompt's name": ("/embed", 2**20, lambda n: {"inputs": "rain", "prompt_name": "p" * n}),
    "ids to decode": ("/decode", 2**16, lambda n: {"ids": [5] * n}),
    "unknown fields": ("/embed", 16_000, lambda n: {"inputs": "rain"} | {f"k{number}": 1 for number in range(n)}),
    "wrong texts": ("/embed", 2**16, lambda n: {"inputs": ["rain"] * n + [None]}),
    "texts to rank": ("/rerank", 1_024, lambda n: {"query": "rain", "texts": ["rain"] * n}),
    "pairs to predict": ("/predict", 1_024, lambda n: {"inputs": [["rain", "snow"]] * n}),
    "documents to rank": ("/v2/rerank", 1_024, lambda n: {"query": "rain", "documents": ["rain"] * n}),
    "fields of documents": ("/v1/rerank", 4_096, lambda n: {"query": "a", "documents": [{f"k{each}": "a" for each in range(n)}]}),
    "fields to rank by": (
        "/v1/rerank",
        4_096,
        lambda n: {"query": "a", "documents": [{"a": "b"}], "rank_fields": [f"k{each}" for each in range(n)]},
    ),
    "tokens": ("/tokenize", 50_000, lambda n: {"inputs": "rain " * (n // 2)}),
    "seed words": ("/api/keywords", 100, lambda n: {"texts": ["rain in spring"], "seed_words": ["rain"] * n}),
    "texts with keywords": ("/api/keywords", 512, lambda n: {"texts": ["rain in spring"] * n}),
    "words of one text with keywords": ("/api/keywords", 2_048, lambda n: {"texts": [" ".join(f"rain{each}" for each in range(n))]}),
    "labels": ("/api/topics", 100, lambda n: {"texts": ["rain", "snow"] * 10, "labels": ["rain"] * n, "min_size": 2}),
    "tests of a filter": (SEARCH, 500, lambda n: {"query": "rain", "where": " or ".join(f"j{each} = 1" for each in range(n))}),
    "values of a filter": (SEARCH, 5_000, lambda n: {"query": "rain", "where": f"k1 in ({', '.join(map(str, range(n)))})"}),
    "wildcards of a filter": (SEARCH, 400, lambda n: {"query": "rain", "where": f"text like '{'%a' * n}'"}),
    "a filter's key": (SEARCH, 60_000, lambda n: {"query": "rain", "where": f"{'k' * n} = 1"}),
    "documents to look near": (SEARCH, 100, lambda n: {"query": "rain", "like": [str(each) for each in range(n)]}),
    "ids to remove": ("/api/libraries/news/remove", 10_000, lambda n: {"ids": [f"no{each}" for each in range(n)]}),
    "a long id to remove": ("/api/libraries/news/remove", 2**20, lambda n: {"ids": ["n" * n]}),
    "metadata keys": (
        "/api/libraries/news/add",
        8_192,
        lambda n: {"records": [{"id": "m", "text": "rain", "metadata": {f"k{each}": each for each in range(n)}}]},
    ),
    "a list in metadata": (
        "/api/libraries/news/add",
        2**17,
        lambda n: {"records": [{"id": "m", "text": "rain", "metadata": {"list": [1] * n}}]},
    ),
    "a library's name": ("/api/libraries", 2**20, lambda n: {"name": "n" * n}),
}
LONG_TEXTS: dict[str, Callable[[str], tuple[str, Any]]] = {
    "embed": lambda text: ("/embed", {"inputs": text}),
    "rank": lambda text: ("/rerank", {"query": text, "texts": [text]}),
    "compare": lambda text: ("/api/similarity", {"a": [text, "rain"]}),
    "pairs": lambda text: ("/api/pairs", {"texts": [text, "rain"], "numbers": True, "max_overlap": 0.5}),
    "keywords": lambda text: ("/api/keywords", {"texts": [text]}),
    "search": lambda text: (SEARCH, {"query": text, "explain": True, "rerank": True}),
    "add": lambda text: ("/api/libraries/news/add", {"records": [{"id": "long", "text": text, "metadata": {"note": text[:1_000]}}]}),
}


def asking(server: Running, path: str, body: Any) -> Callable[[], object]:
    data = json.dumps(body).encode()[: 8 * 2**20]

    def ask() -> None:
        assert server.post(path, data).status < 500

    return ask


@pytest.mark.parametrize("seconds", [SHORT, pytest.param(LONG, marks=pytest.mark.slow)], ids=["short", "long"])
@pytest.mark.parametrize("name", MANY)
def test_many_of_something_take_linear_time(open_server: Running, name: str, seconds: float) -> None:
    path, limit, make = MANY[name]
    most = limit if seconds == LONG else min(limit, 8_192)
    check_growth(name, lambda size: asking(open_server, path, make(size)), limit=most, seconds=seconds, start=16)


@pytest.mark.parametrize("verb", LONG_TEXTS)
def test_a_long_text_takes_linear_time(open_server: Running, verb: str) -> None:
    for kind in ("words", "one word", "Korean without spaces", "marks in the wrong order"):
        make = TEXTS[kind]
        check_growth(f"{verb} {kind}", lambda size, make=make: asking(open_server, *LONG_TEXTS[verb](make(size))), limit=2**13)  # type: ignore[misc]


@pytest.mark.slow
@pytest.mark.parametrize("verb", LONG_TEXTS)
@pytest.mark.parametrize("kind", [kind for kind in TEXTS if kind not in ("NULs", "surrogates")])
def test_every_long_text_takes_linear_time(open_server: Running, verb: str, kind: str) -> None:
    check_growth(f"{verb} {kind}", lambda size: asking(open_server, *LONG_TEXTS[verb](TEXTS[kind](size))), limit=2**19, seconds=LONG)
