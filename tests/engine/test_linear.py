"""Linear layers in a graph: float32 equals numpy, int8 stays near and a row does not know its neighbours."""

from __future__ import annotations

import numpy as np
import pytest

from munjang.engine.linear import FloatWriter, Int8Writer
from munjang.engine.onnxgraph import FLOAT, GraphBuilder

RANDOM = np.random.default_rng(0)
W = RANDOM.normal(size=(24, 17)).astype(np.float32)
B = RANDOM.normal(size=17).astype(np.float32)
X = RANDOM.normal(size=(9, 24)).astype(np.float32)
ADD = RANDOM.normal(size=(9, 17)).astype(np.float32)


def applied(kind, x, *, bias=None, add=None, w=W, after=None):
    import onnxruntime

    builder = GraphBuilder()
    writer = kind(builder)
    out = writer.apply(writer.prepare("x", after=after), w, "layer", bias=bias, add=None if add is None else builder.array("add", add))
    builder.name_output(out, "y")
    model = builder.model([("x", FLOAT, ["N", w.shape[0]])], [("y", ["N", w.shape[1]])])
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run(["y"], {"x": x})[0]


@pytest.mark.parametrize(("bias", "add"), [(None, None), (B, None), (None, ADD)])
def test_float32_equals_numpy(bias, add):
    expected = X.astype(np.float64) @ W + (0 if bias is None else bias) + (0 if add is None else add)
    assert np.abs(applied(FloatWriter, X, bias=bias, add=add) - expected).max() < 1e-5


@pytest.mark.parametrize(("bias", "add"), [(None, None), (B, None), (None, ADD)])
def test_int8_stays_near_float32(bias, add):
    expected = applied(FloatWriter, X, bias=bias, add=add)
    found = applied(Int8Writer, X, bias=bias, add=add)
    assert np.abs(found - expected).max() < 0.05 * np.abs(expected).max()


def test_an_int8_row_does_not_depend_on_other_rows():
    loud = np.concatenate([X, 1000 * X])
    assert np.array_equal(applied(Int8Writer, loud)[: len(X)], applied(Int8Writer, X))


def test_an_int8_row_scales_with_its_input():
    assert np.allclose(applied(Int8Writer, 1e4 * X), 1e4 * applied(Int8Writer, X), rtol=1e-3, atol=1e-2)


@pytest.mark.parametrize("kind", [FloatWriter, Int8Writer])
def test_zeros_stay_zeros(kind):
    assert not applied(kind, np.zeros((3, 24), np.float32)).any()
    assert not applied(kind, X, w=np.zeros_like(W)).any()


@pytest.mark.parametrize("kind", [FloatWriter, Int8Writer])
def test_effective_weights_are_what_the_graph_applies(kind):
    effective = kind(GraphBuilder()).effective(W)
    rows = np.eye(24, dtype=np.float32)
    assert np.abs(applied(kind, rows) - effective).max() < 1e-2 * np.abs(W).max()
    assert np.abs(effective - W).max() <= np.abs(W).max(axis=0).max() / 127


@pytest.mark.parametrize("after", ["gelu", "relu"])
def test_an_input_after_an_activation_keeps_its_precision(after):
    x = np.maximum(X, 0) if after == "relu" else X * (X > -0.17)
    assert np.abs(applied(Int8Writer, x, after=after) - x @ W).max() < 0.05 * np.abs(x @ W).max()


def test_the_largest_values_do_not_overflow():
    # pairs of products are added in 16 bits on processors without VNNI
    x, w = np.full((2, 512), 3, np.float32), np.full((512, 4), 5, np.float32)
    assert np.allclose(applied(Int8Writer, x, w=w), x @ w, rtol=0.01)
    assert np.allclose(applied(Int8Writer, -x, w=w), -x @ w, rtol=0.01)
