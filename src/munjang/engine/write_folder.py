"""A typed description of a model → the small files of a sentence-transformers folder, in the dialect that every reader accepts.

That is the legacy one: dotted types under `sentence_transformers.models`, boolean pooling flags, `max_seq_length` in
`sentence_bert_config.json`. Weights of the transformer and the tokenizer are written by others; Dense and LayerNorm weights are copied.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from munjang.engine.folder import SETTINGS_FILE
from munjang.engine.modules import (
    POOLINGS,
    TORCH_NAMES,
    DenseModule,
    LayerMixModule,
    LayerNormModule,
    Module,
    NormalizeModule,
    PoolingModule,
    StaticModule,
    TransformerModule,
)
from munjang.engine.read_module import LEGACY_FLAGS, MODULES_FILE, NEW_NAMES
from munjang.engine.weights import SINGLE
from munjang.types import Metric, Pooling


def write_modules(
    target: Path,
    modules: Sequence[Module],
    *,
    width: int,
    max_length: int | None,
    lowercase: bool = False,
    prompts: Mapping[str, str] | None = None,
    default_prompt: str | None = None,
    similarity: Metric = "cosine",
    truncate_dimension: int | None = None,
) -> None:
    """Write modules.json and one folder per module; `width` is the token vectors' width."""
    listed = []
    for number, module in enumerate(modules):
        kind = _KINDS[type(module)]
        path = "" if isinstance(module, TransformerModule | StaticModule) else f"{number}_{kind}"
        listed.append({"idx": number, "name": str(number), "path": path, "type": f"sentence_transformers.models.{kind}"})
        width = _write_module(target / path, module, width, max_length, lowercase)
    write_json(target / MODULES_FILE, listed)
    settings: dict[str, Any] = {
        "__version__": {"sentence_transformers": "5.0.0"},
        "prompts": dict(prompts or {}),
        "default_prompt_name": default_prompt,
        "similarity_fn_name": similarity,
    }
    if truncate_dimension is not None:
        settings["truncate_dim"] = truncate_dimension
    write_json(target / SETTINGS_FILE, settings)


def write_json(path: Path, value: Any) -> None:
    """Write one JSON file, readable by people."""
    path.write_text(json.dumps(value, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")


def _write_module(folder: Path, module: Module, width: int, max_length: int | None, lowercase: bool) -> int:
    folder.mkdir(parents=True, exist_ok=True)
    config: dict[str, Any]
    if isinstance(module, TransformerModule):
        write_json(folder / "sentence_bert_config.json", {"max_seq_length": max_length, "do_lower_case": lowercase})
    elif isinstance(module, PoolingModule):
        flags = {LEGACY_FLAGS[mode]: mode in module.modes for mode in LEGACY_ORDER}
        config = {"word_embedding_dimension": width, **flags, "include_prompt": module.include_prompt}
        if module.modes != tuple(mode for mode in POOLINGS if mode in module.modes):  # an order that flags cannot say
            config["pooling_mode"] = [_NEW_NAMES.get(mode, mode) for mode in module.modes]
        write_json(folder / "config.json", config)
        return width * len(module.modes)
    elif isinstance(module, DenseModule):
        config = {"in_features": module.in_features, "out_features": module.out_features, "bias": module.bias}
        config["activation_function"] = TORCH_NAMES[module.activation]
        if module.residual:
            config["use_residual"] = True
        write_json(folder / "config.json", config)
        _copy_weights(module.folder, folder)
        return module.out_features
    elif isinstance(module, LayerMixModule):
        config = {"word_embedding_dimension": width, "layer_start": module.first_layer, "num_hidden_layers": module.layers}
        write_json(folder / "config.json", config)
        _copy_weights(module.folder, folder)
    elif isinstance(module, LayerNormModule):
        write_json(folder / "config.json", {"dimension": module.dimension})
        _copy_weights(module.folder, folder)
    return width


def _copy_weights(source: Path, target: Path) -> None:
    if source.resolve() != target.resolve():
        shutil.copyfile(source / SINGLE, target / SINGLE)


LEGACY_ORDER: tuple[Pooling, ...] = ("cls", "mean", "max", "mean_sqrt_len", "weightedmean", "lasttoken")
"""The order in which the flags stand in the file."""

_NEW_NAMES = {mode: name for name, mode in NEW_NAMES.items()}

_KINDS: dict[type[Module], str] = {
    TransformerModule: "Transformer",
    PoolingModule: "Pooling",
    DenseModule: "Dense",
    LayerNormModule: "LayerNorm",
    NormalizeModule: "Normalize",
    StaticModule: "StaticEmbedding",
    LayerMixModule: "WeightedLayerPooling",
}
