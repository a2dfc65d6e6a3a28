"""A loaded model → one ONNX graph, from token ids to the final vector, that other programs run.

Inputs are those that everyone feeds (`input_ids`, `attention_mask`, `token_type_ids` where the family has segments); pooling and all that
follows it are inside. float32 uses standard operators only; int8 uses onnxruntime's. The file is checked against the model's own vectors
before it is reported as done.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnxruntime

from munjang.atomic import atomic_write, make_folder, translate_disk_errors
from munjang.engine.backbone import Backbone, read_backbone
from munjang.engine.encoder_graph import write_encoder
from munjang.engine.head_graph import compute_head_width, reads_first_only, write_head, write_layer_mix
from munjang.engine.layout import PADDED_INPUTS, PaddedLayout
from munjang.engine.linear import FloatWriter, Int8Writer, LinearWriter
from munjang.engine.modules import LayerMixModule, TransformerModule
from munjang.engine.onnxgraph import INT64, GraphBuilder, Input
from munjang.engine.session import ERRORS_ONLY
from munjang.errors import InputError, UsageError
from munjang.models.samples import load_samples
from munjang.models.sentence_encoder import SentenceEncoder
from munjang.options import ComputeOption
from munjang.types import DEFAULT_COMPUTE, Compute, Vectors, check_encoder
from munjang.wording import brief_repr

FILES: dict[Compute, str] = {"float32": "onnx/model.onnx", "int8": "onnx/model_qint8.onnx"}
PARITY: dict[Compute, float] = {"float32": 1e-5, "int8": 0.05}
"""How far a number of the exported graph's vectors may be from the engine's, which runs at the same precision."""

PROBES = 32
LARGEST_FILE = 2**31 - 1
"""A protobuf file cannot be larger."""


@brief_repr
@dataclass(frozen=True)
class ExportReport:
    """What was written, and how near it is."""

    path: Path
    bytes: int
    max_difference: float
    texts: int


def export_onnx(model: SentenceEncoder, target: str | Path, *, compute: ComputeOption = DEFAULT_COMPUTE) -> ExportReport:
    """Write `target` as a complete model folder with the graph in it, and compare the graph's vectors with the model's."""
    check_encoder(model, "model")
    base = model.folder.base
    if not isinstance(base, TransformerModule):
        raise UsageError(f"{model.name}: a static model has no graph to export; it is a table of vectors")
    if compute not in FILES:
        raise UsageError(f"compute={compute!r}: a graph is exported in {' or '.join(FILES)}")
    target = Path(target)
    graph = _write_graph(model, base, compute)
    if len(graph) > LARGEST_FILE:
        raise UsageError(f"{model.name}: the graph has {len(graph):,} bytes, the format allows {LARGEST_FILE:,}")
    difference, texts = _compare(model, graph, compute)
    if not (target / "modules.json").is_file():
        model.save(target)
    path = target / FILES[compute]
    with translate_disk_errors(path):
        make_folder(path.parent)
    atomic_write(path, graph)
    return ExportReport(path, len(graph), difference, texts)


def _write_graph(model: SentenceEncoder, base: TransformerModule, compute: Compute) -> bytes:
    backbone = read_backbone(base)
    builder = GraphBuilder()
    layout = PaddedLayout(builder, first_position=backbone.first_position)
    writer: LinearWriter = FloatWriter(builder) if compute == "float32" else Int8Writer(builder)
    types = builder.add("Reshape", ["token_type_ids", builder.constant([-1])]) if backbone.types_E is not None else None
    mixes, pools_first = any(isinstance(module, LayerMixModule) for module in model.folder.modules), reads_first_only(model.folder.modules)
    out = write_encoder(builder, backbone, layout, writer, first_only=pools_first and not mixes, types=types, keep_layers=mixes)
    hidden = write_layer_mix(builder, out, model.folder.modules)
    hidden = builder.add("Gather", [hidden, layout.first_rows()]) if pools_first and mixes else hidden
    vectors = write_head(builder, hidden, layout, model.folder.modules[1:], backbone.dimension)
    builder.name_output(vectors, "sentence_embedding")
    width = compute_head_width(model.folder.modules[1:], backbone.dimension)
    graph: bytes = builder.model(_list_inputs(backbone), [("sentence_embedding", ["batch", width])]).SerializeToString()
    return graph


def _list_inputs(backbone: Backbone) -> list[Input]:
    inputs: list[Input] = [(name, kind, list(shape)) for name, kind, shape in PADDED_INPUTS]
    return inputs if backbone.types_E is None else [*inputs, ("token_type_ids", INT64, ["batch", "tokens"])]


def _compare(model: SentenceEncoder, graph: bytes, compute: Compute) -> tuple[float, int]:
    """Run the graph on sample sentences and return the largest difference from the model at the same precision."""
    texts = [sample.text for sample in load_samples()[:: max(len(load_samples()) // PROBES, 1)]]
    same = (
        model
        if model.compute == compute and model.device == "cpu"
        else SentenceEncoder.load(model.folder.path, compute=compute, pooling=model.pooling, max_length=model.max_length, device="cpu")
    )
    ours = same.engine.vectors([ids[: model.max_length] for ids in model.tokenizer.encode(texts)])
    theirs = _run(graph, [ids[: model.max_length] for ids in model.tokenizer.encode(texts)], pad=model.tokenizer.pad_id)
    difference = float(np.abs(ours - theirs).max())
    if not difference <= PARITY[compute]:
        raise InputError(
            f"{model.name}: the exported graph differs by {difference:.2g}, more than {PARITY[compute]:.2g}; nothing was written"
        )
    return difference, len(texts)


def _run(graph: bytes, ids: list[list[int]], *, pad: int) -> Vectors:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = ERRORS_ONLY
    session = onnxruntime.InferenceSession(graph, options, providers=["CPUExecutionProvider"])
    longest = max(map(len, ids))
    feed = {
        "input_ids": np.array([one + [pad] * (longest - len(one)) for one in ids], np.int64),
        "attention_mask": np.array([[1] * len(one) + [0] * (longest - len(one)) for one in ids], np.int64),
        "token_type_ids": np.zeros((len(ids), longest), np.int64),
    }
    wanted = {node.name for node in session.get_inputs()}
    vectors: Vectors = session.run(None, {name: array for name, array in feed.items() if name in wanted})[0]
    return vectors
