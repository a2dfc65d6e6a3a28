"""A model's folder → what there is to know about it, and whether it is sound."""

from __future__ import annotations

import hashlib
import json
import re
import warnings
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from munjang.engine.folder import read_folder
from munjang.engine.modules import TransformerModule
from munjang.engine.weights import find_weights
from munjang.errors import MunjangError
from munjang.models.cross_encoder import CrossEncoder
from munjang.models.registry import BUNDLED, Found
from munjang.models.sentence_encoder import SentenceEncoder
from munjang.types import Vectors

CARD = "README.md"
CARD_BYTES = 65_536
"""The licence stands in the first lines of a card."""

PROBE = ("오늘은 비가 온다", "It is raining today", "")
HASHES = "hashes.json"
"""Beside the bundled models: the SHA-256 of every file of each, written when they were made."""

BLOCK = 1 << 20


@dataclass(frozen=True)
class ModelFacts:
    """What `munjang models show` says."""

    name: str
    origin: str
    path: str
    kind: str
    family: str
    dimension: int
    """Numbers of a vector; of a cross-encoder, its labels."""
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
    model = _load(found.path)
    base = model.folder.base
    weights = find_weights(base.folder) if hasattr(base, "folder") else {}
    layers, heads, hidden_size = _sizes(model)
    return ModelFacts(
        name=found.name,
        origin=found.origin,
        path=str(found.path),
        kind="cross-encoder" if isinstance(model, CrossEncoder) else "sentence encoder",
        family=str(base.config.get("model_type", "unknown")) if isinstance(base, TransformerModule) else "static",
        dimension=len(model.labels) if isinstance(model, CrossEncoder) else model.dimension,
        layers=layers,
        heads=heads,
        hidden_size=hidden_size,
        vocabulary=model.tokenizer.vocabulary_size,
        max_length=model.max_length,
        similarity=model.folder.similarity,
        parameters=sum(int(weights[name].size) for name in weights),
        bytes=sum(file.stat().st_size for file in _files(found.path)),
        prompts=dict(model.folder.prompts),
        default_prompt=model.folder.default_prompt,
        licence=licence_of(found.path),
        fingerprint=model.fingerprint,
    )


def check(found: Found) -> ModelCheck:
    """Load a model, read every tensor, encode a probe, and hash every file."""
    tensors = 0
    problem = None
    try:
        model = _load(found.path)
        for module in model.folder.modules:
            folder = getattr(module, "folder", None)
            weights = find_weights(folder) if folder is not None else {}
            tensors += sum(weights[name].size >= 0 for name in weights)  # taking a tensor checks that it is finite
        if not np.isfinite(_probed(model)).all():
            problem = f"{found.path}: a probe sentence got a vector that is not finite"
    except MunjangError as error:
        problem = str(error)
    hashes = {str(file.relative_to(found.path)): _sha256(file) for file in _files(found.path)}
    if problem is None and found.origin == "bundled":
        problem = differing(hashes, _known_hashes().get(found.name, {}))
    return ModelCheck(found.name, str(found.path), problem is None, problem, tensors, hashes)


def differing(hashes: dict[str, str], known: dict[str, str]) -> str | None:
    """Say which files are not those that were bundled; None where all are."""
    wrong = sorted(name for name in {*hashes, *known} if hashes.get(name) != known.get(name))
    if not wrong:
        return None
    return f"{', '.join(wrong[:3])}: not the file that was bundled (its SHA-256 differs, or it is missing or new)\n  install Munjang again"


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


def _load(path: Path) -> SentenceEncoder | CrossEncoder:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # which pooling a plain folder means is asked when it is loaded
        is_cross = read_folder(path).kind == "cross"
    return CrossEncoder.load(path) if is_cross else SentenceEncoder.load(path)


def _sizes(model: SentenceEncoder | CrossEncoder) -> tuple[int, int, int]:
    """Return layers, heads and width; a cross-encoder's as its configuration names them (DistilBERT has names of its own)."""
    if isinstance(model, SentenceEncoder):
        return model.engine.layers, model.engine.heads, model.engine.hidden_size
    config = model.folder.base.config if isinstance(model.folder.base, TransformerModule) else {}
    names = (("num_hidden_layers", "n_layers"), ("num_attention_heads", "n_heads"), ("hidden_size", "dim"))
    layers, heads, width = (int(config.get(name, config.get(other, 0))) for name, other in names)
    return layers, heads, width


def _probed(model: SentenceEncoder | CrossEncoder) -> Vectors:
    """Return what the network itself gives: a sigmoid would hide an overflow, and a unit vector cannot be made of one."""
    if isinstance(model, CrossEncoder):
        return model.predict([(PROBE[0], text) for text in PROBE], score="logits")
    return model.engine.vectors([ids[: model.max_length] for ids in model.tokenizer.encode(PROBE)])


def _known_hashes() -> dict[str, dict[str, str]]:
    file = BUNDLED / HASHES
    return dict(json.loads(file.read_text(encoding="utf-8"))) if file.is_file() else {}


def _files(folder: Path) -> list[Path]:
    return sorted(file for file in folder.rglob("*") if file.is_file()) if folder.is_dir() else []


def _sha256(file: Path) -> str:
    digest = hashlib.sha256()
    with file.open("rb") as handle:
        while block := handle.read(BLOCK):
            digest.update(block)
    return digest.hexdigest()
