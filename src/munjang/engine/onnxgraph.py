"""A small builder for writing ONNX graphs: nodes get fresh names, arrays become initialisers once.

What it leaves to others: what the nodes mean.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from munjang.engine.row_table import FED, SMALLEST_BYTES

if TYPE_CHECKING:
    import onnx

MICROSOFT = "com.microsoft"
"""onnxruntime's own operators: fused, faster, not portable."""

OPSET = 20
IR_VERSION = 9

FLOAT, INT32, INT64, BOOL, FLOAT16 = 1, 6, 7, 9, 10
"""ONNX's numbers for the types of elements (TensorProto.DataType); the library itself is imported only where a graph is written."""


Input: TypeAlias = tuple[str, int, list[Any]]
"""A graph input: its name, element type and shape."""


class GraphBuilder:
    """Collects nodes and initialisers, and turns them into a model; with `feeds_tables` the rows of large tables become its inputs."""

    def __init__(self, *, feeds_tables: bool = False) -> None:
        self.feeds_tables = feeds_tables
        self.tables: dict[str, np.ndarray[Any, Any]] = {}
        self.nodes: list[onnx.NodeProto] = []
        self.initializers: dict[str, np.ndarray[Any, Any]] = {}
        self._constants: dict[tuple[str, tuple[int, ...], bytes], str] = {}
        self._count = 0

    def add(self, operator: str, inputs: Sequence[str], *, domain: str = "", outputs: int = 1, **attributes: Any) -> str:
        """Write one node and return its (first) output; "" stands for an input left out."""
        return self.add_many(operator, inputs, outputs, domain=domain, **attributes)[0]

    def add_many(self, operator: str, inputs: Sequence[str], outputs: int, *, domain: str = "", **attributes: Any) -> list[str]:
        """Write one node and return all of its outputs."""
        from onnx import helper

        names = [self.fresh(operator) for _ in range(outputs)]
        self.nodes.append(helper.make_node(operator, list(inputs), names, domain=domain, **attributes))
        return names

    def array(self, name: str, value: np.ndarray[Any, Any]) -> str:
        """Keep a weight under a name that people can read."""
        self.initializers[name] = np.asarray(value, order="C")
        return name

    def rows(self, name: str, table: np.ndarray[Any, Any], ids: str) -> str:
        """Take the rows of a table that `ids` name."""
        if not self.feeds_tables or table.nbytes < SMALLEST_BYTES:
            return self.add("Gather", [self.array(name, table), ids])
        self.tables[FED + name] = table
        return FED + name

    def constant(self, value: Any, dtype: Any = np.int64) -> str:
        """Keep a small constant; equal ones are kept once."""
        array = np.asarray(value, dtype)
        key = (array.dtype.str, array.shape, array.tobytes())
        if key not in self._constants:
            self._constants[key] = self.array(f"constant_{len(self._constants)}", array)
        return self._constants[key]

    def name_output(self, output: str, name: str) -> None:
        """Give an output the name by which callers will ask for it."""
        from onnx import helper

        self.nodes.append(helper.make_node("Identity", [output], [name]))

    def fresh(self, stem: str) -> str:
        """Return a name not used before."""
        self._count += 1
        return f"{stem}_{self._count}"

    def branch(self) -> GraphBuilder:
        """Return a builder for a sub-graph of an If node; it shares names and constants with this one."""
        return _Branch(self)

    def subgraph(self, name: str, output: str) -> onnx.GraphProto:
        """Return the nodes as a graph without inputs, for an If node."""
        from onnx import helper

        return helper.make_graph(self.nodes, name, [], [helper.make_tensor_value_info(output, FLOAT, None)])

    def loop_body(self, name: str, inputs: Sequence[tuple[str, int]], outputs: Sequence[tuple[str, int]]) -> onnx.GraphProto:
        """Return the nodes as the body of a Loop; the inputs are scalars."""
        from onnx import helper

        ins = [helper.make_tensor_value_info(each, kind, []) for each, kind in inputs]
        outs = [helper.make_tensor_value_info(each, kind, [] if kind == BOOL else None) for each, kind in outputs]
        return helper.make_graph(self.nodes, name, ins, outs)

    def model(
        self,
        inputs: Sequence[tuple[str, int, list[Any]]],
        outputs: Sequence[tuple[str, list[Any]]],
        *,
        outside: frozenset[str] = frozenset(),
    ) -> onnx.ModelProto:
        """Return the finished model; the weights named in `outside` are only declared, for the session to bring from memory."""
        from onnx import helper, numpy_helper

        fed = [(name, FLOAT, ["T", table.shape[1]]) for name, table in self.tables.items()]
        kept = [_place_outside(n, v) if n in outside else numpy_helper.from_array(v, n) for n, v in self.initializers.items()]
        graph = helper.make_graph(
            self.nodes,
            "munjang",
            [helper.make_tensor_value_info(name, kind, shape) for name, kind, shape in [*inputs, *fed]],
            [helper.make_tensor_value_info(name, FLOAT, shape) for name, shape in outputs],
            kept,
        )
        opsets = [helper.make_opsetid("", OPSET)]
        if any(node.domain == MICROSOFT for node in _list_nodes(graph)):
            opsets.append(helper.make_opsetid(MICROSOFT, 1))
        return helper.make_model(graph, opset_imports=opsets, ir_version=IR_VERSION, producer_name="munjang")


class _Branch(GraphBuilder):
    """A builder inside an If: nodes of its own, everything else the outer builder's."""

    def __init__(self, outer: GraphBuilder) -> None:
        super().__init__()
        self._outer = outer

    def array(self, name: str, value: np.ndarray[Any, Any]) -> str:
        return self._outer.array(name, value)

    def constant(self, value: Any, dtype: Any = np.int64) -> str:
        return self._outer.constant(value, dtype)

    def name_output(self, output: str, name: str) -> None:
        """Give an output the name by which callers will ask for it."""
        from onnx import helper

        self.nodes.append(helper.make_node("Identity", [output], [name]))

    def fresh(self, stem: str) -> str:
        return self._outer.fresh(stem)


def embed_weights(model: bytes, weights: Mapping[str, np.ndarray[Any, Any]]) -> bytes:
    """Return the model with the weights in it that it only declares."""
    import onnx
    from onnx import numpy_helper

    whole = onnx.load_model_from_string(model)
    for tensor in whole.graph.initializer:
        if tensor.name in weights:
            tensor.CopyFrom(numpy_helper.from_array(weights[tensor.name], tensor.name))
    return bytes(whole.SerializeToString())


def _place_outside(name: str, value: np.ndarray[Any, Any]) -> onnx.TensorProto:
    """Declare an initialiser whose bytes the session brings from memory."""
    from onnx import TensorProto, helper

    tensor = TensorProto(name=name, data_type=helper.np_dtype_to_tensor_dtype(value.dtype), dims=value.shape)
    tensor.data_location = TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value="memory")
    return tensor


def _list_nodes(graph: onnx.GraphProto) -> list[onnx.NodeProto]:
    found = list(graph.node)
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.HasField("g"):
                found += _list_nodes(attribute.g)
    return found
