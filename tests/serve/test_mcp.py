"""`munjang mcp` in the hands of the official MCP client, over standard input and output and over HTTP."""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("mcp", reason="the extra mcp is not installed")
for package in ("starlette", "uvicorn", "httptools", "pydantic", "orjson", "prometheus_client"):
    pytest.importorskip(package, reason=f"the extra serve is not installed: {package}")

import httpx2  # noqa: E402
from mcp import Client, MCPError, StdioServerParameters, stdio_client  # noqa: E402
from mcp.client.streamable_http import streamable_http_client  # noqa: E402
from tests.cli.doc_pages import LINES, write_shown_files  # noqa: E402

from munjang import CrossEncoder, Library, SentenceEncoder, extract_keywords  # noqa: E402
from munjang.limits import SERVE_LIMITS  # noqa: E402
from munjang.serve.keys import KeyRing  # noqa: E402
from munjang.serve.libraries import Libraries  # noqa: E402
from munjang.serve.mcp_server import McpServer  # noqa: E402
from munjang.serve.mcp_tools import Toolbox  # noqa: E402
from munjang.serve.running import listen  # noqa: E402
from munjang.serve.settings import ServerSettings  # noqa: E402

COMMAND = "from munjang.cli.main import main; main()"
READING = ["search", "get", "similar", "keywords", "list_libraries"]
TEXTS = {
    "rain": "the rain is in the river",
    "비": "비가 많이 온다",
    "dog/1": "a dog was on the train",
    "cat": "고양이가 창가에서 졸고 있다",
}
KEYS = """
[[keys]]
name = "reader"
key = "reader-of-news-0123456"
libraries = ["news"]
[[keys]]
name = "writer"
key = "writer-of-all-01234567"
rights = "write"
"""

Visit = Callable[[Client], Awaitable[None]]


@pytest.fixture
def paths(model: SentenceEncoder, tmp_path: Path) -> list[str]:
    made = []
    for name in ("news", "laws"):
        with Library.open(tmp_path / f"{name}.db", model, analyser="bigrams") as library:
            library.add([{"id": id, "text": text, "year": 2020 + at} for at, (id, text) in enumerate(TEXTS.items())])
        made.append(str(tmp_path / f"{name}.db"))
    return made


@contextmanager
def http_server(
    model: SentenceEncoder,
    paths: list[str],
    settings: ServerSettings | None = None,
    *,
    reranker: CrossEncoder | None = None,
    write: bool = False,
    threads: int = 2,
) -> Iterator[tuple[str, Toolbox]]:
    settings = settings or ServerSettings()
    libraries = Libraries([model], paths, None, scratch=Path(paths[0]).parent)
    made = McpServer(Toolbox(libraries, [model], reranker, write=write), threads=threads)
    server = made.make_http_server(settings, KeyRing(settings.key, settings.keys_file))
    bound = listen("127.0.0.1", 0)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [bound]}, daemon=True)
    thread.start()
    end = time.monotonic() + 20
    while not server.started:
        assert time.monotonic() < end, "the server did not start"
        time.sleep(0.01)
    try:
        yield f"http://127.0.0.1:{bound.getsockname()[1]}/mcp", made.toolbox
    finally:
        server.should_exit = True
        thread.join(30)
        made.close()
        libraries.close()
        assert not thread.is_alive()


@asynccontextmanager
async def http_client(url: str, key: str | None = None) -> AsyncIterator[Client]:
    headers = {} if key is None else {"authorization": f"Bearer {key}"}
    async with httpx2.AsyncClient(headers=headers, timeout=30) as http, Client(streamable_http_client(url, http_client=http)) as client:
        yield client


def visit_stdio(visit: Visit, folder: Path, paths: list[str], *more: str) -> None:
    arguments = ["-c", COMMAND, "mcp", "--model", str(folder), *(part for path in paths for part in ("--library", path)), *more]
    parameters = StdioServerParameters(command=sys.executable, args=arguments, env=dict(os.environ))

    async def run() -> None:
        async with Client(stdio_client(parameters)) as client:
            await visit(client)

    asyncio.run(asyncio.wait_for(run(), 90))


def visit_http(visit: Visit, url: str, key: str | None = None) -> None:
    async def run() -> None:
        async with http_client(url, key) as client:
            await visit(client)

    asyncio.run(asyncio.wait_for(run(), 60))


async def ask(client: Client, tool: str, **arguments: Any) -> Any:
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, result.content
    assert json.loads(result.content[0].text) == result.structured_content
    return result.structured_content


async def refusal(client: Client, tool: str, **arguments: Any) -> str:
    result = await client.call_tool(tool, arguments)
    assert result.is_error
    return str(result.content[0].text)


async def look_around(client: Client) -> None:
    """List, call, err, and hand over very large and hostile arguments, as any client may."""
    tools = (await client.list_tools()).tools
    assert [tool.name for tool in tools] == READING
    assert all(tool.annotations.read_only_hint and tool.input_schema["type"] == "object" for tool in tools)
    listed = await ask(client, "list_libraries")
    assert [each["name"] for each in listed["libraries"]] == ["laws", "news"]
    assert ".db" not in json.dumps(listed)

    hits = (await ask(client, "search", library="news", query=TEXTS["dog/1"], k=2))["hits"]
    assert (hits[0]["id"], hits[0]["passage"], hits[0]["metadata"]) == ("dog/1", TEXTS["dog/1"], {"year": 2022})
    [content] = (await client.read_resource(hits[0]["uri"])).contents
    assert json.loads(content.text) == {"id": "dog/1", "text": TEXTS["dog/1"], "metadata": {"year": 2022}}
    resources = (await client.list_resources()).resources
    assert [str(each.uri) for each in resources] == ["munjang://laws", "munjang://news"]
    [about] = (await client.read_resource("munjang://news")).contents
    assert json.loads(about.text)["documents"] == len(TEXTS)
    [template] = (await client.list_resource_templates()).resource_templates
    assert template.uri_template == "munjang://{library}/{id}"

    found = await ask(client, "get", library="news", ids=["비", "nobody", "rain"])
    assert ([each["id"] for each in found["documents"]], found["missing"]) == (["비", "rain"], ["nobody"])
    near = await ask(client, "similar", library="news", ids=["rain"], k=3)
    assert len(near["hits"]) == 3
    assert "rain" not in [hit["id"] for hit in near["hits"]]

    assert "laws, news" in await refusal(client, "search", query="rain")
    assert "query" in await refusal(client, "search", library="news")
    assert await refusal(client, "search", library="news", query="rain", k=0) == "k: Input should be greater than or equal to 1"
    assert "nonsense" in await refusal(client, "search", library="news", query="rain", nonsense=1)
    assert "there is no tool 'add'" in await refusal(client, "add", library="news", records=[{"text": "x"}])
    with pytest.raises(MCPError, match="no document 'nobody'"):
        await client.read_resource("munjang://news/nobody")
    with pytest.raises(MCPError, match="no resource"):
        await client.read_resource("file:///etc/passwd")

    await be_hostile(client)


async def be_hostile(client: Client) -> None:
    long = await ask(client, "search", library="news", query="rain " * 210_000, k=1)  # 1 MB
    assert "the model reads the first 24" in long["notes"][0]
    assert len(await refusal(client, "similar", library="news", ids=["x" * 2**20])) < 200
    for name in ("../news", "/etc/passwd", "news\x00", "news.db", "", "\ud7ff" * 1_000):
        assert "there is no library" in await refusal(client, "search", library=name, query="rain")
    assert "the filter" in await refusal(client, "search", library="news", query="rain", where="1=1; drop table documents --")
    assert await refusal(client, "get", library="news", ids=["rain"] * 101)
    assert await refusal(client, "search", library="news", query={"$ne": None})
    nested: Any = "x"
    for _ in range(100):
        nested = [nested]
    assert await refusal(client, "get", library="news", ids=nested)
    assert (await ask(client, "get", library="news", ids=["'; drop table documents --", "a\x00b", "%2e%2e/"]))["documents"] == []
    assert len((await ask(client, "list_libraries"))["libraries"]) == 2


@pytest.mark.slow
def test_the_official_client_over_standard_input_and_output(tiny_bert_folder: Path, paths: list[str]) -> None:
    visit_stdio(look_around, tiny_bert_folder, paths)


def test_the_official_client_over_http(model: SentenceEncoder, paths: list[str]) -> None:
    with http_server(model, paths) as (url, _):
        visit_http(look_around, url)


def test_answers_are_those_of_the_library(model: SentenceEncoder, reranker: CrossEncoder, paths: list[str]) -> None:
    async def visit(client: Client) -> None:
        for options in ({}, {"explain": True}, {"where": "year >= 2021"}, {"rerank": True}):
            found = await ask(client, "search", query="rain in winter", k=3, **options)
            scorer = reranker if options.get("rerank") else None
            with Library.open(paths[0], model, create=False) as library:
                hits = library.search("rain in winter", 3, **{**options, "rerank": scorer})
            assert [(hit["id"], hit["score"]) for hit in found["hits"]] == [(hit.id, pytest.approx(hit.score, abs=1e-6)) for hit in hits]
            assert ("explanation" in found["hits"][0]) is ("explain" in options)
        assert (await ask(client, "search", query="rain", where="yaer > 1"))["notes"]
        words = await ask(client, "keywords", texts=["the heavy rain in the river"], top=2)
        [expected] = extract_keywords(["the heavy rain in the river"], model, top=2)
        assert [word["text"] for word in words["keywords"][0]] == [word.text for word in expected]
        assert "no model 'other'" in await refusal(client, "keywords", texts=["rain"], model="other")

    with http_server(model, paths[:1], reranker=reranker) as (url, _):
        visit_http(visit, url)


def test_libraries_change_only_where_that_was_allowed(model: SentenceEncoder, paths: list[str]) -> None:
    async def visit(client: Client) -> None:
        assert [tool.name for tool in (await client.list_tools()).tools] == [*READING, "add", "remove"]
        added = await ask(client, "add", records=[{"id": "new", "text": "the book of winter", "metadata": {"year": 2030}}])
        assert (added["added"], added["documents"]) == (1, 5)
        assert (await ask(client, "search", query="the book of winter", k=1))["hits"][0]["id"] == "new"
        assert (await ask(client, "remove", ids=["new", "nobody"]))["removed"] == 1
        assert "empty" in await refusal(client, "add", records=[{"text": " "}])

    with http_server(model, paths[:1], write=True) as (url, _):
        visit_http(visit, url)


def test_a_cancelled_call_that_waits_never_runs_and_the_others_go_on(model: SentenceEncoder, paths: list[str]) -> None:
    begun, go_on, ran = threading.Event(), threading.Event(), []

    def slow(work: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
        def run(body: Any, key: Any) -> Any:
            ran.append(body.ids[0])
            if body.ids[0] == "rain":
                begun.set()
                assert go_on.wait(20)
            return work(body, key)

        return run

    async def visit(client: Client) -> None:
        first = asyncio.create_task(ask(client, "get", ids=["rain"]))
        await asyncio.to_thread(begun.wait, 20)
        second = asyncio.create_task(ask(client, "get", ids=["비"]))
        await asyncio.sleep(0.1)
        second.cancel()
        with pytest.raises(asyncio.CancelledError):
            await second
        assert (await client.list_tools()).tools  # the server is not held up
        await asyncio.sleep(0.1)
        go_on.set()
        assert (await first)["documents"][0]["id"] == "rain"
        assert (await ask(client, "get", ids=["cat"]))["documents"][0]["id"] == "cat"

    with http_server(model, paths[:1], threads=1) as (url, toolbox):
        tool = toolbox._tools["get"]
        object.__setattr__(tool, "work", slow(tool.work))
        visit_http(visit, url)
    assert ran == ["rain", "cat"]


def test_keys_say_which_libraries_and_tools_a_client_has(model: SentenceEncoder, paths: list[str], tmp_path: Path) -> None:
    (tmp_path / "keys.toml").write_text(KEYS, encoding="utf-8")

    async def reader(client: Client) -> None:
        assert [tool.name for tool in (await client.list_tools()).tools] == READING
        assert [each["name"] for each in (await ask(client, "list_libraries"))["libraries"]] == ["news"]
        assert (await ask(client, "search", query="rain", k=1))["library"] == "news"
        assert "no right to the library 'laws'" in await refusal(client, "search", library="laws", query="rain")
        assert "has the right read, this needs write" in await refusal(client, "remove", library="news", ids=["rain"])
        with pytest.raises(MCPError, match="no right"):
            await client.read_resource("munjang://laws/rain")

    async def writer(client: Client) -> None:
        assert (await ask(client, "remove", library="laws", ids=["cat"]))["removed"] == 1

    with http_server(model, paths, ServerSettings(keys_file=tmp_path / "keys.toml"), write=True) as (url, _):
        visit_http(reader, url, "reader-of-news-0123456")
        visit_http(writer, url, "writer-of-all-01234567")
        for headers in ({}, {"authorization": "Bearer wrong-key-0123456789"}):
            assert httpx2.post(url, json={}, headers=headers).status_code == 401


def test_other_hosts_origins_and_too_large_bodies_are_refused(model: SentenceEncoder, paths: list[str]) -> None:
    with http_server(model, paths) as (url, _):
        assert httpx2.post(url, json={}, headers={"host": "evil.example"}).status_code == 421
        assert httpx2.post(url, json={}, headers={"origin": "https://evil.example"}).status_code == 403
        headers = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
        assert httpx2.post(url, content=b" " * (SERVE_LIMITS.max_body_bytes + 1), headers=headers).status_code == 413
        assert httpx2.post(url, content=b"[" * 100_000, headers=headers).status_code in (400, 413)
        assert httpx2.get(url.removesuffix("/mcp") + "/health").status_code == 404


@pytest.mark.slow
def test_the_page_works(tmp_path: Path) -> None:
    page = Path(__file__).parents[2] / "docs/mcp.md"
    write_shown_files(page, tmp_path)
    settings = {"MUNJANG_HOME": str(tmp_path / "home")}
    [line] = [line for block in LINES.findall(page.read_text(encoding="utf-8")) for line in block.splitlines()]
    [block] = re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    block = block.replace('command="munjang", args=[', f'command={sys.executable!r}, args=["-c", {COMMAND!r}, ')
    block = block.replace('"news.db"])', '"news.db"], env=dict(__import__("os").environ))')
    for arguments in (["-c", COMMAND, *line.split()[1:]], ["-c", block]):
        done = subprocess.run(
            [sys.executable, *arguments], cwd=tmp_path, env=os.environ | settings, capture_output=True, text=True, check=False, timeout=120
        )
        assert done.returncode == 0, done.stderr
    assert "munjang://news/" in done.stdout
