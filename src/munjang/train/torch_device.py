"""The word `device` → torch's device, for training and for the torch engine; what each device can do stands in `engine/devices.py`."""

from __future__ import annotations

import torch

from munjang.engine.devices import DEVICES, DeviceSpec, find_device
from munjang.errors import DeviceError, UsageError
from munjang.types import Device


def choose_torch_device(device: Device, *, auto: tuple[Device, ...] = ("cuda", "rocm", "mps")) -> tuple[DeviceSpec, torch.device]:
    """Return the device and torch's name for it; "auto" takes the first of `auto` that is there, else the CPU."""
    if device == "auto":
        device = next((name for name in auto if is_available(name)), "cpu")
    spec = find_device(device)
    if not spec.torch:
        known = ", ".join(each.name for each in DEVICES if each.torch)
        raise UsageError(f"device {device!r} runs the fast engine only; torch computes on {known}")
    if not is_available(device):
        raise DeviceError(
            f"device {device!r} ({spec.hardware}) is not there: torch {torch.__version__} finds none\n"
            f"  install a torch that is built for it, and its driver; or choose device 'cpu'"
        )
    return spec, torch.device(spec.torch)


def is_available(device: Device) -> bool:
    """Say whether torch can compute there."""
    if device == "mps":
        return bool(torch.backends.mps.is_available())
    if device in ("cuda", "rocm"):
        built_for_amd = getattr(torch.version, "hip", None) is not None
        return bool(torch.cuda.is_available()) and built_for_amd == (device == "rocm")
    return device == "cpu"
