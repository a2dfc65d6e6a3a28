"""Where a training stands, on disk: weights, the optimiser's memory, and the log, whole or not at all.

In and out: a `Snapshot`. Tensors are safetensors and the rest JSON, so that reading runs no code. Random numbers need no saving: each step
seeds its own. The newest snapshot is kept, and the weights of the best evaluation that it names.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from torch import Tensor

from munjang.atomic import make_folder
from munjang.errors import DamagedFile
from munjang.train.durable import check_folder, clear_partial, hash_file, write_file, write_folder, write_text
from munjang.train.log import TrainingLog

_CHECKSUM = ".sha256"
"""The suffix of the file beside the best weights that holds their checksum."""


@dataclass(frozen=True)
class Position:
    """How far a training has come: `step` optimiser steps of stage `stage` are done."""

    stage: int = 0
    step: int = 0
    best_score: float | None = None
    best_step: int | None = None
    evaluations_without_better: int = 0
    stopped: bool = False
    data: str = ""
    """A checksum of the stage's data, so that a run does not go on with other data."""


@dataclass(frozen=True)
class Snapshot:
    """Everything that going on needs."""

    position: Position
    log: TrainingLog
    model: Mapping[str, Tensor]
    optimizer: Mapping[str, Tensor] = field(default_factory=dict)


class Checkpoints:
    """The snapshots of one training, in one folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def save(self, snapshot: Snapshot) -> None:
        """Write a snapshot and, once it is on disk, remove the ones before it."""
        position = snapshot.position

        def fill(draft: Path) -> None:
            _save_tensors(draft / "model.safetensors", snapshot.model)
            _save_tensors(draft / "optimizer.safetensors", snapshot.optimizer)
            (draft / "position.json").write_text(json.dumps(asdict(position)), encoding="utf-8")
            (draft / "log.json").write_text(json.dumps(snapshot.log.to_json()), encoding="utf-8")

        name = f"stage-{position.stage:02}-step-{position.step:08}"
        write_folder(self.folder / name, fill)
        for other in self._list_snapshots():
            if other.name != name:
                shutil.rmtree(other)
        best = self._get_best_path(position.stage, position.best_step or 0)
        for path in self.folder.glob("best-*"):
            if path.stem != best.stem:
                path.unlink()

    def exist(self) -> bool:
        """Say whether there is a snapshot to go on from."""
        return bool(self._list_snapshots())

    def read_position(self) -> Position | None:
        """Return where the newest snapshot stands, without its weights; None where there is none."""
        found = self._list_snapshots()
        return Position(**_read_json(found[-1] / "position.json")) if found else None

    def load_latest(self) -> Snapshot | None:
        """Return the newest snapshot, its checksums verified; None where there is none."""
        if not self.folder.is_dir():
            return None
        clear_partial(self.folder)
        found = self._list_snapshots()
        if not found:
            return None
        newest = found[-1]
        check_folder(newest)
        try:
            position = Position(**_read_json(newest / "position.json"))
            log = TrainingLog.from_json(_read_json(newest / "log.json"))
        except (TypeError, ValueError, KeyError) as error:
            raise DamagedFile(f"{newest}: cannot be understood ({error})") from None
        return Snapshot(position, log, _load_tensors(newest / "model.safetensors"), _load_tensors(newest / "optimizer.safetensors"))

    def save_best(self, stage: int, step: int, weights: Mapping[str, Tensor]) -> None:
        """Keep the weights of the best evaluation so far."""
        make_folder(self.folder)
        path = self._get_best_path(stage, step)
        write_file(path, lambda draft: _save_tensors(draft, weights))
        write_text(path.with_suffix(_CHECKSUM), hash_file(path))

    def load_best(self, stage: int, step: int) -> dict[str, Tensor]:
        """Return the weights that `save_best` kept."""
        path = self._get_best_path(stage, step)
        if not path.is_file():
            raise DamagedFile(f"{path}: missing, expected the weights of the best evaluation")
        checksum = path.with_suffix(_CHECKSUM)
        if checksum.is_file() and checksum.read_bytes() != hash_file(path).encode():  # a training of an older version has none
            raise DamagedFile(f"{path}: is not what was written (its checksum differs)\n  restore it, or train again")
        return _load_tensors(path)

    def _get_best_path(self, stage: int, step: int) -> Path:
        return self.folder / f"best-{stage:02}-{step:08}.safetensors"

    def _list_snapshots(self) -> list[Path]:
        return sorted(path for path in self.folder.glob("stage-*-step-*") if path.is_dir())


def _save_tensors(path: Path, tensors: Mapping[str, Tensor]) -> None:
    from safetensors.torch import save_file

    # a copy of its own for each tensor: safetensors refuses storage that two names share
    save_file({name: tensor.detach().cpu().clone().contiguous() for name, tensor in tensors.items()}, path)


def _load_tensors(path: Path) -> dict[str, Tensor]:
    from safetensors.torch import load_file

    try:
        found: dict[str, Tensor] = load_file(path)
    except (SafetensorError, OSError) as error:
        raise DamagedFile(f"{path}: cannot be read ({error})\n  restore it, or train again") from None
    return found


def _read_json(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))
