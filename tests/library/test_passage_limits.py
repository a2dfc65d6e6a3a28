"""Passages are read to their end: nothing of a document is beyond what the model takes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from munjang.library.library import Library
from munjang.library.passages import fitting_passages, split_passages
from munjang.library.store import Settings
from munjang.models.sentence_encoder import SentenceEncoder

SETTINGS = Settings(model="m", fingerprint="f", dimension=2, analyser="bigrams", passage_characters=100, passage_overlap=20)


class Counting:
    """An encoder with as many tokens as a text has characters, and three for each that is not ASCII, as bytes have."""

    dimension, fingerprint = 2, "counting"

    def __init__(self, max_length: int) -> None:
        self.max_length = max_length

    def count_tokens(self, texts: Iterable[str], /) -> list[int]:
        return [len(text.encode()) for text in texts]

    def encode(self, texts: Iterable[str], /) -> np.ndarray:
        return np.ones((len(list(texts)), 2), np.float32)


WORDS = st.lists(st.text("abc가나다 .", min_size=1, max_size=12), max_size=60).map(" ".join)


@given(st.lists(WORDS, max_size=4), st.integers(30, 200), st.integers(40, 300))
def test_every_passage_fits_and_together_they_are_the_text(texts: list[str], limit: int, characters: int) -> None:
    settings = replace(SETTINGS, passage_characters=characters, passage_overlap=characters // 5)
    found = fitting_passages(texts, Counting(limit), settings)
    assert len(found) == len(texts)
    for text, spans in zip(texts, found, strict=True):
        assert all(len(text[start:stop].encode()) <= limit for start, stop in spans)
        assert (spans[0][0], spans[-1][1]) == (0, len(text))
        assert all(before[0] < after[0] <= before[1] < after[1] for before, after in pairwise(spans))


def test_what_fits_is_split_by_characters_alone() -> None:
    text = "It rains. " * 30
    settings = replace(SETTINGS, passage_characters=100, passage_overlap=20)
    expected = [split_passages(text, characters=100, overlap=20)]
    assert fitting_passages([text], Counting(400), settings) == expected

    class Silent:
        dimension, fingerprint = 2, "silent"
        encode = Counting.encode

    assert fitting_passages([text], Silent(), settings) == expected  # type: ignore[arg-type]


def test_a_model_that_reads_next_to_nothing_is_not_waited_for() -> None:
    found = fitting_passages(["가" * 40], Counting(2), replace(SETTINGS, passage_characters=40, passage_overlap=8))
    assert all(stop - start <= 8 for start, stop in found[0])


def test_the_last_sentence_of_a_dense_document_is_found(tmp_path, tiny_bert_folder, recwarn: pytest.WarningsRecorder) -> None:
    model = SentenceEncoder.load(tiny_bert_folder)
    assert model.max_length is not None
    dense = "? ! " * model.max_length
    with Library.open(tmp_path / "a.munjang", model, passage_characters=len(dense), analyser="bigrams") as library:
        library.add([{"id": "a", "text": dense + "rain"}, {"id": "b", "text": dense + "snow"}])
        assert library.info().passages > 2
        last = [entry.vectors_PD[-1] for block in library.store.entries() for entry in block]
    assert not np.allclose(last[0], last[1])
    assert not [warning for warning in recwarn if "longer than" in str(warning.message)]


def test_tokens_are_counted_as_the_model_reads_them(tiny_bert_folder) -> None:
    model = SentenceEncoder.load(tiny_bert_folder)
    texts = ["rain", "rain and snow", ""]
    assert model.count_tokens(texts) == model.encode_with_report(texts).tokens.tolist()
    assert model.count_tokens(["snow"], prompt="rain and ") == [model.count_tokens(["rain and snow"])[0]]
