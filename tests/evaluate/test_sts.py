"""STS scores against sentence-transformers' own evaluator, with real vectors."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence

import numpy as np
import pytest

from munjang.data.rows import ScoredPair
from munjang.errors import InputError
from munjang.evaluate.sts import evaluate_sts, evaluate_sts_scores, score_correlations, score_sts
from munjang.types import Vectors


def _pairs(sentences: list[str]) -> list[ScoredPair]:
    """Every sentence with a later one; the score is the share of words in common, so that it means something."""
    made = []
    for i, a in enumerate(sentences):
        b = sentences[(i * 7 + 3) % len(sentences)]
        shared = len(set(a.split()) & set(b.split())) / len(set(a.split()) | set(b.split()))
        made.append(ScoredPair(a, b, round(shared, 2), ("news", "captions")[i % 2], f"made.tsv line {i + 1}"))
    return made


def test_the_eight_numbers_equal_sentence_transformers(minilm, sentences):
    from sentence_transformers.sentence_transformer.evaluation import EmbeddingSimilarityEvaluator

    pairs = _pairs(sentences)
    a, b = minilm.encode([p.a for p in pairs]), minilm.encode([p.b for p in pairs])
    # Not unit length, so that dot and cosine differ.
    lengths = np.linspace(0.5, 2.0, len(pairs), dtype=np.float32)[:, None]
    theirs = EmbeddingSimilarityEvaluator(
        [p.a for p in pairs],
        [p.b for p in pairs],
        [p.score for p in pairs],
        similarity_fn_names=["cosine", "dot", "euclidean", "manhattan"],
    )
    stretched = iter([a * lengths, b])
    theirs.embed_inputs = lambda *args, **kwargs: next(stretched)
    expected = theirs(minilm)
    ours = score_sts(a * lengths, b, [p.score for p in pairs], resamples=0)
    assert len(ours.scores) == 8
    for name, value in ours.scores.items():
        assert value == pytest.approx(expected[name], abs=1e-6), name


def test_an_encoder_and_its_vectors_score_the_same(words, sentences):
    pairs = _pairs(sentences)
    direct = evaluate_sts(words, pairs, resamples=200)
    made = score_sts(words.encode([p.a for p in pairs]), words.encode([p.b for p in pairs]), [p.score for p in pairs], resamples=200)
    assert direct.scores == made.scores
    assert direct.ci95 == made.ci95


def test_the_report_has_genres_intervals_and_the_worst_pairs(words, sentences):
    pairs = _pairs(sentences)
    pairs[5] = ScoredPair("snow falls", "snow falls", 0.0, "captions", "made.tsv line 6")
    found = evaluate_sts(words, pairs, resamples=300, worst=3)
    assert [(g.genre, g.n) for g in found.genres] == [("captions", 32), ("news", 32)]
    assert found.worst[0].where == "made.tsv line 6"
    assert found.worst[0].gap > 0
    low, high = found.ci95["spearman_cosine"].low, found.ci95["spearman_cosine"].high
    assert low < found.scores["spearman_cosine"] < high


def test_the_json_has_the_promised_shape(words, sentences):
    body = evaluate_sts(words, _pairs(sentences), resamples=100, binary_at=0.4).to_json()
    assert body["n"] == 64
    assert len(body["ci95"]) == 8
    assert set(body["ci95"]) <= set(body)
    assert {"pearson_cosine", "spearman_cosine", "spearman_manhattan", "genres", "worst", "f1_cosine"} <= set(body)
    assert json.loads(json.dumps(body, allow_nan=False)) == body


def test_constant_gold_scores_give_null_not_a_crash(words):
    pairs = [ScoredPair("a b", "a c", 0.5), ScoredPair("d e", "f g", 0.5), ScoredPair("h", "h", 0.5)]
    found = evaluate_sts(words, pairs, resamples=50)
    assert math.isnan(found.scores["spearman_cosine"])
    assert found.to_json()["spearman_cosine"] is None


def test_no_pairs_and_unequal_lengths_are_refused(words):
    with pytest.raises(InputError, match="no pairs"):
        evaluate_sts(words, [])
    with pytest.raises(InputError, match="2 vectors against 3 gold scores"):
        score_sts(words.encode(["a", "b"]), words.encode(["a", "b"]), [0, 1, 1])


PAIRS = [ScoredPair("a" * n, "b", (n % 7) / 7, "", f"line {n}") for n in range(1, 30)]


class Lengths:
    def __init__(self, columns: int = 1) -> None:
        self.columns = columns

    def predict(self, pairs: Sequence[tuple[str, str]], /) -> Vectors:
        scores = np.array([np.sin(len(a)) for a, _ in pairs], np.float32)
        return scores if self.columns == 1 else np.stack([scores] * self.columns, axis=1)


def test_both_numbers_are_those_of_scipy_with_intervals_around_them() -> None:
    stats = pytest.importorskip("scipy.stats", reason="the authority is not installed")
    found = evaluate_sts_scores(Lengths(), PAIRS, resamples=500)
    scores, gold = np.sin([len(pair.a) for pair in PAIRS]), [pair.score for pair in PAIRS]
    assert found.scores["pearson"] == pytest.approx(stats.pearsonr(scores, gold)[0], abs=1e-6)
    assert found.scores["spearman"] == pytest.approx(stats.spearmanr(scores, gold)[0], abs=1e-6)
    assert all(found.ci95[name].low < value < found.ci95[name].high for name, value in found.scores.items())
    assert found.to_json()["n"] == 29
    assert score_correlations(scores, gold, resamples=0).ci95 == {}


def test_several_labels_and_nothing_to_score_are_refused() -> None:
    with pytest.raises(InputError, match="expected one number each"):
        evaluate_sts_scores(Lengths(3), PAIRS)
    with pytest.raises(InputError, match="no pairs"):
        evaluate_sts_scores(Lengths(), [])
