"""A model folder ↔ its parts in memory: the modules, the weights of the first one, the tokenizer's description.

A step of compression takes parts and gives parts; nothing is changed in place. Numbers keep the type that the file has, float32 or
float16. The weights of Dense and LayerNorm modules stay in their files and are copied.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load_file, save_file

from munjang.engine.folder import ModelFolder, read_folder, require_sentence_encoder
from munjang.engine.modules import Module, Pooling, StaticModule, TransformerModule
from munjang.engine.weights import SINGLE, find_weights
from munjang.engine.write_folder import write_json, write_modules
from munjang.errors import FolderError
from munjang.models.save import save_whole
from munjang.text.tokenizer import Tokenizer
from munjang.text.tokenizer_files import TokenizerFiles, read_tokenizer_files

STATIC_TABLES = ("embedding.weight", "embeddings")
"""What static models call their table."""


@dataclass(frozen=True)
class ModelParts:
    """What a sentence encoder's folder holds."""

    folder: ModelFolder
    tensors: Mapping[str, NDArray[Any]]
    """The weights of the module that reads token ids."""
    tokenizer: TokenizerFiles

    @property
    def base(self) -> TransformerModule | StaticModule:
        """The module that reads token ids."""
        found = self.folder.base
        assert isinstance(found, TransformerModule | StaticModule)  # what read_folder promises
        return found

    @property
    def word_table(self) -> str:
        """The name of the tensor with one row per piece."""
        if isinstance(self.base, StaticModule):
            name = next((name for name in STATIC_TABLES if name in self.tensors), None)
        else:
            name = next((name for name in self.tensors if name.endswith("embeddings.word_embeddings.weight")), None)
        if name is None:
            raise FolderError(f"{self.folder.path}: the weights hold no word embeddings")
        return name

    @property
    def width(self) -> int:
        """How many numbers one token's vector has."""
        if isinstance(self.base, StaticModule):
            return int(self.tensors[self.word_table].shape[1])
        return int(self.base.config.get("hidden_size") or self.base.config["dim"])

    def with_config(self, changed: Mapping[str, Any]) -> ModelParts:
        """Return the parts with another config.json."""
        base = self.base
        if isinstance(base, StaticModule):
            return self
        return self.with_modules((replace(base, config=dict(changed)), *self.folder.modules[1:]))

    def with_modules(self, modules: tuple[Module, ...]) -> ModelParts:
        """Return the parts with other modules."""
        return replace(self, folder=replace(self.folder, modules=modules))


def read_parts(path: Path, *, pooling: Pooling | None = None) -> ModelParts:
    """Read a sentence encoder's folder; `pooling` is for one that does not name it."""
    folder = read_folder(path, pooling=pooling)
    require_sentence_encoder(folder)
    base = folder.base
    assert isinstance(base, TransformerModule | StaticModule)  # what read_folder promises
    weights = find_weights(base.folder)
    tensors: dict[str, NDArray[Any]] = {}
    for name in weights:
        tensor = weights[name]
        tensors[name] = tensor.astype(np.float16) if weights.dtype(name) == "F16" else tensor
    return ModelParts(folder, tensors, read_tokenizer_files(base.folder))


def write_parts(parts: ModelParts, target: Path, *, half: bool = False) -> None:
    """Write a folder that Munjang and sentence-transformers load; `half` writes every number as float16."""
    save_whole(target, lambda place: _write(parts, place, half))


def _write(parts: ModelParts, place: Path, half: bool) -> None:
    folder, base = parts.folder, parts.base
    save_tensors(parts.tensors, place / SINGLE, half=half)
    if isinstance(base, TransformerModule):
        kept_as = "float16" if parts.tensors[parts.word_table].dtype == np.float16 or half else "float32"
        write_json(place / "config.json", {**base.config, "torch_dtype": kept_as})
    Tokenizer(parts.tokenizer).save(place)
    write_modules(
        place,
        folder.modules,
        width=parts.width,
        max_length=folder.max_length,
        lowercase=isinstance(base, TransformerModule) and base.lowercase,
        prompts=folder.prompts,
        default_prompt=folder.default_prompt,
        similarity=folder.similarity,
        truncate_dimension=folder.truncate_dimension,
    )
    if half:
        for path in sorted(place.glob(f"*_*/{SINGLE}")):
            save_tensors(load_file(path), path, half=True)


def save_tensors(tensors: Mapping[str, NDArray[Any]], path: Path, *, half: bool) -> None:
    """Write one safetensors file."""
    kept = {name: _kept(name, tensor, half) for name, tensor in tensors.items()}
    save_file(kept, path, metadata={"format": "pt"})


def _kept(name: str, tensor: NDArray[Any], half: bool) -> NDArray[Any]:
    if not half or tensor.dtype.kind != "f":
        return np.ascontiguousarray(tensor)
    with np.errstate(over="ignore"):  # looked for below, with the tensor's name
        small = np.ascontiguousarray(tensor, np.float16)
    if not np.isfinite(small).all():
        raise FolderError(f"tensor {name}: holds numbers above 65,504, which float16 cannot; keep float32")
    return small
