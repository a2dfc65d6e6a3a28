"""Devices by a list of providers that is made up: which is chosen, what a missing one says, and what each computes in."""

from __future__ import annotations

import dataclasses
import warnings
from typing import get_args

import numpy as np
import onnxruntime
import pytest
from tests.conftest import write_cross_encoder

from munjang.engine.cross import CrossEngine
from munjang.engine.devices import (
    CPU,
    CPU_PROVIDER,
    DEVICES,
    OPENVINO,
    DeviceWarning,
    Placement,
    choose_placements,
    find_device,
    list_installed,
    open_first,
)
from munjang.engine.folder import read_folder
from munjang.engine.onnxgraph import embed_weights
from munjang.engine.session import Session
from munjang.engine.transformer import TransformerEngine, _write_graph
from munjang.errors import DeviceError, UsageError
from munjang.limits import LIMITS
from munjang.models.sentence_encoder import SentenceEncoder
from munjang.types import Compute, Device

GPU_BUILD = ["TensorrtExecutionProvider", "CUDAExecutionProvider", CPU_PROVIDER]
PLAIN_BUILD = ["AzureExecutionProvider", CPU_PROVIDER]


def test_every_device_has_one_row_and_every_row_a_known_arithmetic():
    assert sorted(spec.name for spec in DEVICES) == sorted(set(get_args(Device)) - {"auto"})
    for spec in DEVICES:
        assert spec.computes, spec.name
        assert set(spec.computes) | set(spec.torch_computes) <= set(get_args(Compute)) - {"auto"}
        assert bool(spec.torch) == bool(spec.torch_computes)
        assert spec.efficient_tokens <= spec.batch_tokens


def test_with_the_cpu_provider_alone_auto_is_the_placement_of_old():
    assert choose_placements("auto", "float32", providers=PLAIN_BUILD) == [CPU]
    assert choose_placements("cpu", "float32", providers=GPU_BUILD) == [CPU]
    assert (CPU.batch_tokens, CPU.efficient_tokens, CPU.layout) == (LIMITS.batch_tokens, LIMITS.efficient_tokens, "packed")


def test_auto_takes_the_best_device_that_is_installed_and_keeps_the_cpu_in_reserve():
    assert [place.device for place in choose_placements("auto", "float32", providers=GPU_BUILD)] == ["cuda", "cpu"]
    assert [place.device for place in choose_placements("auto", "float32", providers=["MIGraphXExecutionProvider", CPU_PROVIDER])] == [
        "rocm",
        "cpu",
    ]
    # asked for by name only: unmeasured, or no faster than the CPU provider
    for alone in (OPENVINO, "CoreMLExecutionProvider"):
        assert [place.device for place in choose_placements("auto", "float32", providers=[alone, CPU_PROVIDER])] == ["cpu"]


def test_the_arithmetic_is_float32_unless_asked_and_auto_is_what_the_device_wants():
    [cuda] = choose_placements("cuda", "float32", providers=GPU_BUILD)
    assert cuda.compute == "float32"
    assert cuda.options["use_tf32"] == "0"
    assert [place.compute for place in choose_placements("auto", "auto", providers=GPU_BUILD)] == ["float16", "float32"]
    assert choose_placements("auto", "auto", providers=PLAIN_BUILD) == [CPU]
    assert [place.device for place in choose_placements("auto", "int8", providers=GPU_BUILD)] == ["cpu"]
    with pytest.raises(UsageError, match="compute='int8' does not run here: cuda computes in float16 or float32"):
        choose_placements("cuda", "int8", providers=GPU_BUILD)
    with pytest.raises(UsageError, match="compute='float16' does not run here: cpu computes in float32 or int8"):
        choose_placements("auto", "float16", providers=PLAIN_BUILD)


def test_a_device_that_is_missing_names_the_package(monkeypatch):
    monkeypatch.setattr("platform.system", lambda: "Linux")
    with pytest.raises(DeviceError, match=r"^device 'cuda' \(.*\n  pip uninstall onnxruntime, then pip install onnxruntime-gpu$"):
        choose_placements("cuda", "float32", providers=PLAIN_BUILD)
    with pytest.raises(DeviceError, match=r"^device 'openvino' \(.*\n  pip install openvino$"):  # it stands beside onnxruntime
        choose_placements("openvino", "float32", providers=PLAIN_BUILD)
    monkeypatch.setattr("platform.system", lambda: "Darwin")
    with pytest.raises(DeviceError, match="it exists under Linux and Windows only"):
        choose_placements("cuda", "float32", providers=PLAIN_BUILD)


def test_a_device_that_nobody_knows_is_refused_with_those_that_there_are(tiny_bert_folder):
    with pytest.raises(UsageError, match="device='gpu' is unknown; expected one of auto, cuda, rocm"):
        SentenceEncoder.load(tiny_bert_folder, device="gpu")
    with pytest.raises(UsageError, match="compute='half' is unknown"):
        SentenceEncoder.load(tiny_bert_folder, compute="half")


def test_a_device_that_does_not_start_gives_way_to_the_next_with_a_warning():
    def start(place: Placement) -> str:
        if place.device == "cuda":
            raise DeviceError("no driver\n  install it")
        return place.device

    places = choose_placements("auto", "float32", providers=GPU_BUILD)
    with pytest.warns(DeviceWarning, match="device 'cuda' is installed but does not start: no driver"):
        assert open_first(places, start) == "cpu"
    with pytest.raises(DeviceError, match="no driver"):
        open_first(places[:1], start)


def test_a_provider_that_onnxruntime_leaves_out_is_never_taken_for_it(tiny_bert_folder, monkeypatch):
    # where a provider's libraries are missing, onnxruntime goes on with the CPU; that is no answer to device="cuda"
    monkeypatch.setattr("munjang.engine.devices._get_providers", lambda: GPU_BUILD)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")  # onnxruntime's own, about a provider that this build has not
        with pytest.raises(DeviceError, match="^CUDAExecutionProvider "):
            SentenceEncoder.load(tiny_bert_folder, device="cuda")
        assert SentenceEncoder.load(tiny_bert_folder).device == "cpu"
    assert any(isinstance(each.message, DeviceWarning) for each in told)


def test_a_gpu_gets_larger_batches(tiny_bert_folder, monkeypatch):
    model = SentenceEncoder.load(tiny_bert_folder)
    sizes: list[int] = []
    run = model.engine.vectors_of_batches
    monkeypatch.setattr(
        model.engine,
        "vectors_of_batches",
        lambda batches, **options: sizes.extend(sum(map(len, each)) for each in batches) or run(batches, **options),
    )
    texts = [f"a text about the number {number}" for number in range(400)]
    expected = model.encode(texts)
    assert max(sizes) <= LIMITS.batch_tokens
    sizes.clear()
    gpu = find_device("cuda")
    model.engine.placement = dataclasses.replace(CPU, batch_tokens=gpu.batch_tokens, efficient_tokens=gpu.efficient_tokens)
    np.testing.assert_allclose(model.encode(texts), expected, atol=2e-6)
    assert max(sizes) > LIMITS.batch_tokens


IDS = [[1, 9, 12, 2], [1, 7, 2], [1, 8, 9, 10, 11, 12, 2]]


@pytest.mark.parametrize("family", ["bert", "roberta", "mpnet"])
@pytest.mark.parametrize("pooling", ["mean", "cls", "max", "lasttoken"])
def test_a_padded_graph_of_standard_operators_gives_the_same_vectors(tiny_folder, family, pooling):
    folder = read_folder(tiny_folder(family, pooling=(pooling,)))
    packed = TransformerEngine(folder, threads=1)
    padded = TransformerEngine(folder, placement=dataclasses.replace(CPU, layout="padded"), threads=1)
    np.testing.assert_allclose(padded.vectors(IDS), packed.vectors(IDS), atol=1e-5)


def test_a_padded_graph_leaves_a_prompt_out_of_pooling(tiny_folder):
    folder = read_folder(tiny_folder("bert", include_prompt=False))
    packed = TransformerEngine(folder, threads=1)
    padded = TransformerEngine(folder, placement=dataclasses.replace(CPU, layout="padded"), threads=1)
    np.testing.assert_allclose(padded.vectors(IDS, hidden_prefix=2), packed.vectors(IDS, hidden_prefix=2), atol=1e-5)


@pytest.mark.parametrize("layout", ["packed", "padded"])
def test_float16_weights_stay_near_float32_and_apart_from_each_other(tiny_bert_folder, layout):
    """Run on the CPU provider, which has no float16 arithmetic of its own and imitates it."""
    folder = read_folder(tiny_bert_folder)
    place = dataclasses.replace(CPU, layout=layout, compute="float16")
    half, whole = TransformerEngine(folder, placement=place, threads=1), TransformerEngine(folder, threads=1).vectors(IDS)
    vectors = half.vectors(IDS)
    assert float((vectors * whole).sum(axis=1).min()) > 0.9999
    assert float(np.abs(vectors - whole).max()) > 0
    np.testing.assert_allclose(np.concatenate([half.vectors([one]) for one in IDS]), vectors, atol=2e-3)


def test_a_cross_encoder_scores_the_same_in_a_padded_graph(tmp_path):
    write_cross_encoder(tmp_path / "cross", 2)
    folder = read_folder(tmp_path / "cross")
    pairs = [(ids, [0] * (len(ids) - 1) + [1]) for ids in IDS]
    packed = CrossEngine(folder, threads=1).logits(pairs)
    padded = CrossEngine(folder, placement=dataclasses.replace(CPU, layout="padded"), threads=1).logits(pairs)
    np.testing.assert_allclose(padded, packed, atol=1e-5)


def test_runs_at_once_follow_the_device(tiny_bert_folder, monkeypatch):
    engine = TransformerEngine(read_folder(tiny_bert_folder), placement=dataclasses.replace(CPU, at_once=1), threads=4)
    session = engine._session
    assert isinstance(session, Session)
    assert session.threads == 1


def test_installed_devices_follow_the_providers():
    assert [spec.name for spec in list_installed(GPU_BUILD)] == ["cuda", "cpu", "tensorrt"]
    assert [spec.name for spec in list_installed(PLAIN_BUILD)] == ["cpu"]


def test_a_fingerprint_names_the_arithmetic_and_not_the_device(tiny_bert_folder):
    model = SentenceEncoder.load(tiny_bert_folder)
    before = model.fingerprint_as("float32")
    model.engine.placement = dataclasses.replace(CPU, device="cuda")
    assert model.fingerprint_as("float32") == before
    assert len({model.fingerprint_as(each) for each in ("float32", "float16", "bfloat16", "int8")}) == 4
    assert repr(model).count("on cuda") == 1


OPENVINO_BUILD = [CPU_PROVIDER, OPENVINO]


def test_bfloat16_runs_through_openvino_where_the_processor_multiplies_so():
    for device in ("auto", "openvino"):
        [place] = choose_placements(device, "bfloat16", providers=OPENVINO_BUILD, flags=frozenset({"avx512_bf16"}))
        assert (place.device, place.compute, place.layout) == ("openvino", "bfloat16", "padded")
    with pytest.raises(DeviceError, match="'openvino', which is not installed: .*\n.*pip install openvino"):
        choose_placements("auto", "bfloat16", providers=PLAIN_BUILD, flags=frozenset({"amx_bf16"}))
    for device in ("auto", "openvino"):
        with pytest.raises(UsageError, match="gains nothing here: the processor lists none of amx_bf16, avx512_bf16, bf16"):
            choose_placements(device, "bfloat16", providers=OPENVINO_BUILD, flags=frozenset({"avx2"}))
    with pytest.raises(UsageError, match="cpu computes in float32 or int8"):
        choose_placements("cpu", "bfloat16", providers=OPENVINO_BUILD, flags=frozenset({"bf16"}))


def test_auto_arithmetic_is_bfloat16_where_openvino_and_the_processor_have_it_and_no_gpu_is_taken():
    def choose(device: Device, providers: list[str], flag: str) -> list[tuple[Device, Compute]]:
        places = choose_placements(device, "auto", providers=providers, flags=frozenset({flag}))
        return [(place.device, place.compute) for place in places]

    assert choose("auto", OPENVINO_BUILD, "avx512_bf16") == [("openvino", "bfloat16"), ("cpu", "float32")]
    assert choose("auto", OPENVINO_BUILD, "avx2") == [("cpu", "float32")]
    assert choose("auto", [*GPU_BUILD, OPENVINO], "avx512_bf16") == [("cuda", "float16"), ("cpu", "float32")]
    assert choose("openvino", OPENVINO_BUILD, "bf16") == [("openvino", "bfloat16")]
    assert choose("openvino", OPENVINO_BUILD, "avx2") == [("openvino", "float32")]
    assert choose("cpu", OPENVINO_BUILD, "bf16") == [("cpu", "float32")]


def test_weights_that_a_graph_only_declares_can_be_put_into_it(tiny_bert_folder):
    written = _write_graph(read_folder(tiny_bert_folder), dataclasses.replace(CPU, layout="padded"))
    whole = onnxruntime.InferenceSession(embed_weights(written.model, written.weights), providers=[CPU_PROVIDER])
    engine = TransformerEngine(read_folder(tiny_bert_folder), placement=dataclasses.replace(CPU, layout="padded"), threads=1)
    np.testing.assert_array_equal(whole.run(["vectors"], engine._feed(IDS, 0))[0], engine.vectors(IDS))


def test_the_processors_flags_are_read_from_what_the_system_lists(tmp_path):
    from munjang.engine.devices import multiplies_bfloat16, read_flags

    listed = tmp_path / "cpuinfo"
    listed.write_text("model name\t: X\nflags\t\t: fpu avx2 avx512_bf16\n", encoding="utf-8")
    assert read_flags(listed) == {"fpu", "avx2", "avx512_bf16"}
    assert multiplies_bfloat16(read_flags(listed))
    assert read_flags(tmp_path / "missing") == frozenset()
    assert not multiplies_bfloat16(frozenset())
