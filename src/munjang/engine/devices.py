"""Where a model computes: one table of devices, and the choice among them.

Comes in: the device and the arithmetic that the caller asks for, and the execution providers that the installed onnxruntime has. Goes out:
`Placement`s, the best first. A name, a package, a number type or a batch size of a device stands in `DEVICES` and nowhere else.

float32 means the same on every device: TF32 is switched off and no provider may round on its own. In bfloat16 OpenVINO multiplies so
where the processor has instructions for it (onnxruntime does not on such a CPU). So a vector's fingerprint names the arithmetic
(`compute`) and not the device, and a library made on a CPU is searched on a GPU.
"""

from __future__ import annotations

import platform
import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Literal, NoReturn, TypeAlias, TypeVar

from munjang.errors import DeviceError, UsageError
from munjang.limits import LIMITS
from munjang.types import Compute, Device, EngineName

CPUINFO = Path("/proc/cpuinfo")
BFLOAT16_FLAGS = frozenset({"avx512_bf16", "amx_bf16", "bf16"})
"""Instruction sets that multiply in bfloat16: of Intel and AMD, of Intel alone, of ARM."""


def read_flags(cpuinfo: Path = CPUINFO) -> frozenset[str]:
    """Return the processor's flags; none where the system does not list them."""
    try:
        line = re.search(r"^(?:flags|Features)\s*:\s*(.*)$", cpuinfo.read_text(encoding="utf-8", errors="replace"), re.MULTILINE)
    except OSError:
        return frozenset()
    return frozenset(line[1].split()) if line else frozenset()


def multiplies_bfloat16(flags: frozenset[str] | None = None) -> bool:
    """Say whether products in bfloat16 are faster than in float32 here; `flags` are the processor's own unless given."""
    return bool((read_flags() if flags is None else flags) & BFLOAT16_FLAGS)


Layout: TypeAlias = Literal["packed", "padded"]
"""How a batch's tokens are handed over; see `layout`. Providers that compile a whole graph need "padded": standard operators alone."""

CPU_PROVIDER = "CPUExecutionProvider"
OPENVINO = "OpenVINO"
"""What stands for the package openvino among onnxruntime's providers; it runs beside any build of onnxruntime (`openvino_graph`)."""


@dataclass(frozen=True)
class DeviceSpec:
    """One row of the table."""

    name: Device
    hardware: str
    """What it is, for people."""
    providers: tuple[str, ...]
    """onnxruntime's names for it; the first that is installed is used."""
    packages: tuple[str, ...]
    """What to install for the fast engine, in the place of onnxruntime."""
    computes: tuple[Compute, ...]
    """What the fast engine computes in there; the first is what compute="auto" takes."""
    torch: str = ""
    """What torch calls it; empty where torch has no such device."""
    torch_computes: tuple[Compute, ...] = ()
    systems: tuple[str, ...] = ("Linux", "Windows", "Darwin")
    """Where it can exist, as `platform.system` says it."""
    in_auto: bool = False
    """Whether device="auto" takes it for the fast engine where it is installed."""
    layout: Layout = "packed"
    batch_tokens: int = LIMITS.batch_tokens
    """Tokens that one run gets."""
    efficient_tokens: int = LIMITS.efficient_tokens
    """Tokens from which a batch of one length is worth a run of its own."""
    at_once: int | None = None
    """Runs at a time; None: one on each core."""
    options: Mapping[str, str] = field(default_factory=dict)
    """What the provider is told; `{cores}` is the number of threads, `{precision}` OpenVINO's name of the arithmetic."""


_GPU_TOKENS, _GPU_EFFICIENT = 16_384, 4_096
_HALF: tuple[Compute, ...] = ("float16", "float32")

DEVICES: tuple[DeviceSpec, ...] = (
    DeviceSpec(
        "cuda",
        "NVIDIA GPU",
        ("CUDAExecutionProvider",),
        ("onnxruntime-gpu",),
        _HALF,
        torch="cuda",
        torch_computes=("float16", "bfloat16", "float32"),
        systems=("Linux", "Windows"),
        in_auto=True,
        batch_tokens=_GPU_TOKENS,
        efficient_tokens=_GPU_EFFICIENT,
        at_once=2,
        options={"use_tf32": "0"},
    ),
    DeviceSpec(
        "rocm",
        "AMD GPU",
        ("MIGraphXExecutionProvider", "ROCMExecutionProvider"),
        ("onnxruntime-migraphx",),
        _HALF,
        torch="cuda",  # torch's build for ROCm keeps CUDA's name
        torch_computes=("float16", "bfloat16", "float32"),
        systems=("Linux",),
        in_auto=True,
        layout="padded",
        batch_tokens=_GPU_TOKENS,
        efficient_tokens=_GPU_EFFICIENT,
        at_once=2,
    ),
    DeviceSpec(
        "directml",
        "GPU under Windows",
        ("DmlExecutionProvider",),
        ("onnxruntime-directml",),
        _HALF,
        systems=("Windows",),
        in_auto=True,
        batch_tokens=_GPU_TOKENS,
        efficient_tokens=_GPU_EFFICIENT,
        at_once=1,  # a DirectML session is not safe from two threads
    ),
    DeviceSpec("cpu", "processor", (CPU_PROVIDER,), ("onnxruntime",), ("float32", "int8"), "cpu", ("float32", "bfloat16"), in_auto=True),
    DeviceSpec(
        "tensorrt",
        "NVIDIA GPU, graphs compiled by TensorRT",
        ("TensorrtExecutionProvider",),
        ("onnxruntime-gpu", "tensorrt"),
        _HALF,
        systems=("Linux", "Windows"),
        layout="padded",
        batch_tokens=_GPU_TOKENS,
        efficient_tokens=_GPU_EFFICIENT,
        at_once=1,
    ),
    DeviceSpec(
        "mps",
        "Apple GPU and Neural Engine",
        ("CoreMLExecutionProvider",),
        ("onnxruntime",),
        ("float32",),
        torch="mps",
        torch_computes=("float16", "float32"),
        systems=("Darwin",),
        layout="padded",
        batch_tokens=_GPU_TOKENS,
        efficient_tokens=_GPU_EFFICIENT,
        at_once=1,
        options={"ModelFormat": "MLProgram"},
    ),
    DeviceSpec(
        "openvino",
        "processor, graphs compiled by OpenVINO",
        (OPENVINO,),
        ("openvino",),
        ("float32", "bfloat16"),
        systems=("Linux", "Windows"),
        layout="padded",
        options={
            "INFERENCE_NUM_THREADS": "{cores}",
            "NUM_STREAMS": "{cores}",
            "INFERENCE_PRECISION_HINT": "{precision}",
            "ENABLE_CPU_PINNING": "NO",
        },
    ),
)
"""Every device, in the order in which device="auto" looks for those that it takes.

Not among those are TensorRT, which compiles a graph anew for every shape; OpenVINO, which is no faster in float32 than the CPU provider
(in bfloat16 it is, which compute="auto" takes, see `choose_placements`); and CoreML, which is part of every onnxruntime for macOS, has not
been measured, and would change how models run there.
"""


@dataclass(frozen=True)
class Placement:
    """Where one model computes, and in what."""

    device: Device
    compute: Compute
    engine: EngineName = "fast"
    provider: str = CPU_PROVIDER
    options: Mapping[str, str] = field(default_factory=dict)
    layout: Layout = "packed"
    batch_tokens: int = LIMITS.batch_tokens
    efficient_tokens: int = LIMITS.efficient_tokens
    at_once: int | None = None


CPU = Placement("cpu", "float32")


class DeviceWarning(UserWarning):
    """A device that is installed did not start, so another one is used."""


def find_device(name: Device) -> DeviceSpec:
    """Return a device's row, or refuse a name that has none.

    >>> find_device("cuda").providers
    ('CUDAExecutionProvider',)
    """
    for spec in DEVICES:
        if spec.name == name:
            return spec
    raise UsageError(f"device={name!r} is unknown; expected one of auto, {', '.join(spec.name for spec in DEVICES)}")


def list_installed(providers: Sequence[str] | None = None) -> list[DeviceSpec]:
    """Return the devices for which the installed onnxruntime has a provider; `providers` are its own unless given."""
    present = _get_providers() if providers is None else providers
    return [spec for spec in DEVICES if any(name in present for name in spec.providers)]


def choose_placements(
    device: Device, compute: Compute, *, providers: Sequence[str] | None = None, flags: frozenset[str] | None = None
) -> list[Placement]:
    """Return where the fast engine may run, the best first: one place for a device that is named, several for "auto".

    A device that is missing is an error that names the package; so is arithmetic that the device or the processor does not have.
    compute="auto" is the fastest arithmetic whose vectors keep a cosine of 0.9999 to float32; where no GPU is taken, that is bfloat16 if
    OpenVINO is installed and the processor multiplies so. `flags` are the processor's own unless given.
    """
    present = _get_providers() if providers is None else providers
    if device != "auto":
        spec = find_device(device)
        if not any(name in present for name in spec.providers):
            raise DeviceError(f"device {device!r} ({spec.hardware}) is not installed: {explain_missing(spec)}")
        quick = compute == "auto" and "bfloat16" in spec.computes and multiplies_bfloat16(flags)
        chosen = _choose_compute(spec.name, spec.computes, "bfloat16" if quick else compute)
        _check_processor(chosen, flags)
        return [_place(spec, chosen, present)]
    found = [spec for spec in list_installed(present) if spec.in_auto]
    if compute == "bfloat16":
        _check_processor(compute, flags)
        return _place_bfloat16(present) or _refuse_bfloat16()
    able = [spec for spec in found if compute == "auto" or compute in spec.computes]
    if not able:
        refuse_compute(compute, {spec.name: spec.computes for spec in found})
    places = [_place(spec, _choose_compute(spec.name, spec.computes, compute), present) for spec in able]
    if compute == "auto" and places[0].device == "cpu" and multiplies_bfloat16(flags):
        return [*_place_bfloat16(present), *places]
    return places


def _place_bfloat16(present: Sequence[str]) -> list[Placement]:
    return [_place(spec, "bfloat16", present) for spec in list_installed(present) if "bfloat16" in spec.computes]


def _refuse_bfloat16() -> NoReturn:
    spec = find_device("openvino")
    raise DeviceError(f"compute='bfloat16' runs on device {spec.name!r}, which is not installed: {explain_missing(spec)}")


def _check_processor(compute: Compute, flags: frozenset[str] | None) -> None:
    if compute == "bfloat16" and not multiplies_bfloat16(flags):
        wanted = ", ".join(sorted(BFLOAT16_FLAGS))
        raise UsageError(
            f"compute={compute!r} gains nothing here: the processor lists none of {wanted}, so it would multiply in float32\n"
            "  choose float32, or int8 for speed"
        )


def explain_missing(spec: DeviceSpec) -> str:
    """Say what a device that is not there would need."""
    if platform.system() not in spec.systems:
        return f"it exists under {' and '.join(spec.systems)} only\n  choose another device, or leave it out"
    if spec.packages == ("openvino",):
        return "the package openvino is not there\n  pip install openvino"
    has = f"this onnxruntime has no {' or '.join(spec.providers)}"
    if spec.packages == ("onnxruntime",):
        return f"{has}\n  pip install --force-reinstall onnxruntime"
    return f"{has}\n  pip uninstall onnxruntime, then pip install {' '.join(spec.packages)}"


def refuse_compute(compute: Compute, able: Mapping[Device, Sequence[Compute]]) -> None:
    """Refuse arithmetic that none of these devices has."""
    has = "; ".join(f"{name} computes in {' or '.join(sorted(computes))}" for name, computes in able.items())
    raise UsageError(f"compute={compute!r} does not run here: {has}")


_Engine = TypeVar("_Engine")


def open_first(placements: Sequence[Placement], start: Callable[[Placement], _Engine]) -> _Engine:
    """Return the engine on the first device on which it starts; one that does not start is a DeviceWarning while others are left."""
    for placement in placements[:-1]:
        try:
            return start(placement)
        except DeviceError as error:
            message = f"device {placement.device!r} is installed but does not start: {str(error).splitlines()[0]}"
            warnings.warn(DeviceWarning(f"{message} (computing on the next one)"), stacklevel=3)
    return start(placements[-1])


def _choose_compute(name: Device, computes: Sequence[Compute], asked: Compute) -> Compute:
    if asked == "auto":
        return computes[0]
    if asked not in computes:
        refuse_compute(asked, {name: computes})
    return asked


def choose_torch_compute(spec: DeviceSpec, asked: Compute) -> Compute:
    """Return what the torch engine computes in on a device; what it does not have is refused."""
    return _choose_compute(spec.name, spec.torch_computes, asked)


def _place(spec: DeviceSpec, compute: Compute, present: Sequence[str]) -> Placement:
    return Placement(
        device=spec.name,
        compute=compute,
        provider=next(name for name in spec.providers if name in present),
        options=spec.options,
        layout=spec.layout,
        batch_tokens=spec.batch_tokens,
        efficient_tokens=spec.efficient_tokens,
        at_once=spec.at_once,
    )


def _get_providers() -> list[str]:
    import onnxruntime

    return [*onnxruntime.get_available_providers(), *([OPENVINO] if find_spec("openvino") else [])]
