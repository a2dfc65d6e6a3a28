"""A model folder of any family → vectors or logits through torch and transformers, behind the interfaces of the fast engine.

For families that the fast engine does not know. `models/open_engine.py` finds this file by its name, so that nothing outside this room
imports torch. transformers builds the model from its own code; code that comes with a folder is never run, and weights are read from
safetensors alone. Texts of one run always have one length: nothing is padded, so a vector does not depend on its neighbours by more
than rounding (2e-5 of its length in float32), also in families whose layers would see padding, such as ConvBERT.

Shapes: B texts of one length S, D width.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from munjang.engine.cross import CrossEngine, CrossHead, HeadNames, PairIds, read_activation, read_labels, read_rerank_share
from munjang.engine.devices import Placement, choose_torch_compute
from munjang.engine.folder import ModelFolder, require_one_way
from munjang.engine.head_graph import compute_head_width, reads_first_only, write_head
from munjang.engine.layout import PACKED_INPUTS, PackedLayout, pack
from munjang.engine.modules import TransformerModule
from munjang.engine.onnxgraph import FLOAT, GraphBuilder
from munjang.engine.session import open_session
from munjang.engine.weights import find_weights
from munjang.errors import FolderError, quote
from munjang.train.load_folder import choose_torch_device, count_positions, load_checked
from munjang.types import Compute, Device, Vectors

_READ = ("slots", "pool_mask")


class TokenHead:
    """Pools token vectors by the folder's own pooling and later modules, in the fast engine's graph; safe from many threads.

    T tokens in all, D width.
    """

    def __init__(self, folder: ModelFolder, width: int, *, threads: int | None = None) -> None:
        modules = folder.modules[1:]
        self.first_only = reads_first_only(folder.modules)
        """Whether nothing but each text's first token is read."""
        self.dimension = compute_head_width(modules, width)
        builder = GraphBuilder()
        builder.name_output(write_head(builder, "hidden", PackedLayout(builder), modules, width), "vectors")
        inputs = [("hidden", FLOAT, ["T", width]), *(each for each in PACKED_INPUTS if each[0] in _READ)]
        self._session = open_session(builder, inputs, [("vectors", ["B", self.dimension])], threads=threads)

    def vectors(self, hidden_TD: Vectors, ids: Sequence[Sequence[int]], *, hidden_prefix: int = 0) -> Vectors:
        """Return one vector per text; `hidden_TD` has a row for each id, text after text, or for each text's first with `first_only`."""
        packed = pack(ids, first_position=0, hidden_prefix=hidden_prefix)
        return self._session.run({"hidden": hidden_TD, **{name: packed[name] for name in _READ}}, ["vectors"])[0]


_DTYPES: dict[Compute, torch.dtype] = {"float32": torch.float32, "float16": torch.float16, "bfloat16": torch.bfloat16}
_ENCODERS = {"t5": "T5EncoderModel", "mt5": "MT5EncoderModel", "umt5": "UMT5EncoderModel"}
"""Families whose encoder alone is loaded, as sentence-transformers does."""

MOST_TOKENS = 2**31
"""What `count_positions` says where positions bound nothing."""


class TorchEngine:
    """Turns token ids into vectors; safe from many threads, which take turns: torch uses all cores for one run."""

    first_position = 0

    def __init__(self, folder: ModelFolder, *, device: Device, compute: Compute, threads: int | None = None) -> None:
        base = _check_folder(folder)
        kind = _ENCODERS.get(str(base.config.get("model_type")), "AutoModel")
        self._runner = _Runner(load_checked(base.folder, kind), device, compute, threads)
        config = self._runner.model.config
        if kind == "AutoModel" and getattr(config, "is_encoder_decoder", False):
            raise FolderError(
                f"{base.folder / 'config.json'}: a {config.model_type} has an encoder and a decoder, expected an encoder alone"
            )
        self.placement = self._runner.placement
        self.layers = int(getattr(config, "num_hidden_layers", 0))
        self.heads = int(getattr(config, "num_attention_heads", 0))
        self.hidden_size = _measure_width(self._runner, base)
        self._head = TokenHead(folder, self.hidden_size, threads=threads)
        self.dimension, self.max_tokens = self._head.dimension, _count_tokens(self._runner.model)
        self.vocabulary_size = _count_pieces(self._runner.model)

    def vectors(self, ids: Sequence[Sequence[int]], *, hidden_prefix: int = 0) -> Vectors:
        """Return one vector per text."""
        rows: list[Vectors] = [np.empty(0, np.float32)] * len(ids)
        for group in _group_by_length(ids):
            hidden_BSD = self._runner.run([ids[number] for number in group]).last_hidden_state
            kept_BSD = hidden_BSD[:, :1] if self._head.first_only else hidden_BSD
            for number, row in zip(group, _to_numpy(kept_BSD), strict=True):
                rows[number] = row
        return self._head.vectors(np.concatenate(rows), ids, hidden_prefix=hidden_prefix)

    def vectors_of_batches(self, batches: Sequence[Sequence[Sequence[int]]], *, hidden_prefix: int = 0) -> Iterator[Vectors]:
        """Yield the vectors of each batch in order."""
        return (self.vectors(ids, hidden_prefix=hidden_prefix) for ids in batches)

    def vectors_and_tokens(self, ids: Sequence[Sequence[int]], *, hidden_prefix: int = 0) -> tuple[Vectors, Vectors]:
        """Return one vector per text and one row per token, text behind text, in one run for each length."""
        rows: list[Vectors] = [np.empty(0, np.float32)] * len(ids)
        for group in _group_by_length(ids):
            for number, row in zip(group, _to_numpy(self._runner.run([ids[each] for each in group]).last_hidden_state), strict=True):
                rows[number] = row
        kept = [row[:1] for row in rows] if self._head.first_only else rows
        return self._head.vectors(np.concatenate(kept), ids, hidden_prefix=hidden_prefix), np.concatenate(rows)

    def tokens_of_batches(self, batches: Sequence[Sequence[Sequence[int]]], *, hidden_prefix: int = 0) -> Iterator[tuple[Vectors, Vectors]]:
        """Yield the vectors and the token rows of each batch in order."""
        return (self.vectors_and_tokens(ids, hidden_prefix=hidden_prefix) for ids in batches)

    def layer_outputs(self, ids: Sequence[int]) -> list[Vectors]:
        """Return every layer's output for one text."""
        return [_to_numpy(hidden_1SD)[0] for hidden_1SD in self._runner.run([ids], output_hidden_states=True).hidden_states]


class TorchCrossEngine(CrossEngine):
    """Turns pairs of token ids into logits, with the model's own head."""

    def __init__(
        self, folder: ModelFolder, *, device: Device, compute: Compute, threads: int | None = None
    ) -> None:  # the parent's is not called
        base = _check_folder(folder)
        labels = read_labels(folder, base.config)
        names = HeadNames("", "identity", "")  # the head is transformers' own
        self.head = CrossHead(names, labels, read_activation(folder, base.config, len(labels)), read_rerank_share(folder, base.config))
        self._runner = _Runner(load_checked(base.folder, "AutoModelForSequenceClassification"), device, compute, threads)
        _check_architecture(self._runner.model, base)
        self.placement, self.first_position = self._runner.placement, 0
        self.max_tokens = _count_tokens(self._runner.model) or MOST_TOKENS
        self.vocabulary_size = _count_pieces(self._runner.model)
        self._has_types = int(getattr(self._runner.model.config, "type_vocab_size", 0) or 0) > 1

    def logits(self, pairs: Sequence[PairIds]) -> Vectors:
        """Return the logits of one batch."""
        logits_BK = np.zeros((len(pairs), len(self.head.labels)), np.float32)
        for group in _group_by_length([ids for ids, _ in pairs]):
            types = [pairs[number][1] for number in group] if self._has_types else None
            logits_BK[group] = _to_numpy(self._runner.run([pairs[number][0] for number in group], types=types).logits)
        return logits_BK

    def logits_of_batches(self, batches: Sequence[Sequence[PairIds]]) -> Iterator[Vectors]:
        """Yield the logits of each batch in order."""
        return (self.logits(batch) for batch in batches)


class _Runner:
    """A model of transformers on its device."""

    def __init__(self, model: Any, device: Device, compute: Compute, threads: int | None) -> None:
        spec, self._device = choose_torch_device(device)
        chosen = choose_torch_compute(spec, compute)
        if threads is not None and spec.name == "cpu":
            torch.set_num_threads(threads)  # torch has one number for the whole process
        self.placement = Placement(spec.name, chosen, "torch", batch_tokens=spec.batch_tokens, efficient_tokens=spec.efficient_tokens)
        self.model = model.to(device=self._device, dtype=_DTYPES[chosen]).eval()
        self._turn = threading.Lock()

    def run(self, ids: Sequence[Sequence[int]], *, types: Sequence[Sequence[int]] | None = None, **options: Any) -> Any:
        """Run texts of one length."""
        inputs = {"input_ids": self._table(ids)}
        inputs["attention_mask"] = torch.ones_like(inputs["input_ids"])
        if types is not None:
            inputs["token_type_ids"] = self._table(types)
        with self._turn, torch.inference_mode():
            return self.model(**inputs, **options)

    def _table(self, rows: Sequence[Sequence[int]]) -> Tensor:
        return torch.from_numpy(np.array(rows, np.int64)).to(self._device)


def _check_folder(folder: ModelFolder) -> TransformerModule:
    """Refuse what the fast engine would refuse before anything of it is read: other formats than safetensors, damaged weights."""
    base = folder.base
    if not isinstance(base, TransformerModule):
        raise FolderError(f"{folder.path}: holds no transformer")
    require_one_way(replace(folder, routes={}), "the torch engine")  # a folder comes with the modules of one route
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING

    family = str(base.config.get("model_type"))
    if family not in CONFIG_MAPPING:
        fact = f"model_type {quote(family)} is known neither to the fast engine nor to the installed transformers"
        raise FolderError(f"{base.folder / 'config.json'}: {fact}")
    reads = _find_input(family)
    if reads != "input_ids":
        raise FolderError(f"{base.folder / 'config.json'}: a model of type {quote(family)} reads {reads}, expected one that reads texts")
    weights = find_weights(base.folder)
    for name in weights:
        weights[name]  # refuses NaN and infinite values
    return base


def _find_input(family: str) -> str:
    """Return what a family reads: "input_ids", or "pixel_values" and the like."""
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING
    from transformers.models.auto.modeling_auto import MODEL_MAPPING

    known = MODEL_MAPPING.get(CONFIG_MAPPING[family], None)
    model = known[0] if isinstance(known, tuple) else known
    return str(getattr(model, "main_input_name", "nothing that is known"))


def _check_architecture(model: Any, base: TransformerModule) -> None:
    """Refuse a folder that names another architecture than its type has."""
    named = base.config.get("architectures")
    if isinstance(named, list) and named and str(named[0]) != type(model).__name__:
        fact = f"architecture {quote(str(named[0]))}, but its model_type is that of {type(model).__name__}"
        raise FolderError(f"{base.folder / 'config.json'}: names the {fact}; they do not belong together")


def _group_by_length(ids: Sequence[Sequence[int]]) -> list[list[int]]:
    """Return the numbers of texts, those of one length together."""
    groups: dict[int, list[int]] = {}
    for number, one in enumerate(ids):
        groups.setdefault(len(one), []).append(number)
    return list(groups.values())


def _to_numpy(values: Tensor) -> Vectors:
    array: Vectors = values.float().cpu().numpy()
    return array


def _measure_width(runner: _Runner, base: TransformerModule) -> int:
    """Run two tokens: what comes out says how wide it is, and a model that is no encoder of texts fails here."""
    try:
        hidden = getattr(runner.run([[0, 0]]), "last_hidden_state", None)
    except (TypeError, ValueError, RuntimeError, IndexError) as error:
        line = (str(error).splitlines() or [type(error).__name__])[0]
        raise FolderError(f"{base.folder}: transformers cannot run it on token ids: {quote(line, 200)}") from None
    if hidden is None or hidden.shape[:2] != (1, 2):
        raise FolderError(f"{base.folder}: a {base.config.get('model_type')} gives no vector for each token, expected an encoder of texts")
    return int(hidden.shape[2])


def _count_tokens(model: Any) -> int | None:
    count = count_positions(model)
    return count if count < MOST_TOKENS else None


def _count_pieces(model: Any) -> int:
    return int(model.get_input_embeddings().weight.shape[0])
