"""Opening what Munjang wrote, as a user does: each function takes a folder and returns a digest of what it answers there.

A refusal is an error of ours. Nothing here needs pytest, so that a child with little memory can look (`opening.py`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np

ABSENT = "absent"
TEXTS = ["The cat is sleeping by the window.", "고양이가 창가에서 졸고 있다.", "a book about winter"]
KEY_PARTS = ("weights", "int8")
LIBRARY_DOCUMENTS = 40
FILTERS = ("version >= 20", "kind = 'odd' or version < 3", "version is null", "not kind contains 'v'")
OWNER: dict[str, str | int] = {"what": "unit vectors", "uuid": "abc", "dimension": 8}


def digest(*values: Any) -> str:
    made = hashlib.sha256()
    for value in values:
        made.update(value.tobytes() if isinstance(value, np.ndarray) else repr(_plain(value)).encode())
    return made.hexdigest()[:16]


def _plain(value: Any) -> Any:
    """Return all that an object holds; the repr of our own objects is clipped."""
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: _plain(getattr(value, field.name)) for field in fields(value)}
    return [_plain(each) for each in value] if isinstance(value, tuple | list) else value


def look_model(folder: Path) -> str:
    from munjang.models.sentence_encoder import SentenceEncoder

    if not (folder / "model").exists():
        return ABSENT
    found = SentenceEncoder.load(folder / "model", threads=1)
    vectors = found.encode(TEXTS)
    assert np.isfinite(vectors).all(), "vectors that are not finite"
    return digest(vectors, found.max_length, sorted(found.folder.prompts.items()))


def look_checkpoint(folder: Path) -> str:
    from munjang.train.checkpoint import Checkpoints

    kept = Checkpoints(folder)
    found = kept.load_latest()
    if found is None:
        return ABSENT
    tensors = [found.model["encoder.w"], found.optimizer["m"], kept.load_best(0, found.position.best_step or 0)["w"]]
    return digest(found.position, found.log.to_json(), *(tensor.numpy() for tensor in tensors))


def look_graph(folder: Path) -> str:
    from munjang.engine.graph_cache import load_graph, make_cache_key

    found = load_graph(make_cache_key(*KEY_PARTS), home=folder)
    return ABSENT if found is None else digest(found.model, found.facts, found.weights["w"], found.weights["s"])


def look_library_cache(folder: Path) -> str:
    from munjang.library.cache_file import read_cache

    found = read_cache(folder / "vectors.cache", OWNER)
    return ABSENT if found is None else digest(found["vectors"], found["rows"])


def look_teacher(folder: Path) -> str:
    from munjang.train.distill.teacher_targets import open_array

    found = open_array(folder / "block.npy", (200, 8))
    return ABSENT if found is None else digest(np.asarray(found))


def look_file(folder: Path) -> str:
    return digest((folder / "vectors.npy").read_bytes())


def look_topics(folder: Path) -> str:
    from munjang.analyze.topics.saving import load_topics

    if not (folder / "topics/topics.json").is_file():
        return ABSENT
    found = load_topics(folder / "topics")
    return digest(found.topics, found.names, found.documents.rows_NR, found.documents.excerpts, found.topic_P, found.floors_P)


def look_claim(folder: Path) -> str:
    """What a training began with is there when its tokenizer is: claiming alone has made nothing."""
    kept = folder / "out/training/tokenizer.json"
    return digest(kept.read_bytes()) if kept.is_file() else ABSENT


def look_calibration(folder: Path) -> str:
    from munjang.evaluate.calibrate import load_calibration

    return digest(load_calibration(folder / "calibration.json"))


def look_bulk(folder: Path) -> str:
    from munjang.bulk.output import open_output

    output = open_output(folder / "out")
    return digest(output.rows, *(part for block in output.blocks() for part in (block.ids, block.vectors_ND)))


def look_library(folder: Path) -> str:
    """Ask in every way for everything there is; nobody runs a check."""
    from tests.faults.library_worker import opened

    k = 2 * LIBRARY_DOCUMENTS
    with opened(str(folder / "a.db")) as library:
        answers = [
            library.search("document 3 filler", k=k, where=where, by=by) for by in (None, "meaning", "words") for where in (None, *FILTERS)
        ]
        answers += [library.search(k=k, like=["7"], unlike=["8"]), *library.search_many(["version 5", "words here"], k=k)]
        documents = library.get(map(str, range(LIBRARY_DOCUMENTS)))
    return digest([[(hit.id, hit.text, hit.score, hit.metadata, hit.start, hit.stop) for hit in hits] for hits in answers], documents)


LOOKS: dict[str, Callable[[Path], str]] = {
    "model folder": look_model,
    "library": look_library,
    "checkpoint": look_checkpoint,
    "topic model": look_topics,
    "bulk directory": look_bulk,
    "graph cache": look_graph,
    "library cache": look_library_cache,
    "teacher cache": look_teacher,
    "calibration": look_calibration,
}

UNSUMMED = {"model folder", "calibration"}
"""Kinds whose files carry no checksum: a damage may change the answer; it may not crash, hang or eat memory."""
