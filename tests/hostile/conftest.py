"""For the hostile tests: a folder to spoil, ways to spoil it, and what a refusal must look like."""

from __future__ import annotations

import json
import os
import shutil
import struct
from pathlib import Path

import pytest
from tests.conftest import write_json
from tests.trust.figures import figures as figures

from munjang.errors import MunjangError
from munjang.models.sentence_encoder import SentenceEncoder


@pytest.fixture
def folder(tiny_bert_folder, tmp_path):
    return Path(shutil.copytree(tiny_bert_folder, tmp_path / "model"))


def edit(path, **changes):
    write_json(path, {**json.loads(path.read_text()), **changes})


def module(folder, number, **changes):
    listed = json.loads((folder / "modules.json").read_text())
    listed[number] |= changes
    write_json(folder / "modules.json", listed)


def refused(folder, *words):
    """Load the folder, expect one clear refusal that names it, and return its message."""
    with pytest.raises(MunjangError) as caught:
        SentenceEncoder.load(folder)
    first = str(caught.value).splitlines()[0]
    names = {path.name for path in folder.rglob("*")} if folder.is_dir() else set()
    assert any(name in first for name in {*names, folder.name})
    assert all(word in str(caught.value) for word in words), str(caught.value)
    return caught.value


def tensors_of(folder):
    from safetensors.numpy import load_file

    return load_file(folder / "model.safetensors")


def rewrite(folder, tensors):
    from safetensors.numpy import save_file

    save_file(tensors, folder / "model.safetensors")


def rewrite_header(folder, change):
    """Change the safetensors header and keep the data."""
    raw = (folder / "model.safetensors").read_bytes()
    size = struct.unpack("<Q", raw[:8])[0]
    header = json.loads(raw[8 : 8 + size])
    text = json.dumps(change(header) or header).encode()
    (folder / "model.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + raw[8 + size :])


WORDS = "embeddings.word_embeddings.weight"


class Canary:
    def __init__(self, path):
        self.path = str(path)

    def __reduce__(self):
        return os.system, (f"touch {self.path}",)
