"""A prompted view of a model has all that an encoder has, and its vectors are those of the model with that prompt."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from munjang import SentenceEncoder, TruncationWarning
from munjang.types import Encoder, RoleEncoder

TEXTS = ["the rain", "비가 온다", ""]


@pytest.fixture(scope="module")
def model(tiny_folder: Callable[..., Path]) -> SentenceEncoder:
    return SentenceEncoder.load(tiny_folder("bert", settings=json.dumps({"prompts": {"query": "coffee: ", "passage": "winter book: "}})))


def test_every_view_gives_the_vectors_tokens_and_counts_of_its_prompt(model: SentenceEncoder) -> None:
    for view, prompt in (
        (model.for_queries(), "coffee: "),
        (model.for_documents(), "winter book: "),
        (model.with_prompt("snow "), "snow "),
        (model.with_prompt(), ""),
    ):
        assert isinstance(view, Encoder)
        assert isinstance(view, RoleEncoder)
        assert (view.name, view.dimension, view.max_length, view.compute) == (model.name, model.dimension, model.max_length, model.compute)
        np.testing.assert_array_equal(view.encode(TEXTS), model.encode(TEXTS, prompt=prompt))
        np.testing.assert_array_equal(view.encode("cat", normalize=True), model.encode("cat", prompt=prompt, normalize=True))
        assert view.count_tokens(TEXTS) == model.count_tokens(TEXTS, prompt=prompt)
        [first] = view.encode_tokens(["cat"])
        assert first.tokens == model.encode_tokens([f"{prompt}cat"])[0].tokens


def test_vectors_of_different_prompts_have_different_fingerprints(model: SentenceEncoder) -> None:
    views = [model.with_prompt(), model.for_queries(), model.for_documents(), model.with_prompt("snow "), model.with_prompt("rain ")]
    assert views[0].fingerprint == model.fingerprint
    assert len({view.fingerprint for view in views}) == len(views)
    assert model.with_prompt("winter book: ").fingerprint == model.for_documents().fingerprint
    assert model.for_documents().fingerprint_as("int8") == f"{model.fingerprint_as('int8')} passage"


def test_a_view_for_documents_knows_the_view_for_queries_and_a_prompt_of_its_own_stays(model: SentenceEncoder) -> None:
    assert model.for_documents().for_queries() == model.for_queries()
    assert model.with_prompt(progress=True).for_documents() == model.for_documents(progress=True)
    own = model.with_prompt("snow ")
    assert own.for_queries() is own.for_documents() is own


def test_a_cut_is_a_warning_unless_the_view_is_told_not_to_warn(model: SentenceEncoder) -> None:
    long = ["rain " * 100]
    with pytest.warns(TruncationWarning, match="1 of 1 text is longer than 24 tokens"):
        model.for_queries().encode(long)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.for_queries(warn=False).encode(long)
        model.for_queries().encode(long, long_text="window")
