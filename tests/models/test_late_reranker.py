"""Texts ranked by a sentence encoder's token vectors."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from munjang import LateReranker, SentenceEncoder, TruncationWarning
from munjang.errors import FolderError, UsageError
from munjang.models.cross_encoder import CrossEncoder
from munjang.vectors.maxsim import SKIP, maxsim_exact

TEXTS = ["the cat sat on the mat", "rain in winter and snow", "snow fell on the sea", "a film about the sea"]


@pytest.fixture(scope="module")
def model(tiny_bert_folder: Path) -> SentenceEncoder:
    return SentenceEncoder.load(tiny_bert_folder)


@pytest.fixture(scope="module")
def prompted(tiny_bert_folder: Path) -> SentenceEncoder:
    made = SentenceEncoder.load(tiny_bert_folder)
    made.folder.prompts.update({"query": "the cat: ", "document": "on the mat: "})
    return made


def tokens(model: SentenceEncoder, texts: list[str], prompt: str = "") -> list[np.ndarray]:
    return [each.vectors for each in model.encode_tokens(texts, prompt=prompt, skip=SKIP)]


def test_the_score_is_maxsim_of_the_token_vectors(model: SentenceEncoder) -> None:
    expected = maxsim_exact(tokens(model, ["snow in winter"])[0], tokens(model, TEXTS))
    scores = LateReranker(model).predict([("snow in winter", text) for text in TEXTS])
    np.testing.assert_allclose(scores, expected, atol=1e-5)


def test_sentence_transformers_gives_the_same_scores(model: SentenceEncoder) -> None:
    util = pytest.importorskip("sentence_transformers.util")
    if not hasattr(util, "maxsim"):
        pytest.skip("this sentence-transformers has no maxsim")
    torch = pytest.importorskip("torch")
    asked, there = tokens(model, ["snow in winter"])[0], tokens(model, TEXTS)
    unit = [torch.from_numpy(rows / np.linalg.norm(rows, axis=1, keepdims=True)) for rows in (asked, *there)]
    theirs = [float(util.maxsim([unit[0]], [each]).squeeze()) / len(asked) for each in unit[1:]]
    np.testing.assert_allclose(LateReranker(model).predict([("snow in winter", text) for text in TEXTS]), theirs, atol=1e-5)


def test_a_pair_does_not_depend_on_the_others(model: SentenceEncoder) -> None:
    ranker = LateReranker(model)
    pairs = [(query, text) for query in ("snow", "the film") for text in TEXTS]
    together = ranker.predict(pairs)
    np.testing.assert_allclose(together, [ranker.predict([pair])[0] for pair in pairs], atol=1e-5)
    np.testing.assert_allclose(ranker.predict(pairs[::-1]), together[::-1], atol=1e-5)
    assert ranker.predict([]).shape == (0,)


def test_a_ranking_follows_the_scores(model: SentenceEncoder) -> None:
    ranker = LateReranker(model)
    found = ranker.rank("snow in winter", TEXTS)
    scores = ranker.predict([("snow in winter", text) for text in TEXTS])
    assert [each.index for each in found.documents] == sorted(range(len(TEXTS)), key=lambda place: -scores[place])
    assert [each.text for each in ranker.rank("snow in winter", TEXTS, k=2).documents] == [each.text for each in found.documents[:2]]
    late = ranker.rank("snow in winter", TEXTS * 10, budget_seconds=0)
    assert late.scored == 16
    assert np.isnan(late.documents[-1].score)


def test_query_and_text_have_the_prompts_of_their_roles(prompted: SentenceEncoder) -> None:
    [asked], there = tokens(prompted, ["snow"], "the cat: "), tokens(prompted, TEXTS, "on the mat: ")
    np.testing.assert_allclose(LateReranker(prompted).predict([("snow", text) for text in TEXTS]), maxsim_exact(asked, there), atol=1e-5)


def test_what_is_cut_is_reported(model: SentenceEncoder) -> None:
    long = "the cat sat on the mat " * 20
    ranker = LateReranker(model)
    pairs = [("snow", "the sea"), ("snow", long), (long, "the sea")]
    assert ranker.predict_with_report(pairs).cut == [1, 2]
    with pytest.warns(TruncationWarning, match="2 of 3 pairs are longer"):
        ranker.predict(pairs)
    assert ranker.predict_with_report([("snow", "")]).scores.tolist() == [0.0]


def test_a_chance_is_never_below_zero(model: SentenceEncoder) -> None:
    ranker = LateReranker(model)
    pairs = [(query, text) for query in TEXTS for text in TEXTS]
    plain = ranker.predict(pairs)
    np.testing.assert_array_equal(ranker.predict(pairs, score="sigmoid"), np.clip(plain, 0, 1))
    with pytest.raises(UsageError, match="score='x' is unknown"):
        ranker.predict(pairs, score="x")  # type: ignore[arg-type]


def test_a_cross_encoder_has_to_be_named() -> None:
    with pytest.raises(FolderError, match=r"none is bundled[\s\S]*LateReranker"):
        CrossEncoder.load()
