"""A model folder, or a fresh encoder, → a `TrainableCrossEncoder` with a head for the labels that the data has.

A cross-encoder's own head is kept where it has the same labels, and made anew where not; an encoder of sentences gives its layers and gets
a fresh head. That is Sentence-BERT's (dropout, dense, GELU, dropout, linear), which is ELECTRA's: BERT's layers are ELECTRA's under the
same names, so a BERT with that head is stored as ELECTRA and every reader of the format loads it. Other families get their own head.
"""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from munjang.engine.cross_folder import read_cross_head
from munjang.engine.folder import read_folder
from munjang.engine.modules import TransformerModule
from munjang.errors import FolderError, UsageError
from munjang.report.words import Message, Word
from munjang.text.tokenizer import Tokenizer, load_tokenizer
from munjang.train.cross import TrainableCrossEncoder
from munjang.train.load_folder import positions_of, quiet_transformers, set_dropout

MAX_LENGTH = 512
"""Tokens of a pair where neither folder nor recipe says a number; packing makes short pairs cost no more."""

Head = Literal["sbert", "own"]
"""sbert: dense, GELU, linear on the first token. own: what the family's …ForSequenceClassification has."""

_AS_ELECTRA = ("bert", "electra")


@dataclass(frozen=True)
class CrossOptions:
    """What the caller says over what the folder says; None leaves it to the folder and the family."""

    head: Head | None = None
    max_length: int | None = None
    dropout: float | None = None


def load_cross_encoder(path: Path | str, labels: Sequence[str], options: CrossOptions | None = None) -> TrainableCrossEncoder:
    """Return the model in a folder as a cross-encoder with these labels; fresh weights follow torch's seed."""
    chosen = options or CrossOptions()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # which pooling a plain folder means is of no matter here
        folder = read_folder(Path(path))
    base = folder.base
    if not isinstance(base, TransformerModule):
        raise FolderError(f"{path}: holds static word vectors, expected a transformer to train")
    tokenizer = load_tokenizer(base.folder)
    if folder.kind == "sentence":
        backbone = _loaded(base.folder, "AutoModel")
        model, said = fresh_cross_model(backbone, labels, chosen)
        return _cross(model, tokenizer, labels, chosen, said=said)
    head = read_cross_head(folder)
    # a sentence encoder's limit is for one text and means nothing for pairs; a cross-encoder's does
    chosen = replace(chosen, max_length=chosen.max_length or folder.max_length or tokenizer.max_length)
    model = _loaded(base.folder, "AutoModelForSequenceClassification")
    if chosen.head == "sbert" and type(model).__name__ != "ElectraForSequenceClassification":
        raise UsageError(f"model: head is 'sbert', {folder.path.name} has another one, which is kept\n  leave head out")
    if set(head.labels) == set(labels) or len(labels) == len(head.labels) == 1:
        _set_rates(model, chosen.dropout)
        made = _cross(model, tokenizer, head.labels, chosen, said=Message(Word.HEAD_KEPT))
        made.activation = "sigmoid" if head.activation == "sigmoid" else "identity"
        return made
    fresh = type(model)(_labelled(model.config, labels))
    fresh.base_model.load_state_dict(model.base_model.state_dict())
    _set_rates(fresh, chosen.dropout)
    said = Message(Word.HEAD_NEW, old=", ".join(head.labels), new=", ".join(labels))
    return _cross(fresh, tokenizer, labels, chosen, said=said)


def fresh_cross_model(backbone: Any, labels: Sequence[str], options: CrossOptions) -> tuple[Any, str]:
    """Return a model for sequence classification over an encoder's layers, with a head that knows nothing yet, and what to say of it."""
    from transformers import AutoModelForSequenceClassification, ElectraConfig, ElectraForSequenceClassification

    family = backbone.config.model_type
    sbert = options.head == "sbert" or (options.head is None and family in _AS_ELECTRA)
    if sbert and family not in _AS_ELECTRA:
        raise UsageError(f"model: head is 'sbert', which a model of type {family} cannot be stored with\n  leave head out, or use \"own\"")
    state = backbone.state_dict()
    if sbert:
        config = ElectraConfig(**_shared_settings(backbone.config))
        model = ElectraForSequenceClassification(_labelled(config, labels))
        state = {name: tensor for name, tensor in state.items() if not name.startswith("pooler.")}
    else:
        with quiet_transformers():
            model = AutoModelForSequenceClassification.from_config(_labelled(backbone.config, labels))
    missing, unexpected = model.base_model.load_state_dict(state, strict=False)
    if unexpected or any(not name.startswith("pooler.") for name in missing):
        raise FolderError(f"the encoder's weights do not fit {type(model).__name__}: {[*unexpected, *missing][:3]}")
    _set_rates(model, options.dropout)
    return model, Message(Word.HEAD_FRESH, kind=type(model).__name__)


def cross_from_parts(backbone: Any, tokenizer: Any, labels: Sequence[str], options: CrossOptions) -> TrainableCrossEncoder:
    """Return a cross-encoder over an encoder and a transformers tokenizer that are in memory."""
    with tempfile.TemporaryDirectory(prefix="munjang-") as folder, quiet_transformers():
        tokenizer.save_pretrained(folder)
        ours = load_tokenizer(Path(folder))
    model, said = fresh_cross_model(backbone, labels, options)
    return _cross(model, ours, labels, options, said=said)


def _cross(model: Any, tokenizer: Tokenizer, labels: Sequence[str], options: CrossOptions, *, said: str) -> TrainableCrossEncoder:
    length = min(options.max_length or MAX_LENGTH, positions_of(model))
    return TrainableCrossEncoder(model, tokenizer, labels=labels, max_length=length, said=(said,))


def _loaded(folder: Path, kind: str) -> Any:
    import torch
    import transformers

    try:
        with quiet_transformers():
            return getattr(transformers, kind).from_pretrained(
                folder, local_files_only=True, trust_remote_code=False, use_safetensors=True, dtype=torch.float32
            )
    except (OSError, ValueError) as error:
        raise FolderError(f"{folder}: transformers cannot load it: {str(error).splitlines()[0]}") from None


def _shared_settings(config: Any) -> dict[str, Any]:
    """Return the settings that BERT and ELECTRA share, with BERT's embeddings as wide as its layers."""
    names = (
        "vocab_size",
        "hidden_size",
        "num_hidden_layers",
        "num_attention_heads",
        "intermediate_size",
        "hidden_act",
        "hidden_dropout_prob",
        "attention_probs_dropout_prob",
        "max_position_embeddings",
        "type_vocab_size",
        "initializer_range",
        "layer_norm_eps",
        "pad_token_id",
    )
    found = {name: getattr(config, name) for name in names}
    return {**found, "embedding_size": getattr(config, "embedding_size", config.hidden_size)}


def _labelled(config: Any, labels: Sequence[str]) -> Any:
    config.id2label = dict(enumerate(labels))
    config.label2id = {label: number for number, label in enumerate(labels)}
    return config


def _set_rates(model: Any, dropout: float | None) -> None:
    """Give every dropout of the model the same rate."""
    import torch

    if dropout is None:
        return
    set_dropout(model.config, dropout)
    for module in model.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = dropout
