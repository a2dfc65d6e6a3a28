"""A model's folder → what there is to know about it, and whether it is sound."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from munjang.engine.modules import TransformerModule
from munjang.engine.weights import find_weights
from munjang.errors import MunjangError
from munjang.models.registry import Found
from munjang.models.sentence_encoder import SentenceEncoder

CARD = "README.md"
CARD_BYTES = 65_536
"""The licence stands in the first lines of a card."""

PROBE = ("오늘은 비가 온다", "It is raining today", "")
BLOCK = 1 << 20


@dataclass(frozen=True)
class ModelFacts:
    """What `munjang models show` says."""

    name: str
    origin: str
    path: str
    family: str
    dimension: int
    layers: int
    heads: int
    hidden_size: int
    vocabulary: int
    max_length: int | None
    similarity: str
    parameters: int
    bytes: int
    prompts: dict[str, str]
    default_prompt: str | None
    licence: str | None
    fingerprint: str


@dataclass(frozen=True)
class ModelCheck:
    """What `munjang models check` found."""

    name: str
    path: str
    ok: bool
    problem: str | None
    tensors: int
    sha256: dict[str, str] = field(default_factory=dict)


def describe(found: Found) -> ModelFacts:
    """Load a model and say what it is."""
    model = SentenceEncoder.load(found.path)
    base = model.folder.base
    weights = find_weights(base.folder) if hasattr(base, "folder") else {}
    return ModelFacts(
        name=found.name,
        origin=found.origin,
        path=str(found.path),
        family=str(base.config.get("model_type", "unknown")) if isinstance(base, TransformerModule) else "static",
        dimension=model.dimension,
        layers=model.engine.layers,
        heads=model.engine.heads,
        hidden_size=model.engine.hidden_size,
        vocabulary=model.tokenizer.vocabulary_size,
        max_length=model.max_length,
        similarity=model.folder.similarity,
        parameters=sum(int(weights[name].size) for name in weights),
        bytes=sum(file.stat().st_size for file in _files(found.path)),
        prompts=model.prompts,
        default_prompt=model.folder.default_prompt,
        licence=licence_of(found.path),
        fingerprint=model.fingerprint,
    )


def check(found: Found) -> ModelCheck:
    """Load a model, read every tensor, encode a probe, and hash every file."""
    tensors = 0
    problem = None
    try:
        model = SentenceEncoder.load(found.path)
        for module in model.folder.modules:
            folder = getattr(module, "folder", None)
            weights = find_weights(folder) if folder is not None else {}
            tensors += sum(weights[name].size >= 0 for name in weights)  # taking a tensor checks that it is finite
        if not np.isfinite(model.encode(PROBE)).all():
            problem = f"{found.path}: a probe sentence got a vector that is not finite"
    except MunjangError as error:
        problem = str(error)
    hashes = {str(file.relative_to(found.path)): _sha256(file) for file in _files(found.path)}
    return ModelCheck(found.name, str(found.path), problem is None, problem, tensors, hashes)


def licence_of(folder: Path) -> str | None:
    """Return the licence that a model's card names, if it has one."""
    card = folder / CARD
    if not card.is_file():
        return None
    with card.open("rb") as file:
        head = file.read(CARD_BYTES).decode("utf-8", "replace")
    front = re.match(r"---\s*\n(.*?)\n---", head, re.DOTALL)
    named = re.search(r"^licen[sc]e:[ \t]*(\S.*)$", front.group(1), re.MULTILINE) if front else None
    return named.group(1).strip().strip("\"'") if named else None


def _files(folder: Path) -> list[Path]:
    return sorted(file for file in folder.rglob("*") if file.is_file()) if folder.is_dir() else []


def _sha256(file: Path) -> str:
    digest = hashlib.sha256()
    with file.open("rb") as handle:
        while block := handle.read(BLOCK):
            digest.update(block)
    return digest.hexdigest()
