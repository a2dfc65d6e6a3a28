"""`--device` and `--engine`: in every command that takes a model, refused in one line, and told where it is not the CPU."""

from __future__ import annotations

from tests.cli.test_spellings import parameters

from munjang.cli import load_model
from munjang.cli.finding import devices
from munjang.engine.devices import CPU_PROVIDER, DEVICES


def test_every_command_with_a_model_takes_both():
    having = {flag: {name for name, parameter in parameters() if flag in parameter.opts} for flag in ("--pooling", "--device", "--engine")}
    unpooled = {"rerank", "evaluate nli", "compare"}
    assert having["--device"] == having["--pooling"] | unpooled | {"distill", "ablate"}
    assert having["--engine"] == (having["--pooling"] | unpooled) - {"train"}


def test_a_device_that_is_missing_is_an_error_that_names_the_package(munjang):
    outcome = munjang("similar", "a", "b", "--device", "openvino")
    assert outcome.code == 2
    assert "device 'openvino'" in outcome.err
    assert "pip install openvino" in outcome.err


def test_arithmetic_that_the_device_has_not_is_refused(munjang):
    outcome = munjang("similar", "a", "b", "--compute", "float16", "--device", "cpu")
    assert (outcome.code, "cpu computes in float32 or int8" in outcome.err) == (2, True)


def test_the_device_is_told_only_where_it_is_not_the_cpu(capsys):
    class Model:
        name, device, compute = "small", "cpu", "float32"

    load_model._tell(Model())
    assert capsys.readouterr().err == ""
    Model.device, Model.compute = "cuda", "float16"
    load_model._tell(Model())
    assert capsys.readouterr().err == "munjang: small computes on cuda in float16\n"


def test_doctor_lists_every_device_of_the_system_and_what_it_would_need():
    findings = {finding.name: finding for finding in devices(["CUDAExecutionProvider", CPU_PROVIDER], system="Linux")}
    assert list(findings) == [f"device {spec.name}" for spec in DEVICES if "Linux" in spec.systems]
    assert findings["device cuda"].found == "NVIDIA GPU; float16, float32, used by default"
    assert findings["device cpu"].found == "processor; float32, int8; --device cpu"
    missing = findings["device openvino"]
    assert (missing.state, missing.advice) == ("note", "pip install openvino")
    assert [finding.name for finding in devices([CPU_PROVIDER], system="Darwin")] == ["device cpu", "device mps"]
