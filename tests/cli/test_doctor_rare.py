"""What the doctor says of machines that are not this one."""

from __future__ import annotations

from collections import namedtuple
from pathlib import Path

import pytest
from tests.cli.test_doctor import tiny_default  # noqa: F401

from munjang.cli import doctor
from munjang.cli.doctor import models
from munjang.models import registry


@pytest.mark.parametrize("blas", [{"name": "none", "found": False}, {"name": "cblas", "found": True}, {}], ids=["none", "plain", "unknown"])
def test_a_numpy_without_an_optimised_blas_is_noted(blas: dict[str, object], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("numpy.show_config", lambda mode: {"Build Dependencies": {"blas": blas}})
    found = doctor.blas_finding()
    assert found.state == "note"
    assert f"with plain BLAS ({blas.get('name', 'unknown')})" in found.found
    assert found.advice == "search is slow; pip install numpy brings OpenBLAS"


def test_a_numpy_that_does_not_say_how_it_was_built_is_a_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("numpy.show_config", lambda mode: {})
    assert doctor.blas_finding().state == "problem"


def test_a_disk_that_is_nearly_full_is_noted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr("shutil.disk_usage", lambda place: usage(10**12, 10**12, 100 * 10**6))
    found = doctor.home_finding(tmp_path)
    assert found.state == "note"
    assert "100.0 MB free on the disk" in found.found
    assert found.advice is not None
    assert "set MUNJANG_HOME elsewhere" in found.advice


@pytest.mark.usefixtures("tiny_default")
def test_other_models_are_counted_and_not_looked_into(tiny_bert_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = registry.list_models()
    more = [registry.Found(f"mine-{number}", tiny_bert_folder.parent / f"mine-{number}", "home") for number in range(2)]
    monkeypatch.setattr("munjang.cli.doctor.list_models", lambda: [*own, *more])
    [found] = [finding for finding in models() if finding.name == "other models"]
    assert (found.state, found.found) == ("ok", "2; munjang models check NAME checks one")


def test_without_torch_nothing_is_said_of_it() -> None:
    names = [finding.name for finding in doctor.software(lambda package: package != "torch")]
    assert "torch" not in names
    assert "torch" in [finding.name for finding in doctor.software(lambda package: True)]


def test_an_onnxruntime_that_cannot_use_the_cpu_is_a_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("onnxruntime.get_available_providers", lambda: ["TensorrtExecutionProvider"])
    found = doctor.onnxruntime_finding()
    assert found.state == "problem"
    assert found.found == "has no CPU provider, found TensorrtExecutionProvider"
