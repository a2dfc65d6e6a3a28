"""One entry of `modules.json` → the module it names, read from its folder.

A table says which modules there are; no name that a folder gives becomes code.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeGuard

from munjang.engine.families import find_family, is_first_jina
from munjang.engine.jsonfile import read_object, resolve_inside
from munjang.engine.modules import (
    POOLINGS,
    TORCH_ACTIVATIONS,
    DenseModule,
    LayerMixModule,
    LayerNormModule,
    Module,
    NormalizeModule,
    PoolingModule,
    RouterModule,
    StaticModule,
    TransformerModule,
)
from munjang.errors import FolderError, quote
from munjang.text.word_tokenizer import WORDS_FILE
from munjang.types import Pooling

MODULES_FILE = "modules.json"
ROUTER_FILES = ("router_config.json", "config.json")
"""Where the routes of a model stand; the second is the older name."""
TRANSFORMER_FILES = tuple(
    f"sentence_{name}_config.json" for name in ("bert", "roberta", "distilbert", "camembert", "albert", "xlm-roberta", "xlnet")
)
IGNORED_MODULES = frozenset({"Dropout"})
"""Does nothing outside training."""
JINA_TRANSFORMER = "custom_st.Transformer"
"""How Jina v3's own modules.json calls its encoder. It names code that stands in the folder, which the engine has no need of."""


def is_size(value: object) -> TypeGuard[int]:
    """Say whether a JSON value is a positive whole number; `true` is none, though Python counts it as 1."""
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


def read_module(root: Path, entry: dict[str, Any], *, over_tokens: bool = False) -> list[Module]:
    """Return the module that one entry of `modules.json` names; a list, empty for one that does nothing outside training.

    `over_tokens` is for models with a vector for every token, whose later modules read these.
    """
    folder = resolve_inside(root, str(entry.get("path", "")))
    return _read_typed(root / MODULES_FILE, str(entry.get("type", "")), folder, over_tokens=over_tokens)


def _read_typed(file: Path, named: str, folder: Path, *, over_tokens: bool = False) -> list[Module]:
    """Return the module of a dotted type in `folder`; `file` names the type."""
    kind = named.rsplit(".", 1)[-1]
    if named == JINA_TRANSFORMER and is_first_jina(read_object(folder / "config.json")):
        return [_read_transformer(folder)]
    if not named.startswith("sentence_transformers."):
        raise FolderError(f"{file}: module type {quote(named)} is not one that Munjang knows; no code is loaded")
    if kind in IGNORED_MODULES:
        return []
    reader = _READERS.get(kind)
    if reader is None:
        raise FolderError(f"{file}: module {quote(kind)} is not supported; known are {', '.join(sorted(_READERS))}")
    if kind in ("Dense", "Normalize"):
        _refuse_other_input(folder / "config.json", "token_embeddings" if over_tokens else "sentence_embedding")
    return [reader(folder)]


def read_transformer_settings(folder: Path) -> dict[str, Any]:
    """Return what sentence-transformers says about a transformer beside its configuration."""
    for name in TRANSFORMER_FILES:
        if (folder / name).is_file():
            return read_object(folder / name)
    return {}


def _read_transformer(folder: Path) -> TransformerModule:
    settings = read_transformer_settings(folder)
    config = read_object(folder / "config.json")
    refuse_remote_code(folder / "config.json", config)
    length = settings.get("max_seq_length")
    if length is not None and not is_size(length):
        raise FolderError(f"{folder}: max_seq_length is {quote(str(length))}, expected a positive whole number")
    return TransformerModule(folder=folder, config=config, max_length=length, lowercase=bool(settings.get("do_lower_case")))


def _read_pooling(folder: Path) -> PoolingModule:
    config = read_object(folder / "config.json")
    named = config.get("pooling_mode")
    if named is None:
        modes = tuple(mode for mode in POOLINGS if config.get(LEGACY_FLAGS[mode])) or ("mean",)
    else:
        found = [NEW_NAMES.get(str(mode)) for mode in (named if isinstance(named, list) else [named])]
        modes = tuple(mode for mode in found if mode)
        if len(modes) != len(found) or not modes:
            raise FolderError(f"{folder / 'config.json'}: pooling_mode {quote(str(named))} is not among {', '.join(NEW_NAMES)}")
    return PoolingModule(modes=modes, include_prompt=bool(config.get("include_prompt", True)))


def _read_dense(folder: Path) -> DenseModule:
    config = read_object(folder / "config.json")
    sizes = config.get("in_features"), config.get("out_features")
    if not all(is_size(size) for size in sizes):
        raise FolderError(f"{folder / 'config.json'}: in_features and out_features must be positive whole numbers, found {sizes}")
    name = config.get("activation_function") or "torch.nn.modules.activation.Tanh"
    activation = TORCH_ACTIVATIONS.get(str(name))
    if activation is None:
        raise FolderError(f"{folder / 'config.json'}: activation {quote(str(name))} is not one that Munjang knows; no code is loaded")
    return DenseModule(
        folder=folder,
        in_features=config["in_features"],
        out_features=config["out_features"],
        bias=bool(config.get("bias", True)),
        activation=activation,
        residual=bool(config.get("use_residual", False)),
    )


def _read_layer_norm(folder: Path) -> LayerNormModule:
    dimension = read_object(folder / "config.json").get("dimension")
    if not is_size(dimension):
        raise FolderError(f"{folder / 'config.json'}: 'dimension' must be a positive whole number")
    return LayerNormModule(folder=folder, dimension=dimension)


def _read_layer_mix(folder: Path) -> LayerMixModule:
    file = folder / "config.json"
    config = read_object(file)
    first, layers = config.get("layer_start", 4), config.get("num_hidden_layers", 12)
    if not is_size(layers) or isinstance(first, bool) or not isinstance(first, int) or not 0 <= first <= layers:
        raise FolderError(f"{file}: layer_start is {quote(str(first))} of num_hidden_layers {quote(str(layers))}, expected a layer of them")
    return LayerMixModule(folder=folder, first_layer=first, layers=layers)


def _read_router(folder: Path) -> RouterModule:
    file = next((folder / name for name in ROUTER_FILES if (folder / name).is_file()), folder / ROUTER_FILES[0])
    config = read_object(file)
    types, structure, settings = (config.get(key) for key in ("types", "structure", "parameters"))
    if not isinstance(types, dict) or not isinstance(structure, dict) or not structure or not isinstance(settings, dict | None):
        raise FolderError(f"{file}: expected the tables 'types', 'structure' and 'parameters'")
    if not all(isinstance(ids, list) and all(isinstance(id, str) and id in types for id in ids) for ids in structure.values()):
        raise FolderError(f"{file}: 'structure' must list modules that 'types' names")
    settings = settings or {}
    if settings.get("route_mappings"):
        raise FolderError(f"{file}: route_mappings do not run here; expected routes that are chosen by their names")
    if any(str(types[id]).rsplit(".", 1)[-1] in ("Router", "Asym") for ids in structure.values() for id in ids):
        raise FolderError(f"{file}: a route holds another Router, which does not run here")
    default = settings.get("default_route") or (next(iter(structure)) if settings.get("allow_empty_key", True) else None)
    if not isinstance(default, str) or default not in structure:
        raise FolderError(f"{file}: default_route is {quote(str(default))}, expected one of {quote(', '.join(structure))}")
    modules = {id: _read_typed(file, str(types[id]), resolve_inside(folder, id)) for ids in structure.values() for id in ids}
    return RouterModule({name: tuple(module for id in ids for module in modules[id]) for name, ids in structure.items()}, default)


def _read_static(folder: Path) -> StaticModule:
    config = read_object(folder / "config.json") if (folder / "config.json").is_file() else {}
    return StaticModule(folder=folder, normalize=bool(config.get("normalize", False)))


WORD_SETTINGS = "wordembedding_config.json"
SPACE_TOKENIZER = "WhitespaceTokenizer"


def _read_word_embeddings(folder: Path) -> StaticModule:
    config = read_object(folder / WORD_SETTINGS)
    name, length = str(config.get("tokenizer_class")).rsplit(".", 1)[-1], config.get("max_seq_length")
    if name != SPACE_TOKENIZER:
        raise FolderError(f"{folder / WORD_SETTINGS}: tokenizer_class {quote(name)} does not run here, expected {SPACE_TOKENIZER}")
    if length is not None and not is_size(length):
        raise FolderError(f"{folder / WORD_SETTINGS}: max_seq_length is {quote(str(length))}, expected a positive whole number")
    return StaticModule(folder=folder, words=WORDS_FILE, max_length=length)


def _read_bag_of_words(folder: Path) -> StaticModule:
    return StaticModule(folder=folder, words="config.json", counts=True)


def _read_normalize(_folder: Path) -> NormalizeModule:
    return NormalizeModule()


def _refuse_other_input(path: Path, expected: str) -> None:
    config = read_object(path) if path.is_file() else {}  # the legacy dialect has no file, often not even the folder
    for key in ("module_input_name", "module_output_name"):
        if config.get(key) not in (None, expected):
            reason = "; this is no sentence encoder" if expected == "sentence_embedding" else ""
            raise FolderError(f"{path}: {key} is {quote(str(config[key]))}, expected {quote(expected)}{reason}")


REWRITTEN_CODE: dict[str, frozenset[str]] = {
    "jina_embeddings_v3": frozenset({"XLMRobertaFlashConfig", "XLMRobertaLoRA", "XLMRobertaModel", "XLMRobertaForMaskedLM",
                                     "XLMRobertaForPreTraining", "XLMRobertaForSequenceClassification"}),
    "new": frozenset({"NewConfig", "NewModel", "NewForMaskedLM", "NewForSequenceClassification", "NewForTokenClassification",
                      "NewForQuestionAnswering", "NewForMultipleChoice"}),
    "nomic_bert": frozenset({"NomicBertConfig", "NomicBertModel", "NomicBertForPreTraining", "NomicBertForSequenceClassification",
                             "NomicBertForMultipleChoice", "NomicBertForQuestionAnswering", "NomicBertForTokenClassification"}),
    "eurobert": frozenset({"EuroBertConfig", "EuroBertModel", "EuroBertForMaskedLM", "EuroBertPreTrainedModel",
                           "EuroBertForSequenceClassification", "EuroBertForTokenClassification"}),
}  # fmt: skip
"""Families whose published folders name code by these classes, which the engine computes itself. Their code is never run either."""


def refuse_remote_code(path: Path, config: dict[str, Any]) -> None:
    """Refuse a configuration that asks to run code, unless it is code that the engine has no need of."""
    named = config.get("auto_map")
    known = REWRITTEN_CODE.get(find_family(config), frozenset())
    if isinstance(named, dict) and named and all(str(value).rsplit(".", 1)[-1] in known for value in named.values()):
        return
    if "auto_map" in config:
        raise FolderError(f"{path}: 'auto_map' asks to run code that comes with the model, which Munjang never does")


LEGACY_FLAGS: dict[Pooling, str] = {
    "cls": "pooling_mode_cls_token",
    "max": "pooling_mode_max_tokens",
    "mean": "pooling_mode_mean_tokens",
    "mean_sqrt_len": "pooling_mode_mean_sqrt_len_tokens",
    "weightedmean": "pooling_mode_weightedmean_tokens",
    "lasttoken": "pooling_mode_lasttoken",
}

NEW_NAMES: dict[str, Pooling] = {**{mode: mode for mode in POOLINGS}, "mean_sqrt_len_tokens": "mean_sqrt_len"}
"""The names that the new dialect's `pooling_mode` uses."""

_READERS: dict[str, Callable[[Path], Module]] = {
    "Transformer": _read_transformer,
    "Pooling": _read_pooling,
    "Dense": _read_dense,
    "LayerNorm": _read_layer_norm,
    "Normalize": _read_normalize,
    "StaticEmbedding": _read_static,
    "WordEmbeddings": _read_word_embeddings,
    "BoW": _read_bag_of_words,
    "WeightedLayerPooling": _read_layer_mix,
    "Router": _read_router,
    "Asym": _read_router,
}
