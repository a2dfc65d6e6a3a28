"""Saving writes a whole folder or none, and never over something else."""

from __future__ import annotations

import errno
import json
import os

import numpy as np
import pytest
from tests.conftest import TEXTS, Dense

from munjang import atomic
from munjang.errors import NoSpace, UsageError
from munjang.models import save
from munjang.models.compress.parts import read_parts, write_parts
from munjang.models.sentence_encoder import SentenceEncoder


@pytest.fixture(scope="module")
def model(tiny_folder):
    return SentenceEncoder.load(tiny_folder("bert", modules=(Dense(16), "normalize")))


def encoded(model):
    return model.encode_with_report(TEXTS).vectors


def test_load_save_load_is_bit_equal(model, tmp_path):
    model.save(tmp_path / "deep/new/model")
    again = SentenceEncoder.load(tmp_path / "deep/new/model")
    assert np.array_equal(encoded(again), encoded(model))
    assert again.max_length == model.max_length
    again.save(tmp_path / "third")
    third = SentenceEncoder.load(tmp_path / "third")
    assert np.array_equal(encoded(third), encoded(model))
    assert third.fingerprint == again.fingerprint


def test_the_files_are_those_that_every_reader_needs(model, tmp_path):
    model.save(tmp_path / "model")
    pooling = json.loads((tmp_path / "model/1_Pooling/config.json").read_text())
    assert pooling["pooling_mode_mean_tokens"] is True
    assert pooling["pooling_mode_cls_token"] is False
    assert "embedding_dimension" not in pooling
    assert "pooling_mode" not in pooling
    assert json.loads((tmp_path / "model/sentence_bert_config.json").read_text())["max_seq_length"] == 24
    names = {path.relative_to(tmp_path / "model").as_posix() for path in (tmp_path / "model").rglob("*") if path.is_file()}
    assert {
        "config.json",
        "model.safetensors",
        "tokenizer.json",
        "tokenizer_config.json",
        "modules.json",
        "2_Dense/model.safetensors",
    } <= names


def test_an_empty_folder_is_filled(model, tmp_path):
    (tmp_path / "model").mkdir()
    model.save(tmp_path / "model")
    assert SentenceEncoder.load(tmp_path / "model").dimension == 16


def test_a_folder_with_something_in_it_is_refused_and_untouched(model, tmp_path):
    (tmp_path / "model").mkdir()
    (tmp_path / "model/mine.txt").write_text("mine")
    with pytest.raises(UsageError, match="not empty"):
        model.save(tmp_path / "model")
    assert [path.name for path in tmp_path.rglob("*")] == ["model", "mine.txt"]
    with pytest.raises(UsageError, match="exists already"):
        model.save(tmp_path / "model/mine.txt")


def test_a_model_is_not_saved_over_itself(model):
    with pytest.raises(UsageError, match="not empty"):
        model.save(model.folder.path)


@pytest.mark.parametrize(
    ("module", "step"),
    [(save, "write_json"), (save, "write_modules"), (atomic, "sync_folder")],
    ids=["write_json", "write_modules", "sync_folder"],
)
@pytest.mark.parametrize("error", [RuntimeError("midway"), KeyboardInterrupt(), PermissionError("no")], ids=repr)
def test_a_failure_midway_leaves_nothing(module, step, error, model, tmp_path, monkeypatch):
    def fail(*_args, **_kwargs):
        raise error

    monkeypatch.setattr(module, step, fail)
    with pytest.raises(type(error)):
        model.save(tmp_path / "model")
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_says_so_and_leaves_nothing(model, tmp_path, monkeypatch):
    def full(*_args, **_kwargs):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(save.shutil, "copyfile", full)
    with pytest.raises(NoSpace, match="the disk is full"):
        model.save(tmp_path / "model")
    assert list(tmp_path.iterdir()) == []


def test_whoever_may_read_the_folder_may_read_its_files(model, tmp_path):
    model.save(tmp_path / "model")
    write_parts(read_parts(tmp_path / "model"), tmp_path / "smaller")  # safetensors makes files for their owner alone
    for folder in (tmp_path / "model", tmp_path / "smaller"):
        mode = folder.stat().st_mode & 0o666
        assert {path.stat().st_mode & 0o666 for path in folder.rglob("*") if path.is_file()} == {mode}


def test_a_chosen_pooling_is_saved(tiny_folder, tmp_path):
    plain = SentenceEncoder.load(tiny_folder("bert", dialect="plain"), pooling="max")
    plain.save(tmp_path / "model")
    assert np.array_equal(encoded(SentenceEncoder.load(tmp_path / "model")), encoded(plain))
