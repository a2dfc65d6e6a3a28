"""Unsupervised SimCSE against sentence-transformers, and what makes two vectors of one text."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from tests.conftest import TEXTS, quiet

from munjang.errors import InputError, UsageError
from munjang.train.adapt.text_objective import SimCse
from munjang.train.load_folder import EncoderOptions, load_encoder

UNIQUE = [text for text in TEXTS if text]


def test_without_dropout_it_is_in_batch_negatives_on_duplicated_texts(tiny_bert_folder: Path) -> None:
    with quiet():
        import sentence_transformers
        from sentence_transformers.sentence_transformer.losses import MultipleNegativesRankingLoss

        model = sentence_transformers.SentenceTransformer(str(tiny_bert_folder), device="cpu").eval()
        authority = MultipleNegativesRankingLoss(model)
        with torch.no_grad():
            wanted = authority([model.tokenize(UNIQUE), model.tokenize(UNIQUE)], torch.empty(0))
    encoder = load_encoder(tiny_bert_folder).eval()
    objective = SimCse.build({}, dimension=0, num_labels=None)
    loss = objective(objective.encode(encoder, [encoder.tokens(UNIQUE)]), None)
    assert float(loss.detach()) == pytest.approx(float(wanted), rel=1e-5)


def test_with_dropout_the_two_vectors_of_a_text_differ(tiny_bert_folder: Path) -> None:
    encoder = load_encoder(tiny_bert_folder).train()
    torch.manual_seed(1)
    first, second = SimCse.build({}, dimension=0, num_labels=None).encode(encoder, [encoder.tokens(UNIQUE)])
    assert (first - second).abs().amax(dim=1).min() > 1e-3


def test_a_model_without_dropout_is_refused(tiny_bert_folder: Path) -> None:
    encoder = load_encoder(tiny_bert_folder, EncoderOptions(dropout=0.0))
    with pytest.raises(UsageError, match="no dropout"):
        SimCse.build({}, dimension=0, num_labels=None).attach(encoder, [])


def test_rows_of_two_texts_are_refused(tiny_bert_folder: Path) -> None:
    encoder = load_encoder(tiny_bert_folder)
    ids = encoder.tokens(["the rain", "the sun"])
    with pytest.raises(InputError, match="rows of 2 texts"):
        SimCse.build({}, dimension=0, num_labels=None).encode(encoder, [ids, ids])
