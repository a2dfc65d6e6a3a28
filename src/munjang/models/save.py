"""A loaded model → a folder on disk that every reader of the format accepts.

The folder appears whole or not at all: it is written beside its place under a temporary name, synced, and renamed.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from safetensors import SafetensorError

from munjang.engine.activations import TORCH_NAMES
from munjang.engine.folder import ModelFolder
from munjang.engine.modules import Activation, StaticModule, TransformerModule
from munjang.engine.weights import INDEX, SINGLE, find_weights
from munjang.engine.write_folder import write_json, write_modules
from munjang.errors import NoSpace, UsageError
from munjang.text.tokenizer import Tokenizer
from munjang.whole_file import folder_beside, is_full, make_folder, sync, sync_folder

SAVED_AS = "4.0.1"
"""The version of sentence-transformers whose dialect cross-encoders are written in: every later one reads it."""


def save_folder(folder: ModelFolder, tokenizer: Tokenizer, target: Path, *, width: int, max_length: int | None) -> None:
    """Write `folder`'s sentence encoder to `target`, which must not hold anything else."""
    save_whole(target, lambda place: _write(folder, tokenizer, place, width=width, max_length=max_length))


def save_cross_folder(folder: ModelFolder, tokenizer: Tokenizer, target: Path, *, max_length: int, activation: Activation) -> None:
    """Write `folder`'s cross-encoder to `target`, which must not hold anything else."""

    def write(place: Path) -> None:
        base = folder.base
        assert isinstance(base, TransformerModule)  # a cross-encoder always has one
        _copy_weights(base.folder, place)
        settings = {"activation_fn": TORCH_NAMES[activation], "version": SAVED_AS}
        write_json(place / "config.json", {**base.config, "sentence_transformers": settings})
        save_pair_tokenizer(tokenizer, base.config, place, max_length=max_length)

    save_whole(target, write)


def save_pair_tokenizer(tokenizer: Tokenizer, config: Mapping[str, Any], place: Path, *, max_length: int | None = None) -> None:
    """Write a cross-encoder's tokenizer so that every reader gives the model the segments that it was trained with."""
    tokenizer.save(place, max_length=max_length)
    if tokenizer.uses_type_ids and int(config.get("type_vocab_size") or 0) > 1:
        # transformers leaves segments out unless they are named, and scores differ
        path = place / "tokenizer_config.json"
        names = {"model_input_names": ["input_ids", "token_type_ids", "attention_mask"]}
        write_json(path, json.loads(path.read_text(encoding="utf-8")) | names)


def save_whole(target: Path, write: Callable[[Path], None]) -> None:
    """Let `write` fill a folder that appears at `target` whole or not at all."""
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise UsageError(f"{target}: exists already and is not empty; choose another name, or remove it first")
    temporary: Path | None = None
    try:
        make_folder(target.parent)
        temporary = folder_beside(target)
        write(temporary)
        sync_folder(temporary)
        temporary.replace(target)
        sync(target.parent)
    except (OSError, SafetensorError) as error:
        if is_full(error):
            raise NoSpace(f"{target}: the disk is full; nothing was written") from error
        raise
    finally:
        if temporary is not None:
            shutil.rmtree(temporary, ignore_errors=True)


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


def _copy_weights(source: Path, target: Path) -> None:
    for file in find_weights(source).files:
        shutil.copyfile(file, target / file.name)
    if (source / INDEX).is_file() and not (source / SINGLE).is_file():
        shutil.copyfile(source / INDEX, target / INDEX)
