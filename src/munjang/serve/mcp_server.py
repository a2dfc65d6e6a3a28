"""A toolbox → an MCP server of the official SDK, over standard input and output or as an app for streamable HTTP.

Tools run in a few threads of their own. A call that is cancelled before its turn never runs; one that has begun is finished, and nobody
gets its answer. An error of a tool is an answer that says so, as MCP wants it, so that the model that called can do better; a bug of ours
is only named, and goes to the log. Over HTTP every request passes the server's guard: Host, origin and key, as in `munjang serve`.
"""

from __future__ import annotations

import asyncio
import json
import sys
import traceback
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import mcp_types as types
import uvicorn
from mcp import MCPError, stdio_server
from mcp.server import Server
from mcp.server.transport_security import TransportSecuritySettings

import munjang
from munjang.serve.access_log import AccessLog
from munjang.serve.errors import Overloaded, Problem, problem_of
from munjang.serve.guard import Guard
from munjang.serve.keys import ANYONE, Key, KeyRing
from munjang.serve.mcp_tools import SCHEME, LibraryTool, Toolbox, document_json, parse_uri, uri_of
from munjang.serve.metrics import Metrics
from munjang.serve.protocol import BoundedProtocol
from munjang.serve.running import SignalServer
from munjang.serve.settings import ServerSettings

Value = TypeVar("Value")

PATH = "/mcp"
THREADS = 4
"""Calls at work at once."""
JSON = "application/json"
CODES = {404: types.INVALID_PARAMS, 400: types.INVALID_PARAMS, 422: types.INVALID_PARAMS, 403: types.INVALID_PARAMS}
STOP_SECONDS = 5
"""For accepted requests to finish; a client that only listens is not waited for."""
INSTRUCTIONS = (
    "Search libraries of documents. Call list_libraries to see what there is, search to find passages, get to read whole documents. "
    "Cite documents by their uri."
)


class McpServer:
    """The handlers of the protocol's requests, and the threads that do their work."""

    def __init__(self, toolbox: Toolbox, *, threads: int = THREADS) -> None:
        self.toolbox = toolbox
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix="munjang-mcp")
        self._waiting = 0
        self._most = toolbox.limits.waiting_calls
        self.protocol: Server[Any] = Server(
            "munjang",
            version=munjang.__version__,
            title="Munjang",
            instructions=INSTRUCTIONS,
            on_list_tools=self._list_tools,
            on_call_tool=self._call_tool,
            on_list_resources=self._list_resources,
            on_list_resource_templates=self._list_templates,
            on_read_resource=self._read_resource,
        )

    async def run_stdio(self) -> None:
        """Serve the process at the other end of standard input and output, until it closes its end."""
        async with stdio_server() as (read, write):
            await self.protocol.run(read, write, self.protocol.create_initialization_options())

    def make_app(self, settings: ServerSettings, keys: KeyRing) -> Guard:
        """Return an ASGI app: streamable HTTP at /mcp, behind the guard."""
        app = self.protocol.streamable_http_app(
            streamable_http_path=PATH,
            max_request_body_size=settings.limits.max_body_bytes,
            transport_security=TransportSecuritySettings(enable_dns_rebinding_protection=False),  # the guard does it for all paths
        )
        return Guard(app, settings, keys, {}, Metrics(), AccessLog(None))

    def make_http_server(self, settings: ServerSettings, keys: KeyRing) -> SignalServer:
        """Return a server for the app that is not yet started."""
        config = uvicorn.Config(
            self.make_app(settings, keys),
            http=type("Protocol", (BoundedProtocol,), {"limits": settings.limits}),
            ws="none",
            lifespan="on",
            log_level="critical",
            access_log=False,
            server_header=False,
            proxy_headers=False,
            timeout_keep_alive=settings.limits.idle_seconds,
            timeout_graceful_shutdown=STOP_SECONDS,
        )
        return SignalServer(config)

    def close(self) -> None:
        """Let calls that have begun finish, and drop the others."""
        self._threads.shutdown(wait=True, cancel_futures=True)

    async def _list_tools(self, context: Any, _params: Any) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[_tool(each) for each in self.toolbox.tools_for(_key(context))])

    async def _call_tool(self, context: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        key = _key(context)

        def work() -> tuple[Any, str]:
            answer = self.toolbox.call(self.toolbox.find(params.name), params.arguments or {}, key)
            return answer, json.dumps(answer, ensure_ascii=False)

        try:
            answer, text = await self._in_thread(work)
        except Exception as error:
            said = types.TextContent(type="text", text=_problem(error).message)
            return types.CallToolResult(content=[said], is_error=True)
        return types.CallToolResult(content=[types.TextContent(type="text", text=text)], structured_content=answer)

    async def _list_resources(self, context: Any, _params: Any) -> types.ListResourcesResult:
        names = self.toolbox.names_for(_key(context))
        return types.ListResourcesResult(
            resources=[types.Resource(uri=uri_of(name), name=name, description="What the library holds.", mime_type=JSON) for name in names]
        )

    async def _list_templates(self, _context: Any, _params: Any) -> types.ListResourceTemplatesResult:
        template = types.ResourceTemplate(
            uri_template=f"{SCHEME}{{library}}/{{id}}", name="document", description="A document of a library.", mime_type=JSON
        )
        return types.ListResourceTemplatesResult(resource_templates=[template])

    async def _read_resource(self, context: Any, params: types.ReadResourceRequestParams) -> types.ReadResourceResult:
        uri, key = str(params.uri), _key(context)

        def read() -> str:
            library, id = parse_uri(uri)
            found = self.toolbox.describe(library, key) if id is None else document_json(self.toolbox.document(library, id, key))
            return json.dumps(found, ensure_ascii=False)

        try:
            text = await self._in_thread(read)
        except Exception as error:
            problem = _problem(error)
            raise MCPError(CODES.get(problem.status, types.INTERNAL_ERROR), problem.message) from None
        return types.ReadResourceResult(contents=[types.TextResourceContents(uri=params.uri, mime_type=JSON, text=text)])

    async def _in_thread(self, work: Callable[[], Value]) -> Value:
        """Do blocking work; whoever is cancelled while it waits for a thread never gets one."""
        if self._waiting >= self._most:
            raise Overloaded(f"{self._waiting} calls are waiting, the limit\n  try again in a second")
        self._waiting += 1
        try:
            return await asyncio.wrap_future(self._threads.submit(work))
        finally:
            self._waiting -= 1


def _key(context: Any) -> Key:
    """Return the key of an HTTP request; whoever started the process may do everything that it offers."""
    scope: dict[str, Any] = {} if context.request is None else context.request.scope
    key: Key = scope.get("munjang.key", ANYONE)
    return key


def _tool(tool: LibraryTool) -> types.Tool:
    schema = tool.arguments.model_json_schema()
    reads = tool.right == "read"
    hints = types.ToolAnnotations(read_only_hint=reads, destructive_hint=not reads, idempotent_hint=True, open_world_hint=False)
    return types.Tool(name=tool.name, description=tool.description, input_schema=schema, annotations=hints)


def _problem(error: Exception) -> Problem:
    """Say what a client is told; a bug goes to standard error."""
    problem = problem_of(error)
    if problem.status == 500 and problem.message.startswith("internal error"):
        traceback.print_exception(error, file=sys.stderr)
    return problem
