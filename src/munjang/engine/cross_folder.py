"""A folder that holds a cross-encoder → what its head looks like and what its scores mean.

Heads are a closed table by architecture: each is one dense layer with an activation on the first token's state, then a linear layer to the
labels. The head of Sentence-BERT's cross-encoder (dense, GELU, linear) is ELECTRA's, so a BERT encoder with that head is stored as ELECTRA
and every reader of the format loads it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from munjang.engine.activations import TORCH_ACTIVATIONS
from munjang.engine.folder import SETTINGS_FILE, ModelFolder
from munjang.engine.jsonfile import read_object
from munjang.engine.modules import Activation, TransformerModule
from munjang.errors import FolderError, shown


@dataclass(frozen=True)
class HeadNames:
    """Where an architecture keeps its head."""

    dense: str
    activation: Activation
    out: str


_CLASSIFIER_TANH = HeadNames("classifier.dense", "tanh", "classifier.out_proj")
HEADS: dict[str, HeadNames] = {
    "BertForSequenceClassification": HeadNames("bert.pooler.dense", "tanh", "classifier"),
    "RobertaForSequenceClassification": _CLASSIFIER_TANH,
    "XLMRobertaForSequenceClassification": _CLASSIFIER_TANH,
    "CamembertForSequenceClassification": _CLASSIFIER_TANH,
    "MPNetForSequenceClassification": _CLASSIFIER_TANH,
    "ElectraForSequenceClassification": HeadNames("classifier.dense", "gelu", "classifier.out_proj"),
    "DistilBertForSequenceClassification": HeadNames("pre_classifier", "relu", "classifier"),
}


OWN_SETTINGS = "munjang"
"""The key of config.json under which our own settings stand; other tools pass over it."""


@dataclass(frozen=True)
class CrossHead:
    """A cross-encoder's head: tensor names, labels, and the activation that turns a logit into a score."""

    names: HeadNames
    labels: tuple[str, ...]
    activation: Activation
    share: float = 1.0
    """How much say it asks for where it orders hits that another ranking found."""


def read_cross_head(folder: ModelFolder) -> CrossHead:
    """Describe the head of the cross-encoder in `folder`."""
    base = folder.base
    if folder.kind != "cross" or not isinstance(base, TransformerModule):
        raise FolderError(
            f"{folder.path}: holds a sentence encoder, which turns single texts into vectors and does not score pairs\n"
            "  use it with `munjang encode`, `munjang similar` or SentenceEncoder.load; give a cross-encoder here"
        )
    architectures = base.config.get("architectures") or []
    name = str(architectures[0]) if isinstance(architectures, list) and architectures else ""
    if name not in HEADS:
        raise FolderError(f"{folder.path}: architecture {shown(name)} is not a cross-encoder that runs here; known are {', '.join(HEADS)}")
    labels = _labels(folder, base.config)
    return CrossHead(HEADS[name], labels, _activation(folder, base.config, len(labels)), _share(folder, base.config))


def _labels(folder: ModelFolder, config: dict[str, Any]) -> tuple[str, ...]:
    named = config.get("id2label")
    if isinstance(named, dict) and named:
        try:
            ordered = sorted((int(number), str(label)) for number, label in named.items())
        except ValueError:
            raise FolderError(f"{folder.path}: the keys of 'id2label' must be whole numbers") from None
        return tuple(label for _, label in ordered)
    count = config.get("num_labels", 2)
    if not isinstance(count, int) or not 1 <= count <= 100_000:
        raise FolderError(f"{folder.path}: num_labels is {shown(str(count))}, expected a positive whole number")
    return tuple(f"LABEL_{number}" for number in range(count))


def _activation(folder: ModelFolder, config: dict[str, Any], labels: int) -> Activation:
    settings = read_object(folder.path / SETTINGS_FILE) if (folder.path / SETTINGS_FILE).is_file() else {}
    inner = config.get("sentence_transformers")
    name = settings.get("activation_fn") or (inner.get("activation_fn") if isinstance(inner, dict) else None)
    name = name or config.get("sbert_ce_default_activation_function")
    if name is None:
        return "sigmoid" if labels == 1 else "identity"
    if name not in TORCH_ACTIVATIONS:
        raise FolderError(f"{folder.path}: activation {shown(str(name))} is not one that Munjang knows; no code is loaded")
    return TORCH_ACTIVATIONS[name]


def _share(folder: ModelFolder, config: dict[str, Any]) -> float:
    own = config.get(OWN_SETTINGS)
    share = own.get("rerank_share", 1.0) if isinstance(own, dict) else 1.0
    if isinstance(share, bool) or not isinstance(share, int | float) or not 0 < share <= 1:
        raise FolderError(f"{folder.path / 'config.json'}: rerank_share is {shown(str(share))}, expected more than 0 and at most 1")
    return float(share)
