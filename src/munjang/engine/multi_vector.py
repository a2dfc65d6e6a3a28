"""A folder of a multi-vector model (late interaction, ColBERT) → what it says: one vector a token, projected, and which tokens count.

Three layouts are read: sentence-transformers 6 (`MultiVectorEncoder`: Transformer, Dense over tokens, MultiVectorMask, Normalize), PyLate
(`"model_type": "ColBERT"`, settings beside the prompts) and Stanford's (`HF_ColBERT`, `artifact.metadata`, the projection among the
encoder's weights). Nothing that a folder says can make code run.
"""

from __future__ import annotations

import string
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from munjang.engine.folder import MULTI_VECTOR_TYPES, SETTINGS_FILE, ModelFolder
from munjang.engine.jsonfile import read_json, read_object, resolve_inside
from munjang.engine.modules import DenseModule, LayerNormModule, Module, NormalizeModule, PoolingModule, TransformerModule
from munjang.engine.read_module import MODULES_FILE, is_size, read_module, read_transformer_settings, refuse_remote_code
from munjang.engine.weights import find_weights
from munjang.errors import FolderError, quote

MASK_MODULE = "MultiVectorMask"
STANFORD = "HF_ColBERT"
METADATA_FILE = "artifact.metadata"
CANONICAL_LENGTH = 32
"""Tokens of a query in the first ColBERT, where a folder does not say."""
_PYLATE_DENSE = "pylate.models.Dense.Dense"
_PYLATE_MARKS = ("query_prefix", "document_prefix", "query_length", "document_length", "do_query_expansion", "attend_to_expansion_tokens")


@dataclass(frozen=True)
class QueryExpansion:
    """Mask tokens that fill a query up to a length and are compared like its own tokens."""

    length: int
    is_fixed: bool
    """Whether longer queries are cut to the length."""
    is_attended: bool
    """Whether the query's own tokens attend to them."""
    token: str | None = None
    """By default the mask token."""


@dataclass(frozen=True)
class MultiVectorFolder:
    """What a multi-vector folder says about its model."""

    encoder: ModelFolder
    """The transformer, with a pooling that only a library's first stage uses."""
    head: tuple[Module, ...]
    """What each token's vector goes through: projections, and at last its normalisation."""
    prompts: dict[str, str]
    """By role, "query" and "document": texts that go before."""
    markers: dict[str, str]
    """By role: a token that goes before, as older layouts have it."""
    skip_words: tuple[str, ...] = ()
    skip_roles: tuple[str, ...] = ("document",)
    keep_ids: tuple[int, ...] | None = None
    query_length: int | None = None
    document_length: int | None = None
    expansion: QueryExpansion | None = None
    is_mean: bool = False
    """Whether the model divides a MaxSim by the number of the query's tokens."""


def is_multi_vector(path: Path) -> bool:
    """Say whether a folder holds a multi-vector model."""
    settings = read_object(path / SETTINGS_FILE) if (path / SETTINGS_FILE).is_file() else {}
    if settings.get("model_type") in MULTI_VECTOR_TYPES:
        return True
    return (path / "config.json").is_file() and STANFORD in _list_architectures(path)


def read_multi_vector(path: Path) -> MultiVectorFolder:
    """Describe the multi-vector model in a folder."""
    if not path.is_dir():
        raise FolderError(f"{path}: no such folder")
    if (path / MODULES_FILE).is_file():
        return _read_modules(path)
    if (path / "config.json").is_file() and STANFORD in _list_architectures(path):
        return _read_stanford(path)
    raise FolderError(f"{path}: no multi-vector model; expected {MODULES_FILE} with a {MASK_MODULE}, or a ColBERT folder")


def _read_modules(path: Path) -> MultiVectorFolder:
    settings = read_object(path / SETTINGS_FILE) if (path / SETTINGS_FILE).is_file() else {}
    listed = read_json(path / MODULES_FILE)
    if not isinstance(listed, list) or not all(isinstance(entry, dict) for entry in listed):
        raise FolderError(f"{path / MODULES_FILE}: expected a list of modules")
    is_pylate = settings.get("model_type") == "ColBERT"
    mask: dict[str, Any] | None = None
    modules: list[Module] = []
    for entry in listed:
        kind = str(entry.get("type", ""))
        if kind.startswith("sentence_transformers.") and kind.endswith(f".{MASK_MODULE}"):
            mask = read_object(resolve_inside(path, str(entry.get("path", ""))) / "config.json")
            continue
        named = {**entry, "type": "sentence_transformers.models.Dense"} if kind == _PYLATE_DENSE else entry
        modules += read_module(path, named, over_tokens=True)
    if mask is None and not is_pylate:
        raise FolderError(f"{path / MODULES_FILE}: has no {MASK_MODULE}, so it is no multi-vector model")
    if not modules or not isinstance(modules[0], TransformerModule):
        raise FolderError(f"{path / MODULES_FILE}: the first module must be a Transformer")
    odd = next((each for each in modules[1:] if not isinstance(each, DenseModule | LayerNormModule | NormalizeModule)), None)
    if odd is not None:
        raise FolderError(f"{path / MODULES_FILE}: found a {type(odd).__name__} behind the Transformer, expected Dense and Normalize")
    own = read_transformer_settings(modules[0].folder)
    head = (*modules[1:], NormalizeModule()) if is_pylate and mask is None else tuple(modules[1:])
    words = (mask or {}).get("skiplist_words") if mask is not None else settings.get("skiplist_words", list(string.punctuation))
    knobs = {**_translate_pylate(settings), **own}
    markers = {role: str(settings[f"{role}_prefix"] or "") for role in ("query", "document") if f"{role}_prefix" in settings}
    return _describe(path, modules[0], head, settings, knobs, mask or {}, words, markers)


def _translate_pylate(settings: dict[str, Any]) -> dict[str, Any]:
    """Return what PyLate's settings say in the words of sentence-transformers 6."""
    knobs = {key: settings[key] for key in ("query_length", "document_length", "query_expansion") if settings.get(key) is not None}
    if "query_expansion" in settings or not any(mark in settings for mark in _PYLATE_MARKS):
        return knobs
    if settings.get("do_query_expansion") is False:
        return knobs
    attends = settings.get("attend_to_expansion_tokens", settings.get("attend_to_mask_tokens"))
    length = knobs.pop("query_length", None) or CANONICAL_LENGTH
    return {**knobs, "query_expansion": {"strategy": "fixed", "attend": bool(attends), "length": length}}


def _read_stanford(path: Path) -> MultiVectorFolder:
    config = read_object(path / "config.json")
    refuse_remote_code(path / "config.json", config)
    about = read_object(path / METADATA_FILE) if (path / METADATA_FILE).is_file() else {}
    weights = find_weights(path)
    if "linear.weight" not in weights or len(weights.shape("linear.weight")) != 2:
        raise FolderError(f"{path}: expected the projection linear.weight among the weights")
    wide, narrow = weights.shape("linear.weight")[::-1]
    dense = DenseModule(folder=path, in_features=wide, out_features=narrow, bias=False, activation="identity")
    markers = {"query": about.get("query_token_id") or "[unused0]", "document": about.get("doc_token_id") or "[unused1]"}
    attends = bool(about.get("attend_to_mask_tokens"))
    knobs = {
        "document_length": about.get("doc_maxlen"),
        "query_expansion": {"strategy": "fixed", "attend": attends, "length": about.get("query_maxlen") or CANONICAL_LENGTH},
    }
    words = list(string.punctuation) if about.get("mask_punctuation", True) else []
    base = TransformerModule(folder=path, config=config, max_length=None)
    return _describe(path, base, (dense, NormalizeModule()), {}, knobs, {}, words, markers)


def _describe(
    path: Path,
    base: TransformerModule,
    head: tuple[Module, ...],
    settings: dict[str, Any],
    knobs: dict[str, Any],
    mask: dict[str, Any],
    words: object,
    markers: dict[str, str],
) -> MultiVectorFolder:
    lengths = {name: knobs.get(name) for name in ("query_length", "document_length")}
    for name, value in lengths.items():
        if value is not None and not is_size(value):
            raise FolderError(f"{path}: {name} is {quote(str(value))}, expected a positive whole number")
    prompts = settings.get("prompts") or {}
    if not isinstance(prompts, dict) or not all(isinstance(text, str | None) for text in prompts.values()):
        raise FolderError(f"{path / SETTINGS_FILE}: 'prompts' must be a table of strings")
    said = {role: text.removeprefix(markers.get(role, "")) for role, text in prompts.items() if text}
    roles = mask.get("skiplist_tasks") or ["document"]
    encoder = ModelFolder(path=path, kind="sentence", modules=(base, PoolingModule(modes=("mean",))), max_length=base.max_length)
    return MultiVectorFolder(
        encoder=encoder,
        head=head,
        prompts=said,
        markers={role: marker for role, marker in markers.items() if marker.strip()},
        skip_words=_check_words(path, words),
        skip_roles=tuple(map(str, [roles] if isinstance(roles, str) else roles)),
        keep_ids=None if mask.get("keep_only_token_ids") is None else tuple(map(int, mask["keep_only_token_ids"])),
        query_length=lengths["query_length"],
        document_length=lengths["document_length"],
        expansion=_read_expansion(path, knobs.get("query_expansion")),
        is_mean=settings.get("similarity_fn_name") == "meanmaxsim",
    )


def _check_words(path: Path, words: object) -> tuple[str, ...]:
    if words is None:
        return ()
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
        raise FolderError(f"{path}: skiplist_words must be a list of strings")
    return tuple(words)


def _read_expansion(path: Path, said: object) -> QueryExpansion | None:
    if said is None:
        return None
    if not isinstance(said, dict) or said.get("strategy") not in ("fixed", "min") or not is_size(said.get("length")):
        raise FolderError(f"{path}: query_expansion must be a table with a strategy (fixed or min) and a length, found {quote(str(said))}")
    token = said.get("token")
    return QueryExpansion(said["length"], said["strategy"] == "fixed", bool(said.get("attend")), None if token is None else str(token))


def _list_architectures(path: Path) -> list[str]:
    named = read_object(path / "config.json").get("architectures") or []
    return [str(name) for name in named] if isinstance(named, list) else []


def as_multi_vector(folder: ModelFolder) -> MultiVectorFolder:
    """Return any sentence encoder as a multi-vector model, untrained for it: its own token vectors, normalised."""
    pooled = replace(folder, modules=(folder.modules[0], PoolingModule(modes=("mean",))))
    return MultiVectorFolder(encoder=pooled, head=(NormalizeModule(),), prompts=dict(folder.prompts), markers={})
