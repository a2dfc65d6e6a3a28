"""Cross-encoders of families that have no packed pass and no segments: the model that transformers has."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from tests.conftest import quiet, randomise, write_tokenizer

from munjang.text.tokenizer import load_tokenizer
from munjang.train.cross_encoder import TrainableCrossEncoder
from munjang.train.encoder import CompactEmbedding

PAIRS = [("the rain", "비가 많이 온다"), ("cat", "a dog was on the train and the book of winter"), ("snow is in winter", "")]


@pytest.fixture
def model(tmp_path: Path) -> TrainableCrossEncoder:
    size = write_tokenizer(tmp_path, "distilbert", 48)
    sizes = {"hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 48, "max_position_embeddings": 64}
    with quiet():
        config = transformers.DebertaV2Config(vocab_size=size, **sizes, type_vocab_size=0, num_labels=1)
        found = transformers.DebertaV2ForSequenceClassification(config).eval()
    randomise(found)
    return TrainableCrossEncoder(found, load_tokenizer(tmp_path), labels=["LABEL_0"], max_length=48).eval()


def test_a_family_without_segments_gives_the_logits_of_transformers(model: TrainableCrossEncoder) -> None:
    assert not model.is_packed
    expected = []
    for first, second in PAIRS:
        ids, _ = model.tokenizer.wrap_pair(*model.tokens([first, second]))
        with torch.no_grad():
            expected.append(float(model.model(input_ids=torch.tensor([ids])).logits[0, 0]))
    np.testing.assert_allclose(model.logits(PAIRS)[:, 0], expected, atol=1e-5)


def test_the_whole_table_learns_where_every_piece_is_used(model: TrainableCrossEncoder) -> None:
    def words() -> Any:
        return model.model.base_model.get_input_embeddings()

    count = words().num_embeddings
    model.train_rows(torch.arange(count))
    assert not isinstance(words(), CompactEmbedding)
    model.train_rows(torch.arange(count - 5))
    assert isinstance(words(), CompactEmbedding)
    model.train_all_rows()
    assert words().num_embeddings == count
