"""A loaded model → a folder on disk that every reader of the format accepts.

The folder appears whole or not at all.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from munjang.atomic import atomic_folder
from munjang.engine.folder import ModelFolder, list_model_files
from munjang.engine.modules import TORCH_NAMES, Activation, StaticModule, TransformerModule
from munjang.engine.weights import INDEX, SINGLE, find_weights
from munjang.engine.write_folder import write_json, write_modules
from munjang.text.tokenizer import Tokenizer

SAVED_AS = "4.0.1"
"""The version of sentence-transformers whose dialect cross-encoders are written in: every later one reads it."""


def save_folder(folder: ModelFolder, tokenizer: Tokenizer, target: Path, *, width: int, max_length: int | None) -> None:
    """Write `folder`'s sentence encoder to `target`, which must not hold anything else."""
    with atomic_folder(target) as place:
        if folder.routes:
            _copy_routes(folder, place)
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


def _copy_routes(folder: ModelFolder, target: Path) -> None:
    """Copy a folder whose routes have modules of their own as it is; nothing of it can have been changed."""
    for file in list_model_files(folder):
        place = target / file.relative_to(folder.path)
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, place)


def _copy_weights(source: Path, target: Path) -> None:
    for file in find_weights(source).files:
        shutil.copyfile(file, target / file.name)
    if (source / INDEX).is_file() and not (source / SINGLE).is_file():
        shutil.copyfile(source / INDEX, target / INDEX)
