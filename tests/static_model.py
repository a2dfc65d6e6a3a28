"""A model without layers: a table of vectors, one for each piece, whose mean is a text's vector."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from tests.conftest import write_json, write_tokenizer


def write_static(folder: Path, *, width: int = 16, max_length: int | None = None) -> Path:
    """Write the folder and return it; the numbers are random, the same each time."""
    from safetensors.numpy import save_file

    place = folder / "0_StaticEmbedding"
    size = write_tokenizer(place, "bert", max_length)
    save_file({"embedding.weight": np.random.default_rng(3).normal(size=(size, width)).astype(np.float32)}, place / "model.safetensors")
    entry = {"idx": 0, "name": "0", "path": place.name, "type": "sentence_transformers.models.StaticEmbedding"}
    write_json(folder / "modules.json", [entry])
    return folder
