"""A model folder on disk → a typed description of the model in it.

Reads both dialects of the sentence-transformers format and plain Hugging Face folders. Weights and tokenizer are not opened here; every
path is checked to stay inside the folder, and nothing that a folder says can make code run.
"""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, get_args

from munjang.engine.jsonfile import read_json, read_object
from munjang.engine.modules import (
    LayerMixModule,
    Module,
    PoolingModule,
    RouterModule,
    StaticModule,
    TransformerModule,
    check_pooling,
    list_tasks,
)
from munjang.engine.read_module import MODULES_FILE, WORD_SETTINGS, is_size, read_module, read_transformer_settings, refuse_remote_code
from munjang.engine.remembered import remember
from munjang.errors import FolderError, UsageError, quote
from munjang.text.word_tokenizer import WORDS_FILE
from munjang.types import Metric, Pooling
from munjang.wording import brief_repr

COUNTED_SUFFIXES = (".safetensors", ".model")
COUNTED_NAMES = (
    "tokenizer.json",
    "vocab.txt",
    "vocab.json",
    "merges.txt",
    "config.json",
    "modules.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "router_config.json",
    WORD_SETTINGS,
    WORDS_FILE,
)
PROMPTS_KEY = "task_instructions"
"""The key of config.json with the prompts of a model's task adapters."""
BLOCK = 1 << 20
PAIR_CLASSIFIER = "pair_classifier"
"""The folder inside a sentence encoder's that holds a head kept from its training; no part of the encoder."""
PAIR_CLASSIFIER_FILE = "pair_classifier.json"


def fingerprint(folder: ModelFolder, *, settings: str = "") -> str:
    """Return 32 hexadecimal digits; `settings` is whatever else decides a vector (compute type, longest text …)."""
    return _hash_files(folder.path, _list_hashed_files(folder), settings)


def fingerprint_encoder(folder: ModelFolder) -> str:
    """Return 32 hexadecimal digits that change whenever the model itself does; folders beside it, such as `training`, do not count."""
    files = (file for file in _list_hashed_files(folder) if folder.routes or file.parent == folder.path or file.parent.name[:1].isdigit())
    return _hash_files(folder.path, files, "")


def _hash_files(root: Path, files: Iterable[Path], settings: str) -> str:
    listed = list(files)

    def compute() -> str:
        digest = hashlib.sha256(settings.encode())
        for file in listed:
            digest.update(str(file.relative_to(root)).encode() + b"\0")
            with file.open("rb") as handle:
                while block := handle.read(BLOCK):
                    digest.update(block)
        return digest.hexdigest()[:32]

    names = [str(file.relative_to(root)) for file in listed]
    return remember(f"fingerprint {names} {settings}", listed, compute) or compute()


def list_model_files(folder: ModelFolder) -> list[Path]:
    """Return every file of a model that a reader of its folder needs."""
    hashed = _list_hashed_files(folder)
    places = {file.parent for file in hashed}
    return sorted({*hashed, *(file for place in places for file in place.glob("*.json") if file.is_file())})


def _list_hashed_files(folder: ModelFolder) -> list[Path]:
    depths = ("*", "*/*", "*/*/*") if folder.routes else ("*", "*/*")  # a route's modules may stand one level deeper
    files = (file for depth in depths for file in folder.path.glob(depth) if file.is_file() and file.parent.name != PAIR_CLASSIFIER)
    return sorted(file for file in files if file.suffix in COUNTED_SUFFIXES or file.name in COUNTED_NAMES)


SETTINGS_FILE = "config_sentence_transformers.json"
MULTI_VECTOR_TYPES = ("MultiVectorEncoder", "ColBERT")
"""`model_type` of models with a vector for every token, in sentence-transformers 6 and in PyLate."""


class AssumptionWarning(UserWarning):
    """Something about a model was assumed because its folder does not say it; `for_shell` says so to someone who cannot call Python."""

    def __init__(self, fact: str, in_python: str = "", at_shell: str = "") -> None:
        super().__init__(f"{fact} ({in_python})" if in_python else fact)
        self.for_shell = f"{fact} ({at_shell})" if at_shell else fact


@brief_repr
@dataclass(frozen=True)
class ModelFolder:
    """What a model folder says about its model."""

    path: Path
    kind: Literal["sentence", "cross"]
    modules: tuple[Module, ...]
    max_length: int | None
    prompts: dict[str, str] = field(default_factory=dict)
    default_prompt: str | None = None
    similarity: Metric = "cosine"
    truncate_dimension: int | None = None
    routes: dict[str, tuple[Module, ...]] = field(default_factory=dict)
    """The modules of each way through the model, where it has several; `modules` is the default one's."""
    default_route: str = ""

    @property
    def tasks(self) -> tuple[str, ...]:
        """Names of what the model can be asked for: its routes, or the tasks that it has adapters for."""
        base = self.base
        return tuple(self.routes) or (list_tasks(base) if isinstance(base, TransformerModule) else ())

    @property
    def base(self) -> Module:
        """The module that reads token ids."""
        return self.modules[0]


def read_folder(path: Path, *, pooling: Pooling | None = None) -> ModelFolder:
    """Describe the model in `path`; `pooling` is for plain folders, which do not name one."""
    if pooling is not None:
        check_pooling(pooling)
    if not path.exists():
        raise FolderError(f"{path}: no such folder")
    if not path.is_dir():
        raise FolderError(f"{path}: is a file, expected a model folder")
    folder = _name_tasks(_read_modules(path) if (path / MODULES_FILE).is_file() else _read_plain(path, pooling))
    if pooling is not None and (path / MODULES_FILE).is_file() and folder.kind == "sentence":
        folder = _replace_pooling(folder, pooling)
    return folder


def _name_tasks(folder: ModelFolder) -> ModelFolder:
    """Let every task be asked for as a prompt: by what config.json or the settings put before its texts, else by an empty one."""
    base, named = folder.base, {}
    if isinstance(base, TransformerModule) and folder.tasks and isinstance(base.config.get(PROMPTS_KEY), dict):
        named = {task: text for task, text in base.config[PROMPTS_KEY].items() if task in folder.tasks and isinstance(text, str)}
    return replace(folder, prompts=dict.fromkeys(folder.tasks, "") | named | folder.prompts)


def require_sentence_encoder(folder: ModelFolder) -> None:
    """Refuse a cross-encoder where sentence vectors are wanted."""
    if folder.kind == "cross":
        raise FolderError(
            f"{folder.path}: holds a cross-encoder, which scores pairs and has no sentence vectors\n"
            "  use it with `munjang rerank` or CrossEncoder.load; give a sentence encoder here"
        )


def require_one_way(folder: ModelFolder, who: str) -> None:
    """Refuse routes, task adapters, mixed layers and lists of words where `who` computes one plain chain of modules."""
    parts = {
        "several routes": bool(folder.routes),
        "task adapters": bool(folder.tasks and not folder.routes),
        "a list of words in place of a tokenizer": isinstance(folder.base, StaticModule) and bool(folder.base.words),
        "a WeightedLayerPooling": any(isinstance(module, LayerMixModule) for module in folder.modules),
    }
    for part, there in parts.items():
        if there:
            raise FolderError(f"{folder.path}: has {part}, which {who} does not do")


def _replace_pooling(folder: ModelFolder, pooling: Pooling) -> ModelFolder:
    if not any(isinstance(module, PoolingModule) for module in folder.modules):
        raise UsageError(f"{folder.path}: has no pooling to replace by {pooling!r}")
    return replace(folder, modules=tuple(replace(m, modes=(pooling,)) if isinstance(m, PoolingModule) else m for m in folder.modules))


def _read_modules(path: Path) -> ModelFolder:
    listed = read_json(path / MODULES_FILE)
    if not isinstance(listed, list) or not listed or not all(isinstance(entry, dict) for entry in listed):
        raise FolderError(f"{path / MODULES_FILE}: expected a list of modules")
    settings = _read_settings(path)
    if settings.get("model_type") in MULTI_VECTOR_TYPES:
        raise FolderError(
            f"{path}: holds a multi-vector model, with a vector for every token and none for a text\n  load it with MultiVectorEncoder.load"
        )
    modules = [module for entry in listed for module in read_module(path, entry)]
    routes, default_route = _read_routes(path / MODULES_FILE, modules)
    routes = {name: _drop_idle_mix(chain) for name, chain in routes.items()}
    modules = list(routes[default_route] if routes else _drop_idle_mix(modules))
    if not modules or not isinstance(modules[0], TransformerModule | StaticModule):
        raise FolderError(f"{path / MODULES_FILE}: the first module must be a Transformer, StaticEmbedding, WordEmbeddings or BoW")
    kind: Literal["sentence", "cross"] = "sentence"
    if settings.get("model_type") == "CrossEncoder" or _read_task(modules[0]) == "sequence-classification":
        kind = "cross"
    else:
        for each in routes.values() or [tuple(modules)]:
            _check_order(path / MODULES_FILE, each)
    first = modules[0]
    return ModelFolder(
        path=path,
        kind=kind,
        modules=tuple(modules),
        max_length=first.max_length if isinstance(first, TransformerModule) else None,
        prompts=_read_prompts(path, settings),
        default_prompt=_read_default_prompt(path, settings),
        similarity=_read_similarity(path, settings),
        truncate_dimension=_read_truncate_dimension(path, settings),
        routes=routes,
        default_route=default_route,
    )


def _drop_idle_mix(modules: Sequence[Module]) -> tuple[Module, ...]:
    """Leave out a mix of layers behind an encoder that does not hand its layers on; sentence-transformers passes over it too."""
    first = modules[0] if modules else None
    hands_on = isinstance(first, TransformerModule) and first.config.get("output_hidden_states") is True
    return tuple(module for module in modules if hands_on or not isinstance(module, LayerMixModule))


def _read_routes(file: Path, modules: list[Module]) -> tuple[dict[str, tuple[Module, ...]], str]:
    """Return the whole chain of modules of each route, and the default route's name; nothing where there is no router."""
    places = [number for number, module in enumerate(modules) if isinstance(module, RouterModule)]
    if not places:
        return {}, ""
    router, (at, *others) = modules[places[0]], places
    assert isinstance(router, RouterModule)
    if others:
        raise FolderError(f"{file}: found {len(places)} Routers, expected one")
    before, after = tuple(modules[:at]), tuple(modules[at + 1 :])
    return {name: (*before, *chain, *after) for name, chain in router.routes.items()}, router.default


def _check_order(file: Path, modules: Sequence[Module]) -> None:
    """Refuse an order of modules in which one would read what is not there yet."""
    if not modules or not isinstance(modules[0], TransformerModule | StaticModule):
        raise FolderError(f"{file}: the first module must be a Transformer, StaticEmbedding, WordEmbeddings or BoW")
    mixes = [number for number, module in enumerate(modules) if isinstance(module, LayerMixModule)]
    if mixes not in ([], [1]) or (mixes and not isinstance(modules[0], TransformerModule)):
        raise FolderError(f"{file}: WeightedLayerPooling must stand once, right behind the Transformer")
    poolings = [number for number, module in enumerate(modules) if isinstance(module, PoolingModule)]
    if isinstance(modules[0], TransformerModule) and not poolings:
        raise FolderError(f"{file}: a Transformer without a Pooling module gives no sentence vector")
    if any(isinstance(module, TransformerModule | StaticModule) for module in modules[1:]):
        raise FolderError(f"{file}: found a second module that reads token ids, expected one")
    if poolings != ([1 + len(mixes)] if _gives_tokens(modules[0]) else []):
        raise FolderError(f"{file}: Pooling must stand once, right behind a Transformer or WordEmbeddings, and never behind another module")


def _gives_tokens(module: Module) -> bool:
    """Say whether what the module gives is to be pooled."""
    return isinstance(module, TransformerModule) or (isinstance(module, StaticModule) and bool(module.words) and not module.counts)


def _read_plain(path: Path, pooling: Pooling | None) -> ModelFolder:
    if (path / PAIR_CLASSIFIER_FILE).is_file():
        raise FolderError(
            f"{path}: holds a pair classifier, which labels pairs by the vectors of the sentence encoder in the folder above\n"
            "  use it with `munjang score` or PairClassifier.load; give the folder above for sentence vectors"
        )
    if not (path / "config.json").is_file():
        raise FolderError(f"{path}: neither {MODULES_FILE} nor config.json found; this is not a model folder")
    config = read_object(path / "config.json")
    refuse_remote_code(path / "config.json", config)
    architectures = config.get("architectures") or []
    if not isinstance(architectures, list):
        raise FolderError(f"{path / 'config.json'}: 'architectures' must be a list of names")
    base = TransformerModule(folder=path, config=config, max_length=None)
    if any(str(name).endswith("ForSequenceClassification") for name in architectures):
        return ModelFolder(path=path, kind="cross", modules=(base,), max_length=None)
    if pooling is None:
        fact = f"{path}: a plain encoder folder that names no pooling; mean pooling is assumed"
        warnings.warn(AssumptionWarning(fact, in_python="pass pooling=… to choose", at_shell="choose with --pooling"), stacklevel=5)
    return ModelFolder(path=path, kind="sentence", modules=(base, PoolingModule(modes=(pooling or "mean",))), max_length=None)


def _read_settings(path: Path) -> dict[str, Any]:
    return read_object(path / SETTINGS_FILE) if (path / SETTINGS_FILE).is_file() else {}


def _read_task(module: Module) -> str | None:
    if isinstance(module, TransformerModule):
        return read_transformer_settings(module.folder).get("transformer_task")
    return None


def _read_prompts(path: Path, settings: dict[str, Any]) -> dict[str, str]:
    prompts = settings.get("prompts") or {}
    if not isinstance(prompts, dict) or not all(isinstance(text, str) for text in prompts.values()):
        raise FolderError(f"{path / SETTINGS_FILE}: 'prompts' must be a table of strings")
    return dict(prompts)


def _read_similarity(path: Path, settings: dict[str, Any]) -> Metric:
    name = settings.get("similarity_fn_name") or "cosine"
    for metric in get_args(Metric):
        if name == metric:
            known: Metric = metric
            return known
    raise FolderError(f"{path / SETTINGS_FILE}: similarity_fn_name {quote(str(name))} is not cosine, dot, euclidean or manhattan")


def _read_default_prompt(path: Path, settings: dict[str, Any]) -> str | None:
    name = settings.get("default_prompt_name")
    if name is not None and not isinstance(name, str):
        raise FolderError(f"{path / SETTINGS_FILE}: 'default_prompt_name' must be a string")
    return name


def _read_truncate_dimension(path: Path, settings: dict[str, Any]) -> int | None:
    dimension = settings.get("truncate_dim")
    if dimension is not None and not is_size(dimension):
        raise FolderError(f"{path / SETTINGS_FILE}: 'truncate_dim' is {quote(str(dimension))}, expected a positive whole number")
    return dimension
