"""The writers by name, made when they are asked for: some need torch, a tiny model or a fitted topic model."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.trust import bulk_writers
from tests.trust import writers as kinds
from tests.trust.writers import Writer

WRITERS = (
    "model folder", "exported graph", "checkpoint", "graph cache", "library cache", "teacher cache", "output file", "topic model",
    "first topic model", "begun training", "calibration", "bulk job", "merged bulk file",
)  # fmt: skip

Writers = Callable[[str], Writer]


@pytest.fixture(scope="session")
def writers(tiny_folder: Callable[..., Path], tmp_path_factory: pytest.TempPathFactory) -> Writers:
    """Return a function name → Writer."""
    made: dict[str, Writer] = {}

    def make(name: str) -> Writer:
        if name not in made:
            made[name] = _made(name, tiny_folder, tmp_path_factory.mktemp("writer"))
        return made[name]

    return make


def _made(name: str, tiny_folder: Callable[..., Path], folder: Path) -> Writer:
    if name in ("checkpoint", "teacher cache", "begun training"):
        pytest.importorskip("torch", reason="the extra train is not installed")
    if name in ("model folder", "exported graph", "bulk job", "merged bulk file"):
        from munjang.models.sentence_encoder import SentenceEncoder

        model = SentenceEncoder.load(tiny_folder("bert"))
        if name == "model folder":
            return kinds.model_writer(model)
        if name == "exported graph":
            return kinds.export_writer(model)
        pytest.importorskip("pyarrow", reason="the extra parquet is not installed")
        if name == "bulk job":
            return bulk_writers.job_writer(folder / "news.jsonl", model)
        return bulk_writers.merge_writer(folder / "news.jsonl", folder / "out", model)
    if name == "topic model":
        return kinds.topics_writer(_topics())
    if name == "first topic model":
        return kinds.first_topics_writer(_topics())
    if name == "begun training":
        return kinds.claim_writer(folder / "pairs.tsv")
    simple = {
        "checkpoint": kinds.checkpoint_writer,
        "graph cache": kinds.graph_writer,
        "library cache": kinds.library_cache_writer,
        "teacher cache": kinds.teacher_writer,
        "output file": kinds.file_writer,
        "calibration": kinds.calibration_writer,
    }
    return simple[name]()


def _topics():
    from tests.analyze.topics.conftest import made

    from munjang.analyze.topics.fitting import fit_topics
    from munjang.text.tagging import choose_tagger

    collection = made(12)
    return fit_topics(collection.texts, vectors=collection.vectors, by=choose_tagger("plain"))
