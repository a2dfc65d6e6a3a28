"""The back end in KeyBERT's own hands."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pytest
from tests.adapters.conftest import SHORT, adapter, library

from munjang import SentenceEncoder

backend = adapter("keybert", needs="keybert")
keybert = library("keybert")
DOCUMENT = "winter snow and rain, the river in winter, a dog sleeping on the train to the river"


def test_keybert_takes_it_as_it_is(model: SentenceEncoder) -> None:
    made = backend.MunjangKeyBERTBackend(model)
    assert keybert.KeyBERT(model=made).model is made
    np.testing.assert_allclose(made.embed(SHORT), model.encode(SHORT), atol=1e-6)
    np.testing.assert_allclose(made.embed(np.array(SHORT)), model.encode(SHORT), atol=1e-6)


def test_keybert_finds_the_keywords_that_it_finds_with_sentence_transformers(tiny_bert_folder: Path) -> None:
    transformers = library("sentence_transformers")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = keybert.KeyBERT(model=transformers.SentenceTransformer(str(tiny_bert_folder), device="cpu"))
        ours = keybert.KeyBERT(model=backend.MunjangKeyBERTBackend(tiny_bert_folder))
        expected = theirs.extract_keywords(DOCUMENT, keyphrase_ngram_range=(1, 2), use_mmr=True)
        found = ours.extract_keywords(DOCUMENT, keyphrase_ngram_range=(1, 2), use_mmr=True)
    assert [phrase for phrase, _ in found] == [phrase for phrase, _ in expected]
    assert [score for _, score in found] == pytest.approx([score for _, score in expected], abs=2e-4)
