"""Binary pairs against sentence-transformers' own evaluator."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from munjang.data.rows import LabelledPair, ScoredPair
from munjang.errors import InputError, UsageError
from munjang.evaluate.compare import compare_nli, compare_pairs, compare_sts
from munjang.evaluate.pairs import evaluate_pairs, measure_pairs, score_pair_vectors


def test_every_number_equals_sentence_transformers(minilm, sentences):
    from sentence_transformers.sentence_transformer.evaluation import BinaryClassificationEvaluator

    a, b = sentences, [sentences[(i * 5 + 1) % 64] for i in range(64)]
    labels = [int(len(set(x.split()) & set(y.split())) > 4) for x, y in zip(a, b, strict=True)]
    theirs = BinaryClassificationEvaluator(a, b, labels, similarity_fn_names=["cosine", "dot", "euclidean", "manhattan"])(minilm)
    ours = score_pair_vectors(minilm.encode(a), minilm.encode(b), labels, resamples=0)
    for name, value in ours.scores.items():
        metric, _, what = name.partition("_")
        sign = -1 if "threshold" in what and metric in ("euclidean", "manhattan") else 1
        assert value == pytest.approx(sign * theirs[name], abs=1e-5), name


def test_an_encoder_tells_same_from_different(words):
    same = [LabelledPair(f"word{i} and more", f"word{i} and more too", "1") for i in range(10)]
    other = [LabelledPair(f"thing{i} here", f"nothing{i} there", "0") for i in range(10)]
    found = evaluate_pairs(words, [*same, *other], resamples=100)
    assert found.scores["cosine_ap"] == pytest.approx(1.0)
    assert (found.n, found.positives) == (20, 10)
    assert found.ci95["cosine_ap"].high == pytest.approx(1.0)
    assert found.to_json()["cosine_f1"] == 1.0


def test_one_class_gives_null_where_nothing_can_be_said(words):
    found = evaluate_pairs(words, [LabelledPair("a", "b", "0"), LabelledPair("c", "d", "0")], resamples=20)
    assert found.to_json()["cosine_ap"] is None
    assert found.to_json()["cosine_accuracy"] == 1.0
    assert np.isnan(found.ci95["cosine_ap"].low)


def test_another_label_is_refused_by_file_and_line(words):
    with pytest.raises(InputError, match="x.tsv line 4: the label is 'neutral'"):
        evaluate_pairs(words, [LabelledPair("a", "b", "neutral", "x.tsv line 4")])


def test_no_pairs_are_refused(words):
    with pytest.raises(InputError, match="no pairs to evaluate"):
        evaluate_pairs(words, [])


metrics = pytest.importorskip("sklearn.metrics", reason="scikit-learn is the authority")
CHANCE = np.random.default_rng(4)
GOLD = CHANCE.integers(0, 2, 60)
PAIRS = [LabelledPair(f"a{number}", f"b{number}", str(label)) for number, label in enumerate(GOLD)]
SCORES = {f"a{number}": float(score) for number, score in enumerate(GOLD + CHANCE.normal(0, 0.8, 60))}


class Scoring:
    """Gives every pair the score of its first text, turned around if asked."""

    def __init__(self, sign: float = 1.0) -> None:
        self.sign = sign

    def predict(self, pairs: Sequence[tuple[str, str]], /) -> np.ndarray:
        return np.asarray([self.sign * SCORES[a] for a, _ in pairs], np.float32)


class Labelling:
    """Predicts the label that stands in the first text."""

    def predict(self, pairs: Sequence[tuple[str, str]], /) -> np.ndarray:
        return np.asarray([[float(a == "no"), float(a == "yes")] for a, _ in pairs], np.float32)


def test_a_scorers_numbers_are_scikit_learns() -> None:
    scores = np.asarray([SCORES[pair.a] for pair in PAIRS], np.float32)
    found = evaluate_pairs(Scoring(), PAIRS, resamples=50).scores
    assert found["ap"] == pytest.approx(metrics.average_precision_score(GOLD, scores))
    assert found["f1"] == pytest.approx(max(metrics.f1_score(GOLD, scores >= at) for at in scores))
    assert found["accuracy"] == pytest.approx(max(metrics.accuracy_score(GOLD, scores >= at) for at in scores))
    np.testing.assert_allclose(measure_pairs(Scoring(), PAIRS), scores)


def test_scorers_are_compared_by_their_scores() -> None:
    found = compare_pairs(Scoring(), Scoring(-1), PAIRS, resamples=50)
    assert (found.metric, found.winner) == ("ap", "a")
    scored = [ScoredPair(pair.a, pair.b, float(label)) for pair, label in zip(PAIRS, GOLD, strict=True)]
    assert compare_sts(Scoring(), Scoring(), scored, resamples=50).difference == 0.0


def test_classifiers_are_compared_by_accuracy() -> None:
    rows = [LabelledPair("yes", "x", "yes"), LabelledPair("no", "x", "no"), LabelledPair("yes", "x", "no")]
    found = compare_nli(Labelling(), Labelling(), rows, labels=(("no", "yes"), ("yes", "no")), resamples=20)
    assert (found.metric, found.a, found.b) == ("accuracy", pytest.approx(2 / 3), pytest.approx(1 / 3))
    with pytest.raises(InputError, match="'yes' is none of the model's: no, maybe"):
        compare_nli(Labelling(), Labelling(), rows, labels=(("no", "maybe"), ("no", "yes")))


def test_several_labels_and_what_is_no_model_are_refused() -> None:
    with pytest.raises(InputError, match="expected one number each"):
        evaluate_pairs(Labelling(), PAIRS)
    with pytest.raises(UsageError, match="model is the text 'ko-en-small'"):
        evaluate_pairs("ko-en-small", PAIRS)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="a is a int"):
        compare_pairs(3, Scoring(), PAIRS)  # type: ignore[arg-type]
