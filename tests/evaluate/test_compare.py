"""Two systems on one set."""

from __future__ import annotations

import numpy as np
import pytest

from munjang.data.rows import LabelledPair, RetrievalTask, ScoredPair
from munjang.errors import InputError, UsageError
from munjang.evaluate.compare import compare_pairs, compare_retrieval, compare_scores, compare_sts
from munjang.evaluate.metrics import spearman


def _scored(sentences) -> list[ScoredPair]:
    others = [sentences[(i * 7 + 3) % 64] for i in range(64)]
    return [ScoredPair(a, b, len(set(a.split()) & set(b.split())) / 7) for a, b in zip(sentences, others, strict=True)]


def test_a_model_that_knows_words_beats_noise_on_sts(words, noise, sentences):
    found = compare_sts(words, noise, _scored(sentences), resamples=500)
    assert found.winner == "a"
    assert found.p < 0.01
    assert found.metric == "spearman_cosine"
    assert found.to_json()["winner"] == "a"


def test_a_model_against_itself_is_a_draw(words, sentences):
    found = compare_sts(words, words, _scored(sentences), resamples=200)
    assert (found.difference, found.p, found.winner) == (0.0, 1.0, "neither")


def test_score_lists_are_compared_by_their_agreement_with_gold():
    gold = np.arange(50.0)
    random = np.random.default_rng(0)
    a, b = gold + random.normal(size=50), gold + random.normal(scale=40, size=50)
    found = compare_scores(a, b, gold, resamples=500)
    assert found.difference == pytest.approx(spearman(a, gold) - spearman(b, gold))
    assert compare_scores(b, a, gold, against="pearson", resamples=500).winner == "b"
    assert compare_scores(a, b, gold > 25, against="ap", resamples=100).a > 0.9


def test_pairs_are_compared_by_average_precision(words, noise):
    pairs = [LabelledPair(f"thing{i} one", f"thing{i} two" if i % 2 else f"other{i} two", str(i % 2)) for i in range(60)]
    assert compare_pairs(words, noise, pairs, resamples=200).winner == "a"


def test_retrieval_is_compared_by_the_chosen_measure(words, noise, sentences):
    corpus = {f"d{i}": s for i, s in enumerate(sentences)}
    task = RetrievalTask(corpus, {f"q{i}": s for i, s in enumerate(sentences[:20])}, {f"q{i}": {f"d{i}": 1} for i in range(20)})
    found = compare_retrieval(words, noise, task, metric="mrr@5", resamples=200)
    assert found.metric == "mrr@5"
    assert found.a == 1.0


def test_unknown_measures_and_empty_sets_are_refused(words):
    with pytest.raises(UsageError, match=r"ndcg@10"):
        compare_retrieval(words, words, RetrievalTask({}, {}, {}), metric="ndcg")
    with pytest.raises(UsageError, match="spearman, pearson or ap"):
        compare_scores([1], [1], [1], against="kendall")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="0 pairs with a score, expected at least two"):
        compare_sts(words, words, [])
    flat = [ScoredPair("rain", text, 0.5) for text in ("snow", "sun")]
    with pytest.raises(InputError, match="all 2 gold scores are 0.5, expected different ones"):
        compare_sts(words, words, flat)
