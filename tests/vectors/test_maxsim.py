"""MaxSim over ragged token vectors, beside sentence-transformers' own and the plain definition."""

from __future__ import annotations

from typing import get_args

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from munjang.errors import InputError, UsageError
from munjang.vectors.maxsim import (
    TokenCodebook,
    TokenCodes,
    TokenFormat,
    best_similarities,
    fit_codebook,
    maxsim,
    maxsim_exact,
    token_similarities,
)

FORMATS: tuple[TokenFormat, ...] = get_args(TokenFormat)


def make_passages(lengths, dimension=48, seed=0):
    rng = np.random.default_rng(seed)
    centre = rng.standard_normal(dimension)
    return [(rng.standard_normal((length, dimension)) + centre).astype(np.float32) for length in lengths]


def test_float_scores_equal_those_of_sentence_transformers() -> None:
    torch = pytest.importorskip("torch")
    similarity = pytest.importorskip("sentence_transformers.util.similarity")
    passages = make_passages([7, 1, 30, 300])
    [query] = make_passages([12], seed=1)
    units = [torch.nn.functional.normalize(torch.from_numpy(each), dim=-1) for each in (query, *passages)]
    theirs = similarity.maxsim(units[:1], units[1:], length_normalize=True)[0].numpy()
    book = fit_codebook(np.concatenate(passages), "float32")
    ours = maxsim(query, TokenCodes.join([book.quantize(each) for each in passages], book), book)
    np.testing.assert_allclose(ours, theirs, atol=1e-5)
    np.testing.assert_allclose(maxsim_exact(query, passages), theirs, atol=1e-5)


def unit(rows: np.ndarray) -> np.ndarray:
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("dimension", [48, 13])
def test_codes_score_as_the_vectors_that_they_stand_for(format: TokenFormat, dimension: int) -> None:
    passages = make_passages([3, 0, 200, 1, 9_000], dimension)  # one has no token, one more than are scored at once
    [query] = make_passages([5], dimension, seed=1)
    book = fit_codebook(np.concatenate(passages), format)
    codes = [book.quantize(each) for each in passages]
    unit_query, rows = unit(query), [book.dequantize(each) for each in codes]
    if format == "1bit":  # centred on both sides
        unit_query, rows = unit(unit_query - book.centre_D), [unit(each - book.centre_D) if len(each) else each for each in rows]
    expected = [(unit_query @ each.T).max(axis=1).mean() if len(each) else 0.0 for each in rows]
    np.testing.assert_allclose(maxsim(query, TokenCodes.join(codes, book), book), expected, atol=1e-4)
    places = token_similarities(query, codes[2], book).argmax(axis=1)
    best_QP = best_similarities(query, TokenCodes.join(codes, book), book)
    np.testing.assert_allclose((unit_query @ rows[2].T)[np.arange(5), places], best_QP[:, 2], atol=1e-4)


def test_more_bits_come_nearer_to_the_exact_score() -> None:
    passages = make_passages([40] * 20, 96)
    query = passages[3][:8] + 0.3 * make_passages([8], 96, seed=2)[0]
    exact = maxsim_exact(query, passages)
    errors = []
    for format in ("1bit", "2bit", "int8"):
        book = fit_codebook(np.concatenate(passages), format)
        errors.append(np.abs(maxsim(query, TokenCodes.join([book.quantize(each) for each in passages], book), book) - exact).max())
        assert maxsim(query, TokenCodes.join([book.quantize(each) for each in passages], book), book).argmax() == exact.argmax()
    assert errors[0] > errors[1] > errors[2]
    assert errors[2] < 0.02


@given(st.lists(st.integers(0, 6), min_size=1, max_size=6), st.sampled_from(FORMATS), st.integers(1, 40))
@settings(max_examples=40, deadline=None)
def test_a_passage_scores_the_same_whatever_stands_beside_it(lengths: list[int], format: TokenFormat, dimension: int) -> None:
    passages = make_passages(lengths, dimension)
    [query] = make_passages([3], dimension, seed=1)
    book = fit_codebook(make_passages([50], dimension, seed=2)[0], format)
    codes = [book.quantize(each).tobytes() for each in passages]
    together = maxsim(query, TokenCodes.join(codes, book), book)
    alone = [maxsim(query, TokenCodes.join([each], book), book)[0] for each in codes]
    np.testing.assert_allclose(together, alone, atol=1e-6)
    assert all(len(each) == length * book.token_bytes for each, length in zip(codes, lengths, strict=True))


def test_a_bit_a_dimension_takes_48_bytes_of_384_dimensions() -> None:
    rows = np.random.default_rng(0).standard_normal((4, 384)).astype(np.float32)
    assert [fit_codebook(rows, format).token_bytes for format in FORMATS] == [1536, 384, 96, 48]


def test_nothing_to_compare_scores_nothing() -> None:
    book = fit_codebook(make_passages([9])[0], "1bit")
    assert maxsim(np.zeros((0, 48), np.float32), TokenCodes.join([b""], book), book).tolist() == [0.0]
    assert maxsim(make_passages([2])[0], TokenCodes.join([], book), book).shape == (0,)


def test_what_does_not_belong_together_is_refused() -> None:
    book = fit_codebook(make_passages([9])[0], "1bit")
    with pytest.raises(InputError, match="no multiple of 6 bytes"):
        TokenCodes.join([b"1234567"], book)
    with pytest.raises(UsageError, match="expected \\(tokens, 48\\)"):
        book.quantize(np.zeros((2, 47), np.float32))
    with pytest.raises(UsageError, match="choose one of"):
        fit_codebook(make_passages([9])[0], "3bit")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="finite"):
        TokenCodebook("1bit", np.full(3, np.nan, np.float32), np.ones(3, np.float32))
