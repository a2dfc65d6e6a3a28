"""A described folder → every way through its model, each with its tokenizer and a running engine.

Most models have one way. A folder with a Router has one for each route, whose modules may differ from the first on; a model with task
adapters has one for each task, which share the weights, and one without any.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from munjang.engine.folder import ModelFolder
from munjang.engine.modules import Module, StaticModule, TransformerModule
from munjang.engine.open import Engine
from munjang.engine.transformer import TransformerEngine
from munjang.errors import FolderError
from munjang.models.batch_encoder import check_vocabulary, find_token_limit
from munjang.models.open_engine import open_sentence_engine
from munjang.text.tokenizer import Tokenizer, load_tokenizer
from munjang.text.word_tokenizer import load_word_tokenizer
from munjang.types import Compute, Device, EngineName


@dataclass(frozen=True)
class Way:
    """What one way through a model reads texts and computes with."""

    folder: ModelFolder
    """Its modules are those of this way."""
    tokenizer: Tokenizer
    engine: Engine
    max_length: int | None


@dataclass(frozen=True)
class WayOptions:
    """How the engines of all ways are started."""

    engine: EngineName
    device: Device
    compute: Compute
    threads: int | None
    max_length: int | None


def open_ways(folder: ModelFolder, options: WayOptions) -> dict[str, Way]:
    """Return the ways by the names of their routes or tasks; the default comes first, and is called "" where it is no task's."""
    if folder.routes:
        return _open_routes(folder, options)
    way = _open_way(folder, options, {})
    if not folder.tasks:
        return {"": way}
    engine = way.engine
    assert isinstance(engine, TransformerEngine)  # the torch engine refuses adapters
    return {"": way} | {task: replace(way, engine=engine.adapt(number)) for number, task in enumerate(folder.tasks, start=1)}


def _open_routes(folder: ModelFolder, options: WayOptions) -> dict[str, Way]:
    tokenizers: dict[Path, Tokenizer] = {}
    ways: dict[str, Way] = {}
    for name in (folder.default_route, *(each for each in folder.routes if each != folder.default_route)):
        modules = folder.routes[name]
        same = next((way for way in ways.values() if way.folder.modules == modules), None)
        ways[name] = same or _open_way(_choose_route(folder, modules), options, tokenizers)
    widths = {name: way.engine.dimension for name, way in ways.items()}
    if len(set(widths.values())) > 1:
        sizes = ", ".join(f"{name} {width}" for name, width in widths.items())
        raise FolderError(f"{folder.path}: the routes give vectors of different widths ({sizes}), which cannot be compared")
    return ways


def _choose_route(folder: ModelFolder, modules: tuple[Module, ...]) -> ModelFolder:
    first = modules[0]
    return replace(folder, modules=modules, max_length=first.max_length if isinstance(first, TransformerModule) else None)


def _load_tokenizer(base: TransformerModule | StaticModule) -> Tokenizer:
    if isinstance(base, StaticModule) and base.words:
        return load_word_tokenizer(base.folder / base.words, is_bag=base.counts)
    return load_tokenizer(base.folder)


def _open_way(folder: ModelFolder, options: WayOptions, tokenizers: dict[Path, Tokenizer]) -> Way:
    base = folder.base
    assert isinstance(base, TransformerModule | StaticModule)  # what read_folder promises
    tokenizer = tokenizers.get(base.folder) or _load_tokenizer(base)
    tokenizers[base.folder] = tokenizer
    engine = open_sentence_engine(folder, engine=options.engine, device=options.device, compute=options.compute, threads=options.threads)
    check_vocabulary(folder, tokenizer, engine.vocabulary_size)
    limit = find_token_limit(folder, tokenizer, positions=engine.max_tokens, asked=options.max_length)
    return Way(folder, tokenizer, engine, limit)
