"""A loaded model → a folder on disk that every reader of the format accepts. The folder appears whole or not at all.

A multi-vector model is written in the layout of sentence-transformers 6, whatever layout it was read from. A marker token of an older
layout becomes a special token of the tokenizer and the beginning of its role's prompt, which sentence-transformers reads as that one token;
`query_prefix` and `document_prefix` say so to Munjang and PyLate.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from munjang.atomic import atomic_folder
from munjang.engine.folder import SETTINGS_FILE, ModelFolder, list_model_files
from munjang.engine.modules import TORCH_NAMES, Activation, DenseModule, LayerNormModule, Module, StaticModule, TransformerModule
from munjang.engine.multi_vector import MASK_MODULE, MultiVectorFolder
from munjang.engine.read_module import MODULES_FILE
from munjang.engine.weights import INDEX, SINGLE, find_weights
from munjang.engine.write_folder import write_json, write_modules
from munjang.text.tokenizer import Tokenizer

SAVED_AS = "4.0.1"
"""The version of sentence-transformers whose dialect cross-encoders are written in: every later one reads it."""


def save_folder(folder: ModelFolder, tokenizer: Tokenizer, target: Path, *, width: int, max_length: int | None) -> None:
    """Write `folder`'s sentence encoder to `target`, which must not hold anything else."""
    with atomic_folder(target) as place:
        if folder.routes or (isinstance(folder.base, StaticModule) and folder.base.words):
            _copy_as_it_is(folder, place)
        else:
            _write(folder, tokenizer, place, width=width, max_length=max_length)


def save_cross_folder(folder: ModelFolder, tokenizer: Tokenizer, target: Path, *, max_length: int, activation: Activation) -> None:
    """Write `folder`'s cross-encoder to `target`, which must not hold anything else."""
    base = folder.base
    assert isinstance(base, TransformerModule)  # a cross-encoder always has one
    with atomic_folder(target) as place:
        _copy_weights(base.folder, place)
        settings = {"activation_fn": TORCH_NAMES[activation], "version": SAVED_AS}
        write_json(place / "config.json", {**base.config, "sentence_transformers": settings})
        save_pair_tokenizer(tokenizer, base.config, place, max_length=max_length)


def save_pair_tokenizer(tokenizer: Tokenizer, config: Mapping[str, Any], place: Path, *, max_length: int | None = None) -> None:
    """Write a cross-encoder's tokenizer so that every reader gives the model the segments that it was trained with."""
    tokenizer.save(place, max_length=max_length)
    if tokenizer.uses_type_ids and int(config.get("type_vocab_size") or 0) > 1:
        # transformers leaves segments out unless they are named, and scores differ
        path = place / "tokenizer_config.json"
        names = {"model_input_names": ["input_ids", "token_type_ids", "attention_mask"]}
        write_json(path, json.loads(path.read_text(encoding="utf-8")) | names)


def _write(folder: ModelFolder, tokenizer: Tokenizer, target: Path, *, width: int, max_length: int | None) -> None:
    base = folder.base
    assert isinstance(base, TransformerModule | StaticModule)  # what read_folder promises
    _copy_weights(base.folder, target)
    if isinstance(base, TransformerModule):
        write_json(target / "config.json", base.config)
    elif (base.folder / "config.json").is_file():
        shutil.copyfile(base.folder / "config.json", target / "config.json")
    tokenizer.save(target, max_length=max_length)
    write_modules(
        target,
        folder.modules,
        width=width,
        max_length=max_length,
        lowercase=isinstance(base, TransformerModule) and base.lowercase,
        prompts=folder.prompts,
        default_prompt=folder.default_prompt,
        similarity=folder.similarity,
        truncate_dimension=folder.truncate_dimension,
    )


def _copy_as_it_is(folder: ModelFolder, target: Path) -> None:
    """Copy a folder whose routes have modules of their own, or whose words are no tokenizer's; nothing of it can have been changed."""
    for file in list_model_files(folder):
        place = target / file.relative_to(folder.path)
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, place)


def _copy_weights(source: Path, target: Path) -> None:
    for file in find_weights(source).files:
        shutil.copyfile(file, target / file.name)
    if (source / INDEX).is_file() and not (source / SINGLE).is_file():
        shutil.copyfile(source / INDEX, target / INDEX)


_BASE = "sentence_transformers.base.modules"
_TYPES = {
    "Transformer": f"{_BASE}.transformer.Transformer",
    "Dense": f"{_BASE}.dense.Dense",
    "LayerNorm": "sentence_transformers.sentence_transformer.modules.layer_norm.LayerNorm",
    "Normalize": f"{_BASE}.normalize.Normalize",
    MASK_MODULE: "sentence_transformers.multi_vector_encoder.modules.multi_vector_mask.MultiVectorMask",
}
_TOKENS = "token_embeddings"


def save_multi_vector(folder: MultiVectorFolder, tokenizer: Tokenizer, target: Path, *, max_length: int | None) -> None:
    """Write `folder`'s model to `target`, which must not hold anything else."""
    base = folder.encoder.base
    assert isinstance(base, TransformerModule)  # a multi-vector model always has one
    with atomic_folder(target) as place:
        _copy_encoder(base.folder, place)
        config = {key: value for key, value in base.config.items() if key != "architectures"}
        write_json(place / "config.json", config)
        tokenizer.save(place, max_length=max_length)
        write_multi_vector(place, folder)


def write_multi_vector(place: Path, folder: MultiVectorFolder) -> None:
    """Write the small files around an encoder and a tokenizer that are there already, and the weights of the projection."""
    base = folder.encoder.base
    assert isinstance(base, TransformerModule)
    settings: dict[str, Any] = {
        "transformer_task": "feature-extraction",
        "modality_config": {"text": {"method": "forward", "method_output_name": "last_hidden_state"}},
        "module_output_name": _TOKENS,
    }
    if folder.query_length is not None:
        settings["query_length"] = folder.query_length
    if folder.document_length is not None:
        settings["document_length"] = folder.document_length
    if (filled := folder.expansion) is not None:
        strategy = "fixed" if filled.is_fixed else "min"
        settings["query_expansion"] = {"strategy": strategy, "attend": filled.is_attended, "token": filled.token, "length": filled.length}
    if base.lowercase:
        settings["do_lower_case"] = True
    write_json(place / "sentence_bert_config.json", settings)
    listed = [_entry(0, "Transformer", "")]
    *projections, last = folder.head
    for module in (*projections, None, last):
        number = len(listed)
        kind = MASK_MODULE if module is None else type(module).__name__.removesuffix("Module")
        listed.append(_entry(number, kind, f"{number}_{kind}"))
        _write_module(place / f"{number}_{kind}", module, folder)
    write_json(place / MODULES_FILE, listed)
    roles = {role: folder.markers.get(role, "") + folder.prompts.get(role, "") for role in ("query", "document")}
    prefixes = {f"{role}_prefix": marker for role, marker in folder.markers.items()}
    write_json(
        place / SETTINGS_FILE,
        {
            "__version__": {"sentence_transformers": "6.0.0"},
            "model_type": "MultiVectorEncoder",
            "prompts": roles,
            "default_prompt_name": None,
            "similarity_fn_name": "meanmaxsim" if folder.is_mean else "maxsim",
            **prefixes,
            **({"query_expansion": settings.get("query_expansion")} if prefixes else {}),
        },
    )


def _entry(number: int, kind: str, path: str) -> dict[str, Any]:
    return {"idx": number, "name": str(number), "path": path, "type": _TYPES[kind]}


def _write_module(place: Path, module: Module | None, folder: MultiVectorFolder) -> None:
    place.mkdir()
    config: dict[str, Any] = {"module_input_name": _TOKENS, "module_output_name": _TOKENS}
    if module is None:
        words = {"skiplist_words": list(folder.skip_words), "skiplist_tasks": list(folder.skip_roles)}
        write_json(place / "config.json", {**words, "keep_only_token_ids": None if folder.keep_ids is None else list(folder.keep_ids)})
    elif isinstance(module, DenseModule):
        sizes = {"in_features": module.in_features, "out_features": module.out_features, "bias": module.bias}
        activation = {"activation_function": TORCH_NAMES[module.activation]}
        residual = {"use_residual": True} if module.residual else {}
        write_json(place / "config.json", {**sizes, **activation, **config, **residual})
        _copy_projection(module, place)
    elif isinstance(module, LayerNormModule):
        write_json(place / "config.json", {"dimension": module.dimension, **config})
        shutil.copyfile(module.folder / SINGLE, place / SINGLE)
    else:
        write_json(place / "config.json", config)


def _copy_projection(module: DenseModule, place: Path) -> None:
    """Copy a projection's weights; in Stanford's layout they lie among the encoder's."""
    from safetensors.numpy import save_file

    weights = find_weights(module.folder)
    names = [name for name in ("linear.weight", "linear.bias", "residual.weight") if name in weights]
    save_file({name: weights[name] for name in names}, place / SINGLE)


def _copy_encoder(source: Path, place: Path) -> None:
    for file in find_weights(source).files:
        shutil.copyfile(file, place / file.name)
    for index in source.glob("*.safetensors.index.json"):
        shutil.copyfile(index, place / index.name)
