"""The word `device` for training and for the torch engine, with torch's own answers made up."""

from __future__ import annotations

import pytest

from munjang.errors import DeviceError, UsageError

torch = pytest.importorskip("torch", reason="torch is not installed")

from munjang.train.load_folder import choose_torch_device  # noqa: E402
from munjang.train.recipe import make_recipe  # noqa: E402

VALUES = {"output": "out", "model": {"base": "x"}, "stage": [{"data": [{"path": "pairs.tsv"}]}]}


@pytest.fixture
def found(monkeypatch):
    def pretend(*, cuda: bool = False, hip: str | None = None, mps: bool = False) -> None:
        monkeypatch.setattr("torch.cuda.is_available", lambda: cuda)
        monkeypatch.setattr("torch.version.hip", hip)
        monkeypatch.setattr("torch.backends.mps.is_available", lambda: mps)

    return pretend


def test_auto_takes_a_gpu_and_then_the_cpu(found):
    found()
    assert choose_torch_device("auto")[1] == torch.device("cpu")
    found(cuda=True, mps=True)
    assert choose_torch_device("auto")[0].name == "cuda"
    found(cuda=True, hip="6.4")
    spec, device = choose_torch_device("auto")
    assert (spec.name, device) == ("rocm", torch.device("cuda"))
    found(mps=True)
    assert choose_torch_device("auto")[0].name == "mps"
    assert choose_torch_device("auto", auto=("cuda", "rocm"))[0].name == "cpu"


def test_a_device_that_torch_does_not_find_is_an_error_that_says_so(found):
    found()
    with pytest.raises(DeviceError, match=r"^device 'cuda' \(NVIDIA GPU\) is not there: torch .* finds none\n  install a torch"):
        choose_torch_device("cuda")
    found(cuda=True)
    with pytest.raises(DeviceError, match="device 'rocm'"):
        choose_torch_device("rocm")
    with pytest.raises(UsageError, match="device 'directml' runs the fast engine only"):
        choose_torch_device("directml")


def test_a_recipe_takes_the_word_and_old_runs_can_be_resumed():
    assert "device" not in make_recipe(VALUES).to_json()
    assert make_recipe({**VALUES, "device": "cpu"}).to_json()["device"] == "cpu"
    with pytest.raises(UsageError, match="device"):
        make_recipe({**VALUES, "device": "gpu"})
