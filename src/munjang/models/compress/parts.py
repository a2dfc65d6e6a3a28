"""A model folder ↔ its parts in memory: the modules, the weights of the first one, the tokenizer's description.

A step of compression takes parts and gives parts; nothing is changed in place. Numbers keep the type that the file has, float32 or
float16. The weights of Dense and LayerNorm modules stay in their files and are copied.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load_file, save_file

from munjang.atomic import atomic_folder
from munjang.engine.families import FAMILIES
from munjang.engine.folder import ModelFolder, read_folder, require_one_way, require_sentence_encoder
from munjang.engine.modules import DenseModule, Module, NormalizeModule, StaticModule, TransformerModule
from munjang.engine.weights import SINGLE, find_weights
from munjang.engine.write_folder import write_json, write_modules
from munjang.errors import FolderError, UsageError, quote
from munjang.models.sentence_encoder import SentenceEncoder
from munjang.text.tokenizer import Tokenizer
from munjang.text.tokenizer_files import TokenizerFiles, read_tokenizer_files
from munjang.text.validate_texts import validate_texts
from munjang.types import Pooling, Vectors

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
    require_one_way(folder, "compressing")
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
    with atomic_folder(target) as place:
        _write(parts, place, half)


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
    kept = {name: _convert(name, tensor, half) for name, tensor in tensors.items()}
    save_file(kept, path, metadata={"format": "pt"})


def _convert(name: str, tensor: NDArray[Any], half: bool) -> NDArray[Any]:
    if not half or tensor.dtype.kind != "f":
        return np.ascontiguousarray(tensor)
    with np.errstate(over="ignore"):  # looked for below, with the tensor's name
        small = np.ascontiguousarray(tensor, np.float16)
    if not np.isfinite(small).all():
        raise FolderError(f"tensor {name}: holds numbers above 65,504, which float16 cannot; keep float32")
    return small


FITTED = 10_000
"""Texts that directions are taken from, spread over all that are given; more hardly move them."""


@dataclass(frozen=True)
class DenseProjection:
    """y = weight @ x + bias."""

    weight_ED: Vectors
    bias_E: Vectors
    kept: float
    """The share of the vectors' squared length (of their variance, when centred) that is left."""


def fit_projection(vectors_ND: Vectors, *, dimension: int, center: bool = False) -> DenseProjection:
    """Return the projection onto the `dimension` directions in which the vectors are longest (vary most, when centred)."""
    count, width = vectors_ND.shape
    if not 1 <= dimension < width:
        raise UsageError(f"dimension={dimension}, expected 1 to {width - 1}: the model's vectors have {width}")
    if count < dimension:
        raise UsageError(f"{count:,} texts for {dimension} dimensions, expected at least as many texts as dimensions")
    wide_ND = vectors_ND.astype(np.float64)
    mean_D = wide_ND.mean(axis=0) if center else np.zeros(width)
    spread_DD = (wide_ND - mean_D).T @ (wide_ND - mean_D)
    sizes_D, directions_DD = np.linalg.eigh(spread_DD)
    weight_ED = directions_DD[:, ::-1].T[:dimension]
    # a direction has no sign of its own; its largest number is made positive so that equal vectors give an equal model
    largest_E = np.take_along_axis(weight_ED, np.abs(weight_ED).argmax(axis=1)[:, None], axis=1)
    weight_ED = weight_ED * np.where(largest_E < 0, -1, 1)
    kept = float(sizes_D[::-1][:dimension].sum() / max(sizes_D.sum(), 1e-30))
    return DenseProjection(weight_ED.astype(np.float32), (-weight_ED @ mean_D).astype(np.float32), kept)


def reduce_dimension(folder: Path, target: Path, texts: Sequence[str], *, dimension: int, center: bool = False) -> float:
    """Write `folder`'s model to `target` with shorter vectors; return the share of their squared length that is left."""
    texts, parts = validate_texts(texts), read_parts(folder)
    projection = fit_projection(sample_vectors(SentenceEncoder.load(folder), texts), dimension=dimension, center=center)
    with add_projection(parts, projection) as shorter:
        write_parts(shorter, target)
    return projection.kept


def sample_vectors(model: SentenceEncoder, texts: Sequence[str]) -> Vectors:
    """Return the vectors of the texts, or of FITTED of them, at the model's full length."""
    step = -(-len(texts) // FITTED) or 1
    return model.encode_with_report(texts[::step], dimensions=model.engine.dimension).vectors


@contextmanager
def add_projection(parts: ModelParts, projection: DenseProjection) -> Iterator[ModelParts]:
    """Yield the parts with the projection as a Dense at the end; its weights are on disk meanwhile, to be copied."""
    out, width = projection.weight_ED.shape
    has_bias = bool(projection.bias_E.any())
    with TemporaryDirectory(prefix="munjang-") as place:
        tensors = {"linear.weight": projection.weight_ED} | ({"linear.bias": projection.bias_E} if has_bias else {})
        save_tensors(tensors, Path(place) / SINGLE, half=False)
        dense = DenseModule(folder=Path(place), in_features=width, out_features=out, bias=has_bias, activation="identity")
        last = parts.folder.modules[-1]
        again = (NormalizeModule(),) if isinstance(last, NormalizeModule) or getattr(last, "normalize", False) else ()
        whole = replace(parts, folder=replace(parts.folder, truncate_dimension=None))
        yield whole.with_modules((*parts.folder.modules, dense, *again))


def keep_layers(folder: Path, target: Path, *, layers: Sequence[int]) -> None:
    """Write `folder`'s model to `target` with these layers, counted from 0, in rising order."""
    write_parts(keep_layers_of(read_parts(folder), layers), target)


def keep_layers_of(parts: ModelParts, layers: Sequence[int]) -> ModelParts:
    """Return the parts with these layers only."""
    base = parts.base
    if not isinstance(base, TransformerModule):
        raise UsageError(f"{parts.folder.path}: a static model has no layers to choose from")
    family = str(base.config.get("model_type"))
    if family not in FAMILIES:
        raise FolderError(f"{base.folder / 'config.json'}: model_type {quote(family)} is unknown; known are {', '.join(FAMILIES)}")
    names = FAMILIES[family]
    if not names.layers_alike:
        raise UsageError(f"{base.folder}: the layers of a {family} encoder are not alike, so none can be left out")
    count_name = names.layers_key
    count = int(base.config[count_name])
    if not layers or list(layers) != sorted(set(layers)) or layers[0] < 0 or layers[-1] >= count:
        listed = ", ".join(map(str, layers))
        raise UsageError(f"layers {listed}: the model has {count} layers, expected numbers from 0 to {count - 1} in rising order")
    tensors = _renumber_layers(parts.tensors, names.layer, {old: new for new, old in enumerate(layers)})
    return replace(parts, tensors=tensors).with_config({**base.config, count_name: len(layers)})


def spread_layers(count: int, wanted: int) -> list[int]:
    """Return `wanted` layers of `count`, evenly spread, the first and the last among them.

    >>> spread_layers(12, 6)
    [0, 2, 4, 7, 9, 11]
    """
    if not 1 <= wanted <= count:
        raise UsageError(f"{wanted} layers of {count}, expected 1 to {count}")
    return [count - 1] if wanted == 1 else [round(place * (count - 1) / (wanted - 1)) for place in range(wanted)]


def _renumber_layers(tensors: Mapping[str, NDArray[Any]], pattern: str, new_number: Mapping[int, int]) -> dict[str, NDArray[Any]]:
    """Drop the tensors of layers without a new number, and rename those of the others."""
    before, after = pattern.split("{}")
    layer = re.compile(rf"((?:^|.*\.){re.escape(before)})(\d+)({re.escape(after)}.*)")
    kept: dict[str, NDArray[Any]] = {}
    for name, tensor in tensors.items():
        found = layer.fullmatch(name)
        if found is None:
            kept[name] = tensor
        elif int(found[2]) in new_number:
            kept[f"{found[1]}{new_number[int(found[2])]}{found[3]}"] = tensor
    return kept
