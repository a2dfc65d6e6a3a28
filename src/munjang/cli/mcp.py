"""`munjang mcp`: libraries → tools and documents for language models, by the Model Context Protocol."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated

import typer

from munjang.cli.options import JsonOption, LibraryComputeOption, ModelsOption, examples, new_app
from munjang.cli.serve import PACKAGES, load_encoders, load_rerankers
from munjang.cli.show import emit, note
from munjang.errors import MissingExtra
from munjang.options import default_of
from munjang.serve.settings import ServerSettings, check_settings

if TYPE_CHECKING:
    from munjang.serve.mcp_server import McpServer

app = new_app()


@app.command(
    epilog=examples(
        "munjang mcp --library news.db",
        "munjang mcp --library news.db --library laws.db --write",
        "munjang mcp --library news.db --http --port 8090 --keys keys.toml",
    )
)
def mcp(
    library: Annotated[list[str], typer.Option("--library", "-l", help="A library to search; may be repeated.")],
    model: ModelsOption = None,
    rerank_model: Annotated[
        list[str] | None, typer.Option("--reranker", help="A cross-encoder's name or folder. Default: the model's own tokens re-rank.")
    ] = None,
    write: Annotated[bool, typer.Option("--write", help="Offer tools that change libraries, too.")] = False,
    http: Annotated[bool, typer.Option("--http", help="Serve streamable HTTP at /mcp instead of standard input and output.")] = False,
    host: Annotated[str, typer.Option(help="With --http, the address to listen on; other machines need a key.")] = default_of(
        ServerSettings, "host"
    ),
    port: Annotated[int, typer.Option(min=0, max=65_535, help="With --http, the port; 0 takes a free one.")] = 8090,
    api_key_file: Annotated[Path | None, typer.Option(help="A file with one line: a key that may do everything.")] = None,
    keys: Annotated[
        Path | None, typer.Option(help="A TOML or JSON file of keys with names, rights and libraries; SIGHUP reads it again.")
    ] = None,
    allow_host: Annotated[
        list[str] | None, typer.Option(help="A host name by which clients may address this server; may be repeated.")
    ] = None,
    allow_origin: Annotated[list[str] | None, typer.Option(help="A web origin that may send requests; may be repeated.")] = None,
    compute: LibraryComputeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Serve libraries to language models (Model Context Protocol).

    The tools are search, get, similar, keywords and list_libraries; with --write, add and remove, too. Documents are resources. Without
    --http the client starts this command itself and talks to it through standard input and output.
    """
    if any(find_spec(name) is None for name in ("mcp", *PACKAGES)):
        raise MissingExtra("munjang mcp", "mcp")
    from munjang.serve.keys import read_key
    from munjang.serve.libraries import Libraries
    from munjang.serve.mcp_server import McpServer
    from munjang.serve.mcp_tools import Toolbox

    settings = check_settings(
        ServerSettings(
            host=host,
            port=port,
            key=None if api_key_file is None else read_key(api_key_file),
            keys_file=keys,
            hosts=tuple(allow_host or ()),
            origins=tuple(allow_origin or ()),
            read_only=not write,
        )
    )
    encoders = load_encoders(tuple(library), model or [], compute)
    rerankers = load_rerankers(rerank_model or [], encoders[0].compute)
    with TemporaryDirectory() as scratch:
        libraries = Libraries(encoders, library, None, scratch=Path(scratch))
        server = McpServer(Toolbox(libraries, encoders, rerankers[0] if rerankers else None, write=write))
        try:
            if http:
                _run_http(server, settings, [name for name, _ in libraries], as_json)
            else:
                _run_stdio(server)
        finally:
            server.close()
            libraries.close()


def _run_stdio(server: McpServer) -> None:
    import asyncio

    asyncio.run(server.run_stdio())


def _run_http(server: McpServer, settings: ServerSettings, names: list[str], as_json: bool) -> None:
    from munjang.serve.keys import KeyRing
    from munjang.serve.mcp_server import PATH
    from munjang.serve.running import listen, reload_keys_on_hangup

    keys = KeyRing(settings.key, settings.keys_file)
    bound = listen(settings.host, settings.port)
    shown = f"[{settings.host.strip('[]')}]" if ":" in settings.host else settings.host
    address = f"http://{shown}:{bound.getsockname()[1]}{PATH}"
    if as_json:
        emit({"address": address, "libraries": names})
    else:
        note(f"serving {', '.join(names)} on {address}")
    sys.stdout.flush()
    reload_keys_on_hangup(keys, settings.keys_file)
    server.make_http_server(settings, keys).run(sockets=[bound])
