"""How adapters come to a model and to its vectors."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.adapters.conftest import SHORT

from munjang import CrossEncoder, SentenceEncoder
from munjang.adapters.loading import Texts, load_encoder, load_encoder_once, load_reranker
from munjang.errors import FolderError, TextError


def test_a_loaded_model_is_taken_as_it_is(model: SentenceEncoder, reranker: CrossEncoder) -> None:
    assert load_encoder(model) is model
    assert load_reranker(reranker) is reranker


def test_a_folder_is_loaded_and_a_wrong_name_refused(tiny_bert_folder: Path, model: SentenceEncoder) -> None:
    assert load_encoder(tiny_bert_folder).fingerprint == model.fingerprint
    with pytest.raises(FolderError, match="nobody"):
        load_encoder("nobody")


def test_roles_choose_the_models_own_prompts(prompted: SentenceEncoder) -> None:
    texts = Texts(prompted)
    np.testing.assert_array_equal(texts.vectors(SHORT, "query"), prompted.encode_query(SHORT))
    np.testing.assert_array_equal(texts.vectors(SHORT, "document"), prompted.encode_document(SHORT))
    np.testing.assert_array_equal(texts.vectors(SHORT), prompted.encode(SHORT))
    assert not np.allclose(texts.vectors(SHORT, "query"), texts.vectors(SHORT, "document"))


def test_options_reach_the_model(model: SentenceEncoder) -> None:
    short = Texts(model, normalize=True, dimensions=8).vectors(SHORT)
    assert short.shape == (len(SHORT), 8)
    np.testing.assert_allclose(np.linalg.norm(short, axis=1), 1, atol=1e-6)
    with pytest.raises(TextError):
        Texts(model, long_text="error").vectors(["sleep " * 60])


def test_no_texts_give_no_rows(model: SentenceEncoder) -> None:
    assert Texts(model).rows([]) == []


def test_a_kept_model_is_loaded_once_and_again_when_its_files_change(tiny_bert_folder: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(tiny_bert_folder, tmp_path / "model")
    first = load_encoder_once(folder)
    assert load_encoder_once(folder) is first
    later = (folder / "config.json").stat().st_mtime + 10
    os.utime(folder / "config.json", (later, later))
    assert load_encoder_once(folder) is not first


def test_rows_are_plain_numbers(model: SentenceEncoder) -> None:
    rows: Any = Texts(model).rows(SHORT[:1])
    assert type(rows[0][0]) is float
