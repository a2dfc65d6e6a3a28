"""Shorter vectors: the directions are those of linear algebra's and scikit-learn's own, and everyone computes the same."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from tests.conftest import TEXTS, WORDS

from munjang.errors import UsageError
from munjang.models.compress.parts import fit_projection, reduce_dimension
from munjang.models.sentence_encoder import SentenceEncoder

MANY = [f"{first} {second}" for first in WORDS[:10] for second in WORDS[10:20]]


def random_vectors(count: int = 60, width: int = 12) -> np.ndarray:
    random = np.random.default_rng(3)
    return (random.normal(size=(count, width)) * np.linspace(3, 0.1, width) + 1).astype(np.float32)


def test_directions_are_those_of_the_singular_value_decomposition() -> None:
    vectors = random_vectors()
    found = fit_projection(vectors, dimension=4)
    expected = np.linalg.svd(vectors.astype(np.float64), full_matrices=False)[2][:4]
    np.testing.assert_allclose(np.abs(found.weight_ED @ expected.T), np.eye(4), atol=1e-4)
    assert not found.bias_E.any()


def test_centred_it_is_the_pca_of_scikit_learn() -> None:
    decomposition = pytest.importorskip("sklearn.decomposition", reason="the authority scikit-learn is not installed")
    vectors = random_vectors()
    found = fit_projection(vectors, dimension=5, center=True)
    pca = decomposition.PCA(5).fit(vectors.astype(np.float64))
    ours, theirs = vectors @ found.weight_ED.T + found.bias_E, pca.transform(vectors.astype(np.float64))
    signs = np.sign((ours * theirs).sum(axis=0))
    np.testing.assert_allclose(ours * signs, theirs, atol=1e-4)
    assert found.kept == pytest.approx(pca.explained_variance_ratio_.sum(), abs=1e-6)


@settings(max_examples=30, deadline=None)
@given(hnp.arrays(np.float32, (20, 6), elements=st.floats(-10, 10, width=32)))
def test_dot_products_lose_no_more_than_what_is_left_out(vectors: np.ndarray) -> None:
    found = fit_projection(vectors, dimension=3)
    short = vectors @ found.weight_ED.T
    assert -1e-6 <= found.kept <= 1 + 1e-6
    assert (np.linalg.norm(short, axis=1) <= np.linalg.norm(vectors, axis=1) * (1 + 1e-4) + 1e-4).all()
    np.testing.assert_allclose(found.weight_ED @ found.weight_ED.T, np.eye(3), atol=1e-4)


def test_equal_vectors_give_an_equal_projection_whatever_their_order() -> None:
    vectors = random_vectors()
    one, other = fit_projection(vectors, dimension=4), fit_projection(vectors[::-1], dimension=4)
    np.testing.assert_allclose(one.weight_ED, other.weight_ED, atol=1e-5)


@pytest.mark.parametrize("modules", [("normalize",), ()], ids=["normalised", "plain"])
@pytest.mark.parametrize("center", [False, True], ids=["as it is", "centred"])
def test_sentence_transformers_gives_the_same_short_vectors(
    modules: tuple[str, ...], center: bool, tiny_folder: Callable[..., Path], tmp_path: Path, authority: Callable[..., np.ndarray]
) -> None:
    folder = tiny_folder("bert", modules=modules)
    kept = reduce_dimension(folder, tmp_path / "small", MANY, dimension=8, center=center)
    model = SentenceEncoder.load(tmp_path / "small")
    texts = [text for text in TEXTS if text]
    ours = model.encode_with_report(texts).vectors
    assert (model.dimension, model.normalized) == (8, bool(modules))
    assert 0 < kept < 1
    np.testing.assert_allclose(ours, authority(tmp_path / "small", texts), atol=2e-5)


def test_cosines_stay_near_when_most_is_kept(tiny_bert_folder: Path, tmp_path: Path) -> None:
    reduce_dimension(tiny_bert_folder, tmp_path / "small", MANY, dimension=30)
    before, after = (SentenceEncoder.load(path).encode(MANY) for path in (tiny_bert_folder, tmp_path / "small"))
    assert np.abs(before @ before.T - after @ after.T).max() < 0.02


@pytest.mark.parametrize(("dimension", "texts"), [(32, MANY), (0, MANY), (8, MANY[:5])], ids=["as many", "none", "few texts"])
def test_what_cannot_be_projected_is_refused(dimension: int, texts: list[str], tiny_bert_folder: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="expected"):
        reduce_dimension(tiny_bert_folder, tmp_path / "small", texts, dimension=dimension)
