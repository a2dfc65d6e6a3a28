from __future__ import annotations

from pathlib import Path

import pytest
import torch

from munjang.errors import DamagedFile
from munjang.train.checkpoint import Checkpoints, Position, Snapshot
from munjang.train.durable import clear_partial, write_folder
from munjang.train.log import DevEntry, StepEntry, TrainingLog


def _snapshot(step: int) -> Snapshot:
    log = TrainingLog([StepEntry(0, step, 1 / 3, 1e-5)], [DevEntry(0, step, "spearman_cosine", 0.1 + 0.2, {"a": 0.1})])
    return Snapshot(Position(step=step, best_score=0.5, best_step=step), log, {"encoder.w": torch.randn(3)}, {"w|step": torch.tensor(2.0)})


def test_a_snapshot_comes_back_exactly(tmp_path: Path) -> None:
    made = _snapshot(4)
    kept = Checkpoints(tmp_path)
    kept.save(made)
    found = kept.load_latest()
    assert found is not None
    assert found.position == made.position
    assert found.log == made.log
    assert torch.equal(found.model["encoder.w"], made.model["encoder.w"])
    assert torch.equal(found.optimizer["w|step"], made.optimizer["w|step"])


def test_only_the_newest_snapshot_and_its_best_weights_are_kept(tmp_path: Path) -> None:
    kept = Checkpoints(tmp_path)
    for step in (2, 4):
        kept.save_best(0, step, {"w": torch.ones(2)})
        kept.save(_snapshot(step))
    names = ["best-00-00000004.safetensors", "best-00-00000004.sha256", "stage-00-step-00000004"]
    assert sorted(path.name for path in tmp_path.iterdir()) == names
    assert torch.equal(kept.load_best(0, 4)["w"], torch.ones(2))


def test_a_folder_that_fails_half_way_is_not_there(tmp_path: Path) -> None:
    def fill(draft: Path) -> None:
        (draft / "a").write_text("x")
        raise RuntimeError("killed")

    with pytest.raises(RuntimeError):
        write_folder(tmp_path / "out", fill)
    assert not (tmp_path / "out").exists()
    clear_partial(tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["model.safetensors", "position.json", "log.json", "manifest.json"])
def test_a_changed_byte_is_noticed(tmp_path: Path, name: str) -> None:
    kept = Checkpoints(tmp_path)
    kept.save(_snapshot(1))
    path = next(tmp_path.glob("stage-*")) / name
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 0xFF
    path.write_bytes(content)
    with pytest.raises(DamagedFile):
        kept.load_latest()
