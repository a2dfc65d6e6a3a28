"""A model folder → a `TrainableEncoder`, or a `TrainableCrossEncoder` with a head for the labels that the data has; and torch's device.

Reads sentence-transformers folders in both dialects and plain Hugging Face folders; nothing is downloaded and no code of a folder runs. A
plain folder gets the pooling that the caller names.

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

import torch
from torch import nn

from munjang.engine.cross import read_cross_head
from munjang.engine.devices import DEVICES, DeviceSpec, find_device
from munjang.engine.folder import AssumptionWarning, read_folder, require_one_way, require_sentence_encoder
from munjang.engine.modules import DenseModule, LayerNormModule, NormalizeModule, PoolingModule, TransformerModule
from munjang.errors import DeviceError, FolderError, UsageError
from munjang.report.training_words import TrainingWord
from munjang.report.words import Message
from munjang.text.tokenizer import Tokenizer, load_tokenizer
from munjang.train.cross_encoder import TrainableCrossEncoder
from munjang.train.encoder import MAX_LENGTH, Dense, Normalize, TailNorm, TextSettings, TrainableEncoder, load_tensors
from munjang.types import Device, Pooling


def keep_layers(backbone: Any, layers: Sequence[int]) -> None:
    """Keep only these layers, counted from 0, in rising order; the backbone's configuration is changed with it."""
    home = _find_layers(backbone)
    count = len(home.layer)
    if not layers or list(layers) != sorted(set(layers)) or layers[0] < 0 or layers[-1] >= count:
        listed = ", ".join(map(str, layers))
        raise UsageError(f"layers {listed}: the model has {count} layers, expected numbers from 0 to {count - 1} in rising order")
    home.layer = nn.ModuleList([home.layer[number] for number in layers])
    name = "n_layers" if hasattr(backbone.config, "n_layers") else "num_hidden_layers"
    setattr(backbone.config, name, len(layers))


def _find_layers(backbone: Any) -> Any:
    """Return the module that holds the layers."""
    for name in ("encoder", "transformer"):
        home = getattr(backbone, name, None)
        if home is not None and isinstance(getattr(home, "layer", None), nn.ModuleList):
            return home
    raise UsageError(f"layers: a {backbone.config.model_type} model does not keep its layers where they can be chosen from")


@dataclass(frozen=True)
class EncoderOptions:
    """What the caller says over what the folder says; None leaves it to the folder. `dropout` sets every dropout rate of the backbone.

    `layers` keeps only these layers, counted from 0.
    """

    pooling: Pooling | None = None
    max_length: int | None = None
    normalize: bool | None = None
    dropout: float | None = None
    layers: tuple[int, ...] | None = None


def load_encoder(path: Path | str, options: EncoderOptions | None = None) -> TrainableEncoder:
    """Return the encoder in a folder, ready to be trained on."""
    chosen = options or EncoderOptions()
    with warnings.catch_warnings():
        if chosen.pooling is None:
            warnings.simplefilter("ignore", AssumptionWarning)  # mean pooling is this project's default and the card says it
        folder = read_folder(Path(path), pooling=chosen.pooling)
    require_sentence_encoder(folder)
    require_one_way(folder, "training")
    base = folder.base
    if not isinstance(base, TransformerModule):
        raise FolderError(f"{path}: holds static word vectors, expected a transformer to train")
    config = _load_pretrained(base.folder, "AutoConfig")
    if chosen.dropout is not None:
        _set_config_dropout(config, chosen.dropout)
    backbone, tokenizer = _load_pretrained(base.folder, "AutoModel", config=config), _load_pretrained(base.folder, "AutoTokenizer")
    if chosen.layers is not None:
        keep_layers(backbone, chosen.layers)
    limit = count_positions(backbone)
    length = min(chosen.max_length or folder.max_length or min(MAX_LENGTH, tokenizer.model_max_length), limit)
    modes: tuple[Pooling, ...] = next(module.modes for module in folder.modules if isinstance(module, PoolingModule))
    tail = [_load_tail_module(module) for module in folder.modules if isinstance(module, DenseModule | LayerNormModule | NormalizeModule)]
    if chosen.normalize is not None:
        tail = [module for module in tail if not isinstance(module, Normalize)] + ([Normalize()] if chosen.normalize else [])
    made = TrainableEncoder(backbone, tokenizer, modes=modes, text=TextSettings(length, base.lowercase), tail=tail)
    made.prompts, made.folder = dict(folder.prompts), base.folder
    return made


def set_dropout(model: Any, rate: float | None) -> None:
    """Give every dropout of a model, and of its configuration, the same rate; None leaves them."""
    if rate is None:
        return
    _set_config_dropout(model.config, rate)
    for module in model.modules():
        if isinstance(module, nn.Dropout):
            module.p = rate


def _set_config_dropout(config: Any, rate: float) -> None:
    for name in ("hidden_dropout_prob", "attention_probs_dropout_prob", "dropout", "attention_dropout"):
        if getattr(config, name, None) is not None:
            setattr(config, name, rate)


def _load_pretrained(folder: Path, kind: str, **options: Any) -> Any:
    """Return what transformers' class `kind` reads from a folder, offline and without running code of it."""
    import transformers

    if kind.startswith("AutoModel"):
        options |= {"use_safetensors": True, "dtype": torch.float32}
    try:
        with quiet_transformers():
            return getattr(transformers, kind).from_pretrained(folder, local_files_only=True, trust_remote_code=False, **options)
    except (OSError, ValueError, RuntimeError, KeyError, TypeError, AttributeError) as error:
        line = (str(error).splitlines() or [type(error).__name__])[0]
        if "ignore_mismatched_sizes" in line:  # the report of which they are went to a log that is held back
            line = "its weights have other shapes than its config.json says"
        raise FolderError(f"{folder}: transformers cannot load it: {line}") from None


def load_checked(folder: Path, kind: str) -> Any:
    """Return a model, or refuse a folder whose weights are not all there: transformers would make up what is missing."""
    model, info = _load_pretrained(folder, kind, output_loading_info=True)
    missing = sorted(name for name in info["missing_keys"] if "pooler." not in name or kind != "AutoModel")
    if missing:
        raise FolderError(
            f"{folder}: the weights have no tensor {missing[0]!r} ({len(missing)} missing); this is not a {type(model).__name__}"
        )
    return model


class quiet_transformers:
    """Hold back transformers' progress bars and notes for a block, and put its settings back."""

    def __enter__(self) -> None:
        from transformers.utils import logging

        self._level = logging.get_verbosity()
        self._bars = logging.is_progress_bar_enabled()
        logging.set_verbosity_error()
        logging.disable_progress_bar()

    def __exit__(self, *_: object) -> None:
        from transformers.utils import logging

        logging.set_verbosity(self._level)
        if self._bars:
            logging.enable_progress_bar()


def count_positions(backbone: Any) -> int:
    """Return how many tokens the positions leave room for."""
    config = backbone.config
    count = getattr(config, "max_position_embeddings", None)
    if not isinstance(count, int) or count < 1:
        return 2**31
    taken = int(config.pad_token_id) + 1 if config.model_type in ("roberta", "xlm-roberta", "camembert", "mpnet") else 0
    return count - taken


def _load_tail_module(module: DenseModule | LayerNormModule | NormalizeModule) -> Any:
    if isinstance(module, NormalizeModule):
        return Normalize()
    made: Dense | TailNorm
    if isinstance(module, DenseModule):
        made = Dense(module.in_features, module.out_features, bias=module.bias, activation=module.activation, residual=module.residual)
    else:
        made = TailNorm(module.dimension)
    load_tensors(made, module.folder)
    return made


MAX_PAIR_LENGTH = 512
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
        backbone = _load_pretrained(base.folder, "AutoModel")
        model, message = make_cross_model(backbone, labels, chosen)
        return _make_cross_encoder(model, tokenizer, labels, chosen, message=message)
    head = read_cross_head(folder)
    # a sentence encoder's limit is for one text and means nothing for pairs; a cross-encoder's does
    chosen = replace(chosen, max_length=chosen.max_length or folder.max_length or tokenizer.max_length)
    model = _load_pretrained(base.folder, "AutoModelForSequenceClassification")
    if chosen.head == "sbert" and type(model).__name__ != "ElectraForSequenceClassification":
        raise UsageError(f"model: head is 'sbert', {folder.path.name} has another one, which is kept\n  leave head out")
    if set(head.labels) == set(labels) or len(labels) == len(head.labels) == 1:
        set_dropout(model, chosen.dropout)
        made = _make_cross_encoder(model, tokenizer, head.labels, chosen, message=Message(TrainingWord.HEAD_KEPT))
        made.activation = "sigmoid" if head.activation == "sigmoid" else "identity"
        return made
    fresh = type(model)(_set_labels(model.config, labels))
    fresh.base_model.load_state_dict(model.base_model.state_dict())
    set_dropout(fresh, chosen.dropout)
    message = Message(TrainingWord.HEAD_NEW, old=", ".join(head.labels), new=", ".join(labels))
    return _make_cross_encoder(fresh, tokenizer, labels, chosen, message=message)


def make_cross_model(backbone: Any, labels: Sequence[str], options: CrossOptions) -> tuple[Any, str]:
    """Return a model for sequence classification over an encoder's layers, with a head that knows nothing yet, and what to say of it."""
    from transformers import AutoModelForSequenceClassification, ElectraConfig, ElectraForSequenceClassification

    family = backbone.config.model_type
    sbert = options.head == "sbert" or (options.head is None and family in _AS_ELECTRA)
    if sbert and family not in _AS_ELECTRA:
        raise UsageError(f"model: head is 'sbert', which a model of type {family} cannot be stored with\n  leave head out, or use \"own\"")
    state = backbone.state_dict()
    if sbert:
        config = ElectraConfig(**_get_shared_settings(backbone.config))
        model = ElectraForSequenceClassification(_set_labels(config, labels))
        state = {name: tensor for name, tensor in state.items() if not name.startswith("pooler.")}
    else:
        with quiet_transformers():
            model = AutoModelForSequenceClassification.from_config(_set_labels(backbone.config, labels))
    missing, unexpected = model.base_model.load_state_dict(state, strict=False)
    if unexpected or any(not name.startswith("pooler.") for name in missing):
        raise FolderError(f"the encoder's weights do not fit {type(model).__name__}: {[*unexpected, *missing][:3]}")
    set_dropout(model, options.dropout)
    return model, Message(TrainingWord.HEAD_FRESH, kind=type(model).__name__)


def make_cross_encoder(backbone: Any, tokenizer: Any, labels: Sequence[str], options: CrossOptions) -> TrainableCrossEncoder:
    """Return a cross-encoder over an encoder and a transformers tokenizer that are in memory."""
    with tempfile.TemporaryDirectory(prefix="munjang-") as folder, quiet_transformers():
        tokenizer.save_pretrained(folder)
        ours = load_tokenizer(Path(folder))
    model, message = make_cross_model(backbone, labels, options)
    return _make_cross_encoder(model, ours, labels, options, message=message)


def _make_cross_encoder(
    model: Any, tokenizer: Tokenizer, labels: Sequence[str], options: CrossOptions, *, message: str
) -> TrainableCrossEncoder:
    length = min(options.max_length or MAX_PAIR_LENGTH, count_positions(model))
    return TrainableCrossEncoder(model, tokenizer, labels=labels, max_length=length, messages=(message,))


def _get_shared_settings(config: Any) -> dict[str, Any]:
    """Return the settings that BERT and ELECTRA share, with BERT's embeddings as wide as its layers."""
    names = (
        "vocab_size hidden_size num_hidden_layers num_attention_heads intermediate_size hidden_act hidden_dropout_prob "
        "attention_probs_dropout_prob max_position_embeddings type_vocab_size initializer_range layer_norm_eps pad_token_id"
    )
    found = {name: getattr(config, name) for name in names.split()}
    return {**found, "embedding_size": getattr(config, "embedding_size", config.hidden_size)}


def _set_labels(config: Any, labels: Sequence[str]) -> Any:
    config.id2label = dict(enumerate(labels))
    config.label2id = {label: number for number, label in enumerate(labels)}
    return config


def choose_torch_device(device: Device, *, auto: tuple[Device, ...] = ("cuda", "rocm", "mps")) -> tuple[DeviceSpec, torch.device]:
    """Return the device and torch's name for it; "auto" takes the first of `auto` that is there, else the CPU."""
    if device == "auto":
        device = next((name for name in auto if is_available(name)), "cpu")
    spec = find_device(device)
    if not spec.torch:
        known = ", ".join(each.name for each in DEVICES if each.torch)
        raise UsageError(f"device {device!r} runs the fast engine only; torch computes on {known}")
    if not is_available(device):
        raise DeviceError(
            f"device {device!r} ({spec.hardware}) is not there: torch {torch.__version__} finds none\n"
            f"  install a torch that is built for it, and its driver; or choose device 'cpu'"
        )
    return spec, torch.device(spec.torch)


def is_available(device: Device) -> bool:
    """Say whether torch can compute there."""
    if device == "mps":
        return bool(torch.backends.mps.is_available())
    if device in ("cuda", "rocm"):
        built_for_amd = getattr(torch.version, "hip", None) is not None
        return bool(torch.cuda.is_available()) and built_for_amd == (device == "rocm")
    return device == "cpu"
