"""`munjang serve`: a model and libraries → an HTTP server, until it is stopped."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from munjang.cli.collection import refuse_others
from munjang.cli.library_files import load_for
from munjang.cli.load_model import load_cross_encoder, load_model
from munjang.cli.options import Chosen, JsonOption, LibraryComputeOption, ModelsOption, Takes, examples, new_app
from munjang.cli.show import emit, note
from munjang.cli.text_analysis import DictionaryOption
from munjang.errors import MissingExtra, UsageError, quote
from munjang.limits import SERVE_LIMITS
from munjang.models.registry import models_home, resolve
from munjang.serve.settings import ServerSettings, check_settings
from munjang.types import Compute

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from munjang.analyze.classify.classifier import TextClassifier
    from munjang.models.cross_encoder import CrossEncoder
    from munjang.models.pair_classifier import PairClassifier
    from munjang.models.sentence_encoder import SentenceEncoder

PACKAGES = ("starlette", "uvicorn", "httptools", "pydantic", "orjson", "prometheus_client")

app = new_app()


@app.command(
    epilog=examples(
        "munjang serve",
        "munjang serve --library news.db --reranker my-reranker --port 9000",
        "munjang serve --model small --model large --keys keys.toml",
        "munjang serve --host 0.0.0.0 --api-key-file key.txt --allow-host search.example.org",
    )
)
def serve(
    model: ModelsOption = None,
    rerank_model: Annotated[
        list[str] | None,
        typer.Option("--reranker", help="A cross-encoder's name or folder; may be repeated. Default: the model's own tokens re-rank."),
    ] = None,
    pair_classifier: Annotated[
        list[str] | None, typer.Option(help="The folder of a pair classifier for /predict and /api/score; may be repeated.")
    ] = None,
    classifier: Annotated[
        list[Path] | None, typer.Option("--classifier", help="The folder of a classifier of texts; may be repeated.")
    ] = None,
    library: Annotated[list[str] | None, typer.Option("--library", "-l", help="A library to search; may be repeated.")] = None,
    *,
    options: Annotated[Chosen, Takes(ServerSettings)],
    api_key_file: Annotated[Path | None, typer.Option(help="A file with one line: a key that may do everything.")] = None,
    keys: Annotated[
        Path | None, typer.Option(help="A TOML or JSON file of keys with names, rights and libraries; SIGHUP reads it again.")
    ] = None,
    dictionary: DictionaryOption = None,
    data: Annotated[Path | None, typer.Option(help="Folder for libraries that clients create. Default: MUNJANG_HOME/libraries.")] = None,
    allow_host: Annotated[
        list[str] | None, typer.Option(help="A host name by which clients may address this server; may be repeated.")
    ] = None,
    allow_origin: Annotated[list[str] | None, typer.Option(help="A web origin that may send requests; may be repeated.")] = None,
    queue_tokens: Annotated[
        int | None, typer.Option(min=1, help="Tokens of one client that may wait before its requests are rejected.")
    ] = None,
    max_wait: Annotated[
        float | None, typer.Option(min=0.01, help=f"Seconds a request may wait for its turn. Default: {SERVE_LIMITS.wait_seconds:g}.")
    ] = None,
    access_log: Annotated[Literal["stderr", "none"], typer.Option(help="Where to write one line per request.")] = "stderr",
    compute: LibraryComputeOption = None,
    check: Annotated[bool, typer.Option("--check", help="Load everything, print what would be served, and exit.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Serve models, libraries and analyses over HTTP.

    Speaks the dialects of OpenAI, Cohere, text-embeddings-inference and infinity, and Munjang's own; /docs lists all of it. Of several
    models, requests choose one by name, and the first is the default. SIGTERM stops it gently.
    """
    _need_extra()
    libraries = tuple(library or ())
    settings = check_settings(
        _settings(
            options,
            (api_key_file, keys),
            data,
            dictionary,
            tuple(allow_host or ()),
            tuple(allow_origin or ()),
            queue_tokens or SERVE_LIMITS.waiting_tokens,
            max_wait or SERVE_LIMITS.wait_seconds,
        )
    )
    classifiers = _classifiers(classifier or [])
    encoder, *more = load_encoders(libraries, model or [], compute)
    rerankers = load_rerankers(rerank_model or [], encoder.compute)
    pair_classifiers = _pair_classifiers(pair_classifier or [], encoder.compute)

    from munjang.serve.running import run
    from munjang.serve.service import Service

    reranker = rerankers[0] if rerankers else None
    service = Service(
        settings,
        encoder,
        reranker,
        libraries=libraries,
        more_models=more,
        more_rerankers=rerankers[1:],
        pair_classifiers=pair_classifiers,
        classifiers=classifiers,
        classifier_models=_load_classifier_models(classifiers, [encoder, *more]),
    )
    for reason in service.libraries.skipped:
        note(f"not served: {reason}")
    names = [each.name for each in (encoder, *more)]
    facts: dict[str, Any] = {
        "model": encoder.name,
        "models": names,
        "rerank_model": reranker.name if reranker else None,
        "pair_classifiers": [each.name for each in pair_classifiers],
        "classifiers": list(classifiers),
    }
    if check:
        emit({**facts, "libraries": [name for name, _ in service.libraries]})
        service.close()
        return

    def ready(address: str) -> None:
        if as_json:
            emit({"address": address, **facts})
        else:
            print(f"serving {', '.join(names)} on {address} (documentation: {address}/docs)")
        sys.stdout.flush()

    run(service, log=sys.stderr.buffer if access_log == "stderr" else None, ready=ready)


def _classifiers(folders: list[Path]) -> dict[str, TextClassifier]:
    """Load classifiers, each under the name of its folder."""
    from munjang.analyze.classify.saving import load_classifier

    names = [folder.resolve().name for folder in folders]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise UsageError(f"two classifiers are named {quote(twice)}, so a request could not tell them apart\n  rename one of the folders")
    return {name: load_classifier(folder) for name, folder in zip(names, folders, strict=True)}


def _load_classifier_models(classifiers: Mapping[str, TextClassifier], served: Sequence[SentenceEncoder]) -> list[SentenceEncoder]:
    """Load the models of classifiers that no served model can stand in for: tuned ones, or the same one computing otherwise."""
    loaded: dict[str, SentenceEncoder] = {}
    for made in classifiers.values():
        if made.encoder_name and made.encoder not in (*loaded, *(each.fingerprint for each in served)):
            loaded[made.encoder] = load_model(made.encoder_name, compute=None, made=made.encoder)
    return list(loaded.values())


def _settings(
    options: Chosen,
    key_files: tuple[Path | None, Path | None],
    data: Path | None,
    dictionary: Path | None,
    hosts: tuple[str, ...],
    origins: tuple[str, ...],
    queue_tokens: int,
    max_wait: float,
) -> ServerSettings:
    from munjang.serve.keys import read_key
    from munjang.text.dictionary import Dictionary, read_dictionary

    one, several = key_files
    return ServerSettings(
        **options,
        key=None if one is None else read_key(one),
        keys_file=several,
        hosts=hosts,
        origins=origins,
        data=data or models_home().parent / "libraries",
        dictionary=Dictionary() if dictionary is None else read_dictionary(dictionary),
        limits=replace(SERVE_LIMITS, waiting_tokens=queue_tokens, wait_seconds=max_wait),
    )


def _need_extra() -> None:
    from importlib.util import find_spec

    if any(find_spec(name) is None for name in PACKAGES):
        raise MissingExtra("munjang serve", "serve")


def load_encoders(libraries: tuple[str, ...], models: list[str], compute: Compute | None) -> list[SentenceEncoder]:
    """Load the models named, else those that the libraries were built with, else the default one; each once.

    A model computes as it did for the first library of its name.
    """
    from munjang.library.library import Library

    made = []
    for path in libraries:
        with Library.open(path, create=False) as opened:
            made.append((path, opened.store.settings()))
    if not models:
        names = dict.fromkeys(settings.model for _, settings in made)
        groups = [[each for each in made if each[1].model == name] for name in names]
        for group in groups:
            refuse_others(group)
        return [load_for(*group[0], None, compute) for group in groups] or [load_for("", None, None, compute)]
    found = []
    for name in models:
        resolved = resolve(name).name
        own = [each for each in made if each[1].model == resolved] or (made if len(models) == 1 else [])
        found.append(load_for(*own[0], name, compute) if own else load_for("", None, name, compute))
    return found


def _pair_classifiers(names: list[str], compute: Compute) -> list[PairClassifier]:
    from munjang.models.pair_classifier import PairClassifier

    return [PairClassifier.load(name, compute=compute) for name in names]


def load_rerankers(names: list[str], compute: Compute) -> list[CrossEncoder]:
    """Load the cross-encoders that are named."""
    return [load_cross_encoder(resolve(name).path, compute=compute) for name in names]
