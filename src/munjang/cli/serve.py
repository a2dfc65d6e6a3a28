"""`munjang serve`: a model and libraries → an HTTP server, until it is stopped."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from munjang.cli.options import Compute, JsonOption, LibraryComputeOption, ModelOption, examples, new_app
from munjang.cli.show import emit, note
from munjang.errors import FolderError, InputError, MissingExtra

if TYPE_CHECKING:
    from munjang.models.cross_encoder import CrossEncoder
    from munjang.models.sentence_encoder import SentenceEncoder
    from munjang.serve.settings import Settings

PACKAGES = ("starlette", "uvicorn", "httptools", "pydantic", "orjson", "prometheus_client")

app = new_app()


@app.command(
    epilog=examples(
        "munjang serve",
        "munjang serve --library news.db --reranker my-reranker --port 9000",
        "munjang serve --host 0.0.0.0 --api-key-file key.txt --allow-host search.example.org",
    )
)
def serve(
    model: ModelOption = None,
    rerank_model: Annotated[
        str | None, typer.Option("--reranker", help="A cross-encoder's name or folder; without it, the default one if there is one.")
    ] = None,
    library: Annotated[list[str] | None, typer.Option("--library", "-l", help="A library to search; may be repeated.")] = None,
    host: Annotated[str, typer.Option(help="The address to listen on; other machines need a key.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65_535, help="The port; 0 takes a free one.")] = 8080,
    api_key_file: Annotated[Path | None, typer.Option(help="A file with one line: the key that clients must send.")] = None,
    data: Annotated[
        Path | None, typer.Option(help="Where libraries that clients make are kept; by default MUNJANG_HOME/libraries.")
    ] = None,
    read_only: Annotated[bool, typer.Option("--read-only", help="Refuse everything that would change a library.")] = False,
    allow_host: Annotated[list[str] | None, typer.Option(help="A name by which clients may call this server; may be repeated.")] = None,
    allow_origin: Annotated[list[str] | None, typer.Option(help="A web page's origin that may call; may be repeated.")] = None,
    queue_tokens: Annotated[int | None, typer.Option(min=1, help="Tokens that may wait before requests are refused.")] = None,
    access_log: Annotated[Literal["stderr", "none"], typer.Option(help="Where a line per request goes.")] = "stderr",
    compute: LibraryComputeOption = None,
    check: Annotated[bool, typer.Option("--check", help="Load everything, say what would be served, and leave.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Serve vectors, scores, libraries and analyses over HTTP.

    Speaks the dialects of OpenAI, text-embeddings-inference and Cohere, and Munjang's own; /docs lists all of it. SIGTERM stops it gently.
    """
    _need_extra()
    from munjang.serve.settings import checked

    libraries = tuple(library or ())
    settings = checked(
        _settings(host, port, api_key_file, data, read_only, tuple(allow_host or ()), tuple(allow_origin or ()), queue_tokens)
    )
    encoder = _encoder(libraries, model, compute)
    reranker = _reranker(rerank_model, encoder.compute)

    from munjang.serve.running import run
    from munjang.serve.service import Service

    service = Service(settings, encoder, reranker, libraries=libraries)
    for reason in service.libraries.skipped:
        note(f"not served: {reason}")
    facts = {"model": encoder.name, "rerank_model": reranker.name if reranker else None}
    if check:
        emit({**facts, "libraries": [name for name, _ in service.libraries]})
        service.close()
        return

    def ready(address: str) -> None:
        if as_json:
            emit({"address": address, **facts})
        else:
            print(f"serving {encoder.name} on {address} (documentation: {address}/docs)")
        sys.stdout.flush()

    run(service, log=sys.stderr.buffer if access_log == "stderr" else None, ready=ready)


def _settings(
    host: str,
    port: int,
    key_file: Path | None,
    data: Path | None,
    read_only: bool,
    hosts: tuple[str, ...],
    origins: tuple[str, ...],
    queue_tokens: int | None,
) -> Settings:
    from dataclasses import replace

    from munjang.limits import SERVE_LIMITS
    from munjang.models.registry import models_home
    from munjang.serve.settings import Settings, read_key

    return Settings(
        host=host,
        port=port,
        key=None if key_file is None else read_key(key_file),
        hosts=hosts,
        origins=origins,
        data=data or models_home().parent / "libraries",
        read_only=read_only,
        limits=SERVE_LIMITS if queue_tokens is None else replace(SERVE_LIMITS, waiting_tokens=queue_tokens),
    )


def _need_extra() -> None:
    from importlib.util import find_spec

    if any(find_spec(name) is None for name in PACKAGES):
        raise MissingExtra("munjang serve", "serve")


def _encoder(libraries: tuple[str, ...], model: str | None, compute: Compute | None) -> SentenceEncoder:
    """Load the model named, else the one that the first library was built with; all libraries must have been built with one model."""
    from munjang.cli.collection import refuse_others
    from munjang.cli.library_files import load_for
    from munjang.library.library import Library

    made = []
    for path in libraries:
        with Library.open(path, create=False) as opened:
            made.append((path, opened.store.settings()))
    refuse_others(made)
    return load_for(*made[0], model, compute) if made else load_for("", None, model, compute)


def _reranker(name: str | None, compute: Compute) -> CrossEncoder | None:
    """Load the cross-encoder that is named, or the default one where there is one."""
    from munjang.models.cross_encoder import CrossEncoder
    from munjang.models.registry import resolve_reranker

    try:
        found = resolve_reranker(name)
    except (FolderError, InputError):
        if name is not None:
            raise
        return None
    return CrossEncoder.load(found.path, compute=compute)
