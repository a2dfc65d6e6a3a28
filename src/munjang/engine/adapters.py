"""Task adapters: a change of low rank to each weight of a model, one for every task, chosen at each run.

A folder holds, beside a weight W, two narrow matrices per task: the task reads x W + (x A) B. The graph keeps W once and all narrow
matrices in stacks; its input `adapter` says which of a stack counts, 0 for none.

Shapes: K tasks, R rank, I and O the widths that a layer reads and gives, V pieces, D width of an embedding.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from munjang.engine.modules import TransformerModule, list_tasks
from munjang.engine.onnxgraph import INT64, GraphBuilder, Input
from munjang.engine.weights import Weights
from munjang.errors import FolderError, quote
from munjang.types import Floats

ADAPTER: Input = ("adapter", INT64, [])
"""The input that says which task is computed."""
ORIGINAL, LOW_A, LOW_B = (f".parametrizations.weight.{part}" for part in ("original", "0.lora_A", "0.lora_B"))
LARGEST_RANK, LARGEST_ALPHA = 1_024, 1e4


@dataclass(frozen=True)
class LowRank:
    """What each task adds to one weight."""

    a_KIR: Floats
    b_KRO: Floats

    def columns(self, start: int, stop: int) -> LowRank:
        """Return what is added to some columns of the weight."""
        return LowRank(self.a_KIR, self.b_KRO[:, :, start:stop])


def name_originals(weights: Weights) -> None:
    """Let each weight that has adapters be found under its plain name."""
    for name in list(weights):
        if name.endswith(ORIGINAL):
            weights.alias(name.removesuffix(ORIGINAL) + ".weight", name)


class AdapterReader:
    """Reads the narrow matrices of one folder and checks them."""

    def __init__(self, module: TransformerModule, weights: Weights) -> None:
        self.tasks, self.weights, self.where = len(list_tasks(module)), weights, module.folder
        self.rank = self._number(module.config, "lora_rank", 4, LARGEST_RANK)
        self.scale = self._number(module.config, "lora_alpha", 1, LARGEST_ALPHA) / self.rank

    def read(self, name: str, shape: tuple[int, ...], *, table: bool = False) -> LowRank | None:
        """Return what the tasks add to the weight `name`, which a file keeps as (out, in), or as (rows, width) where it is a `table`."""
        if not self.tasks or name + LOW_A not in self.weights:
            return None
        rank, tasks = int(self.rank), self.tasks
        outer, inner = shape
        wanted = [(tasks, outer, rank), (tasks, rank, inner)] if table else [(tasks, rank, inner), (tasks, outer, rank)]
        found = [self.weights.shape(name + part) if name + part in self.weights else None for part in (LOW_A, LOW_B)]
        if found != wanted:
            raise FolderError(f"{self.where}: the adapters of {quote(name)} have shapes {found}, expected {wanted}")
        a, b = (self.weights.floats(name + part) for part in (LOW_A, LOW_B))
        if not table:
            a, b = a.transpose(0, 2, 1), b.transpose(0, 2, 1)
        return LowRank(a, b * np.float32(self.scale))

    def _number(self, config: dict[str, Any], key: str, default: float, largest: float) -> float:
        value = config.get(key, default)
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= largest or (key == "lora_rank" and value % 1):
            raise FolderError(f"{self.where / 'config.json'}: {key} is {quote(str(value))}, expected a number from 1 to {largest:g}")
        return value


def add_low_rank(builder: GraphBuilder, x: str, y: str, low: LowRank, name: str, shift: Floats | None = None) -> str:
    """Write y + ((x − shift) A) B of the task that is computed; x and y are rows."""
    a_KIR = _with_none(low.a_KIR)
    inputs = [x, _choose(builder, f"{name}.low_a", a_KIR)]
    if shift is not None and shift.any():
        inputs.append(_choose(builder, f"{name}.low_shift", (-(shift @ a_KIR.astype(np.float64))).astype(np.float32)))
    return builder.add("Gemm", [builder.add("Gemm", inputs), _choose(builder, f"{name}.low_b", _with_none(low.b_KRO)), y])


def add_low_rank_rows(builder: GraphBuilder, ids: str, y: str, low: LowRank, name: str) -> str:
    """Write y + A[ids] B of the task that is computed."""
    tasks, rows, rank = low.a_KIR.shape
    task = builder.add(
        "Max", [builder.add("Sub", [ADAPTER[0], builder.constant(1)]), builder.constant(0)]
    )  # none reads the first, and B makes it nothing
    places = builder.add("Add", [ids, builder.add("Mul", [task, builder.constant(rows)])])
    narrow = builder.add("Gather", [builder.array(f"{name}.low_a", low.a_KIR.reshape(tasks * rows, rank)), places])
    return builder.add("Gemm", [narrow, _choose(builder, f"{name}.low_b", _with_none(low.b_KRO)), y])


def add_task_row(builder: GraphBuilder, y: str, low: LowRank, name: str) -> str:
    """Write y + A[0] B of the task that is computed: what it adds to a table whose first row all tokens read."""
    return builder.add("Add", [y, _choose(builder, f"{name}.low", _with_none((low.a_KIR[:, :1] @ low.b_KRO)[:, 0]))])


def _choose(builder: GraphBuilder, name: str, stack: Floats) -> str:
    return builder.add("Gather", [builder.array(name, stack), ADAPTER[0]])


def _with_none(stack: Floats) -> Floats:
    return np.concatenate([np.zeros_like(stack[:1]), stack])
