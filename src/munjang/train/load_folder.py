"""A model folder → a `TrainableEncoder`.

Reads sentence-transformers folders in both dialects and plain Hugging Face folders; nothing is downloaded and no code of a folder runs.
A plain folder gets the pooling that the caller names.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from munjang.engine.folder import AssumptionWarning, read_folder, require_sentence_encoder
from munjang.engine.modules import DenseModule, LayerNormModule, NormalizeModule, Pooling, PoolingModule, TransformerModule
from munjang.errors import FolderError
from munjang.train.encoder import MAX_LENGTH, TextSettings, TrainableEncoder
from munjang.train.layers import keep_layers
from munjang.train.tail import Dense, Normalize, TailNorm, load_tensors


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
    base = folder.base
    if not isinstance(base, TransformerModule):
        raise FolderError(f"{path}: holds static word vectors, expected a transformer to train")
    backbone, tokenizer = _backbone(base.folder, chosen.dropout)
    if chosen.layers is not None:
        keep_layers(backbone, chosen.layers)
    limit = positions_of(backbone)
    length = min(chosen.max_length or folder.max_length or min(MAX_LENGTH, tokenizer.model_max_length), limit)
    modes: tuple[Pooling, ...] = next(module.modes for module in folder.modules if isinstance(module, PoolingModule))
    tail = [_tail_module(module) for module in folder.modules if isinstance(module, DenseModule | LayerNormModule | NormalizeModule)]
    if chosen.normalize is not None:
        tail = [module for module in tail if not isinstance(module, Normalize)] + ([Normalize()] if chosen.normalize else [])
    made = TrainableEncoder(backbone, tokenizer, modes=modes, text=TextSettings(length, base.lowercase), tail=tail)
    made.prompts, made.folder = dict(folder.prompts), base.folder
    return made


def set_dropout(config: Any, rate: float) -> None:
    """Set every dropout rate that a configuration names."""
    for name in ("hidden_dropout_prob", "attention_probs_dropout_prob", "dropout", "attention_dropout"):
        if getattr(config, name, None) is not None:
            setattr(config, name, rate)


def _backbone(folder: Path, dropout: float | None) -> tuple[Any, Any]:
    import torch
    from transformers import AutoConfig, AutoModel, AutoTokenizer

    config = AutoConfig.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
    if dropout is not None:
        set_dropout(config, dropout)
    try:
        with quiet_transformers():
            backbone = AutoModel.from_pretrained(
                folder, config=config, local_files_only=True, trust_remote_code=False, use_safetensors=True, dtype=torch.float32
            )
            tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
    except (OSError, ValueError) as error:
        raise FolderError(f"{folder}: transformers cannot load it: {str(error).splitlines()[0]}") from None
    return backbone, tokenizer


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


def positions_of(backbone: Any) -> int:
    """Return how many tokens the positions leave room for."""
    config = backbone.config
    count = getattr(config, "max_position_embeddings", None)
    if not isinstance(count, int) or count < 1:
        return 2**31
    taken = int(config.pad_token_id) + 1 if config.model_type in ("roberta", "xlm-roberta", "camembert", "mpnet") else 0
    return count - taken


def _tail_module(module: DenseModule | LayerNormModule | NormalizeModule) -> Any:
    if isinstance(module, NormalizeModule):
        return Normalize()
    made: Dense | TailNorm
    if isinstance(module, DenseModule):
        made = Dense(module.in_features, module.out_features, bias=module.bias, activation=module.activation, residual=module.residual)
    else:
        made = TailNorm(module.dimension)
    load_tensors(made, module.folder)
    return made
