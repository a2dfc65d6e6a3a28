from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from munjang.engine.modules import DenseModule, PoolingModule
from munjang.models.inspect import compare_tokens, compute_pooling_weights, inspect_text
from munjang.models.sentence_encoder import SentenceEncoder


@pytest.fixture(scope="module")
def model(tiny_bert_folder: Path) -> SentenceEncoder:
    return SentenceEncoder.load(tiny_bert_folder)


def test_the_inspected_vector_and_ids_are_those_of_encode(model: SentenceEncoder) -> None:
    found = inspect_text(model, "the rain in winter")
    np.testing.assert_allclose(found.vector, model.encode("the rain in winter"), atol=2e-6)
    assert [token.id for token in found.tokens] == model.tokenizer.encode(["the rain in winter"])[0]
    assert [token.position for token in found.tokens] == list(range(len(found.tokens)))
    np.testing.assert_array_equal(found.hidden_ND, model.encode_tokens(["the rain in winter"])[0].vectors)


def test_offsets_point_into_the_text(model: SentenceEncoder) -> None:
    text = "the rain, 비가"
    assert [text[token.start : token.end] for token in inspect_text(model, text).tokens if not token.special][:3] == ["the", "rain", ","]


def test_every_layer_has_its_real_shape(model: SentenceEncoder) -> None:
    found = inspect_text(model, "cat")
    names = [layer.name for layer in found.layers]
    assert names[0] == "embeddings"
    assert names[-2:] == ["pooling (mean)", "normalize"]
    assert sum(layer.shape == (len(found.tokens), 32) for layer in found.layers) == model.engine.layers + 1
    norm = np.linalg.norm(found.hidden_ND, axis=1).mean()
    assert found.layers[model.engine.layers].mean_norm == pytest.approx(norm)


def test_a_long_text_is_cut_as_in_encode(model: SentenceEncoder) -> None:
    found = inspect_text(model, "sleep " * 100)
    assert found.was_cut
    assert len(found.tokens) == model.max_length
    assert found.tokens[-1].text == "[SEP]"
    assert found.tokens_before_cut == 102


WORDS = st.lists(st.sampled_from(["the", "rain", "비가", "온다", "cat", "!", "☃"]), max_size=30).map(" ".join)


@settings(max_examples=40, deadline=None)
@given(a=WORDS, b=WORDS)
def test_what_the_pairs_add_sums_to_the_score(model: SentenceEncoder, a: str, b: str) -> None:
    compared = compare_tokens(model, a, b)
    assert compared.contribution_NM is not None
    assert compared.contribution_NM.sum() == pytest.approx(compared.score, abs=1e-5)


@pytest.mark.parametrize("pooling", ["mean", "mean_sqrt_len", "weightedmean", "cls", "lasttoken", "max"])
def test_the_split_is_exact_for_every_weighted_pooling(tiny_bert_folder: Path, pooling: str) -> None:
    model = SentenceEncoder.load(tiny_bert_folder, pooling=pooling)  # type: ignore[arg-type]
    compared = compare_tokens(model, "the rain in winter", "비가 온다")
    if pooling == "max":
        assert compared.contribution_NM is None
        assert compared.best_pairs[0].contribution is None
    else:
        assert compared.contribution_NM is not None
        assert compared.contribution_NM.sum() == pytest.approx(compared.score, abs=1e-5)


def test_best_pairs_use_a_token_once_and_no_special_one(model: SentenceEncoder) -> None:
    compared = compare_tokens(model, "the cat", "cat the dog")
    assert len(compared.best_pairs) == 2
    assert len({pair.first for pair in compared.best_pairs}) == len({pair.second for pair in compared.best_pairs}) == 2
    assert not any(compared.first.tokens[pair.first].special for pair in compared.best_pairs)
    cosines = [pair.cosine for pair in compared.best_pairs]
    assert cosines == sorted(cosines, reverse=True)


def test_an_empty_sentence_compares_without_nan(model: SentenceEncoder) -> None:
    assert np.isfinite(compare_tokens(model, "", "cat").cosine_NM).all()


def test_a_dense_layer_or_several_poolings_have_no_split() -> None:
    dense = DenseModule(Path(), 1, 1, bias=False, activation="tanh")
    assert compute_pooling_weights((PoolingModule(("mean",)), dense), [True]) is None
    assert compute_pooling_weights((PoolingModule(("cls", "mean")),), [True]) is None
    weights = compute_pooling_weights((PoolingModule(("mean",)),), [False, True])
    assert weights is not None
    assert weights.tolist() == [0, 1]
