"""A described folder → the engine that runs it: Munjang's own, or torch where the family is not one of its own; and on which device.

The torch engine lives in `train/`, the only room that imports torch, and this room must not import `train/`. So it is known here by its
name alone and looked up when it is needed. The name is ours; no folder and no caller can give another.
"""

from __future__ import annotations

from importlib import import_module
from typing import Protocol, cast, get_args

from munjang.engine.cross import CrossEngine, read_cross_head
from munjang.engine.devices import choose_placements, find_device, open_first
from munjang.engine.families import FAMILIES
from munjang.engine.folder import ModelFolder
from munjang.engine.modules import StaticModule, TransformerModule
from munjang.engine.open import Engine, open_engine
from munjang.errors import FolderError, MissingExtra, UsageError, quote
from munjang.types import Compute, Device, EngineName

TORCH_ENGINE = "munjang.train.torch_engine"
_EXTRA = frozenset({"torch", "transformers"})


class _TorchRoom(Protocol):
    """What `TORCH_ENGINE` holds."""

    def TorchEngine(self, folder: ModelFolder, *, device: Device, compute: Compute, threads: int | None) -> Engine:
        """Start an encoder."""
        ...

    def TorchCrossEngine(self, folder: ModelFolder, *, device: Device, compute: Compute, threads: int | None) -> CrossEngine:
        """Start a cross-encoder."""
        ...


def check_engine(engine: EngineName, device: Device, compute: Compute) -> None:
    """Refuse an engine, a device or arithmetic that there is not."""
    for name, value, known in (("compute", compute, Compute), ("engine", engine, EngineName)):
        if value not in get_args(known):
            raise UsageError(f"{name}={value!r} is unknown; expected {', '.join(map(repr, get_args(known)))}")
    if device != "auto":
        find_device(device)


def open_sentence_engine(folder: ModelFolder, *, engine: EngineName, device: Device, compute: Compute, threads: int | None) -> Engine:
    """Start the engine of a sentence encoder."""
    if not isinstance(folder.base, StaticModule) and _needs_torch(folder, engine):
        return _find_torch(folder).TorchEngine(folder, device=device, compute=compute, threads=threads)
    return open_first(choose_placements(device, compute), lambda placement: open_engine(folder, placement=placement, threads=threads))


def open_cross_engine(folder: ModelFolder, *, engine: EngineName, device: Device, compute: Compute, threads: int | None) -> CrossEngine:
    """Start the engine of a cross-encoder."""
    if folder.kind != "cross":
        read_cross_head(folder)  # says what the folder holds instead
    if _needs_torch(folder, engine):
        return _find_torch(folder).TorchCrossEngine(folder, device=device, compute=compute, threads=threads)
    return open_first(choose_placements(device, compute), lambda placement: CrossEngine(folder, placement=placement, threads=threads))


def _needs_torch(folder: ModelFolder, engine: EngineName) -> bool:
    """Say whether torch is to run the folder; refuse a family that engine="fast" does not know."""
    base = folder.base
    assert isinstance(base, TransformerModule)  # static models have been told apart
    family = base.config.get("model_type")
    if engine == "torch":
        return True
    if not isinstance(family, str) or family in FAMILIES:  # what is no name at all, the fast engine refuses
        return False
    if engine == "fast":
        fact = f"{base.folder / 'config.json'}: model_type {quote(family)} does not run on the fast engine; it runs {', '.join(FAMILIES)}"
        raise FolderError(f"{fact}\n  load it with engine='torch'").at_shell(f"{fact}\n  leave --engine out, or give --engine torch")
    return True


def _find_torch(folder: ModelFolder) -> _TorchRoom:
    try:
        return cast(_TorchRoom, import_module(TORCH_ENGINE))
    except ImportError as error:
        if (error.name or "").partition(".")[0] not in _EXTRA:
            raise
        base = folder.base
        assert isinstance(base, TransformerModule)
        what = f"{folder.path}: a model of type {quote(str(base.config.get('model_type')))}, which runs through torch,"
        raise MissingExtra(what, "train") from error
