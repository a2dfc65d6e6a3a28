"""Everything that Munjang writes itself, each as a way to make an old state, a way to write a new one, and the reader that looks.

Old and new state are whatever `look` says before and after an undisturbed write. Libraries are not here: SQLite writes them
(tests/trust/test_sqlite_settings.py).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from tests.trust import looks
from tests.trust.looks import ABSENT, KEY_PARTS, OWNER, digest


@dataclass(frozen=True)
class Writer:
    """One thing that is written."""

    old: Callable[[Path], object]
    write: Callable[[Path], object]
    look: Callable[[Path], str]
    acknowledges: bool = True
    """Whether a return means "it is on disk"; a cache promises only that it is never wrong."""
    full_disk_is_an_error: bool = True
    """Whether a full disk is told as NoSpace; a cache goes without."""
    also: frozenset[str] = frozenset()
    """Further answers that are right midway."""


def twice(store: Callable[[Path, int], object], look: Callable[[Path], str], **more: Any) -> Writer:
    """The writer of something that is there in version 1 and written in version 2."""
    return Writer(lambda folder: store(folder, 1), lambda folder: store(folder, 2), look, **more)


def model_writer(model: Any) -> Writer:
    return Writer(lambda folder: None, lambda folder: model.save(folder / "model"), looks.look_model)


def export_writer(model: Any) -> Writer:
    from munjang.models.export import export_onnx

    def look(folder: Path) -> str:
        path = folder / "model/onnx/model.onnx"
        return digest(path.read_bytes()) if path.exists() else ABSENT

    return Writer(lambda folder: model.save(folder / "model"), lambda folder: export_onnx(model, folder / "model"), look)


def checkpoint_writer() -> Writer:
    import torch

    from munjang.train.checkpoint import Checkpoints, Position, Snapshot
    from munjang.train.log import StepEntry, TrainingLog

    def store(folder: Path, number: int) -> None:
        step = 4 * number
        weights = {"encoder.w": torch.full((40, 10), float(step)), "encoder.b": torch.arange(7.0)}
        log = TrainingLog([StepEntry(0, at, 0.5, 1e-3) for at in range(step)])
        kept = Checkpoints(folder)
        kept.save_best(0, step, {"w": torch.full((20, 5), step / 2)})
        kept.save(Snapshot(Position(step=step, best_step=step, best_score=0.5), log, weights, {"m": weights["encoder.w"] / 2}))

    return twice(store, looks.look_checkpoint)


def graph_writer() -> Writer:
    from munjang.engine.graph_cache import make_cache_key, store_graph
    from munjang.engine.session import CachedGraph

    def store(folder: Path, number: int) -> None:
        weights = {"w": np.full((64, 32), number, np.int8), "s": np.full(64, number / 7, np.float32)}
        store_graph(make_cache_key(*KEY_PARTS), CachedGraph(b"graph" * 100, weights, {"layers": number}), home=folder)

    return twice(store, looks.look_graph, acknowledges=False, full_disk_is_an_error=False, also=frozenset({ABSENT}))


def library_cache_writer() -> Writer:
    from munjang.library.cache_file import write_cache

    def store(folder: Path, number: int) -> None:
        arrays = {"vectors": [np.full((300, 8), number / 3, np.float32)], "rows": [np.arange(300) * number]}
        write_cache(folder / "vectors.cache", OWNER, arrays)

    return twice(store, looks.look_library_cache, acknowledges=False, full_disk_is_an_error=False, also=frozenset({ABSENT}))


def teacher_writer() -> Writer:
    from munjang.train.distill.teacher_targets import store_array

    def store(folder: Path, number: int) -> None:
        store_array(folder / "block.npy", lambda: np.full((200, 8), number / 3, np.float32))

    return twice(store, looks.look_teacher, also=frozenset({ABSENT}))


def file_writer() -> Writer:
    from munjang.atomic import atomic_write

    return twice(lambda folder, number: atomic_write(folder / "vectors.npy", bytes([number]) * 3_000), looks.look_file)


def topics_writer(model: Any) -> Writer:
    from munjang.analyze.topics.saving import save_topics

    renamed = {1: model, 2: replace(model, names={model.topics[0].id: "another name"})}
    return twice(lambda folder, number: save_topics(renamed[number], folder / "topics"), looks.look_topics)


def first_topics_writer(model: Any) -> Writer:
    """The writer of a topic model where there was none."""
    return replace(topics_writer(model), old=lambda folder: None)


def claim_writer(source: Path) -> Writer:
    """The writer of what a training begins with: whose its output is, and the tokenizer of its data."""
    from munjang.train.build import build_encoder
    from munjang.train.loop import claim_output
    from munjang.train.processes import Processes
    from munjang.train.recipe import make_recipe

    words = ["사과", "감자", "우유", "연필", "모자", "의자"]
    rows = [f"{word} 하나를 샀다\t{word} 하나를 팔았다\t{number}" for number, word in enumerate(words)]
    source.write_text("\n".join(["sentence1\tsentence2\tscore", *rows]) + "\n", encoding="utf-8")
    scratch = {"vocabulary": 60, "layers": 1, "width": 8, "heads": 1, "inner": 8, "positions": 16}
    stage = {"objective": "regression", "steps": 1, "data": [{"path": str(source), "label_range": [0, 5]}]}

    def begin(folder: Path) -> None:
        recipe = make_recipe({"output": "out", "model": {"scratch": scratch}, "stage": [stage]}, folder=folder)
        # as `--resume` does, and a plain start after it was refused would
        claim_output(recipe, folder / "out/training", processes=Processes(), resume=True)
        build_encoder(recipe, keep=folder / "out/training")

    return Writer(lambda folder: None, begin, looks.look_claim)


def calibration_writer() -> Writer:
    from munjang.evaluate.calibrate import Calibration, save_calibration

    def store(folder: Path, number: int) -> None:
        points = tuple((x / 50 + number, x / 60) for x in range(50))
        save_calibration(Calibration("isotonic", 0.5, points=points), folder / "calibration.json")

    return twice(store, looks.look_calibration)
