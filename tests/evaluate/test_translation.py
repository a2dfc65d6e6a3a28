"""Translation retrieval against sentence-transformers' own evaluator."""

from __future__ import annotations

import pytest

from munjang.data.rows import TextPair
from munjang.errors import InputError
from munjang.evaluate.translation import evaluate_mse, evaluate_translation, score_mse, score_translation


def test_accuracy_equals_sentence_transformers(minilm, sentences):
    from sentence_transformers.sentence_transformer.evaluation import TranslationEvaluator

    source = [s.replace("reading", "scanning").replace("river", "stream").replace("old", "young") for s in sentences]
    theirs = TranslationEvaluator(source, sentences)(minilm)
    ours = evaluate_translation(minilm, [TextPair(a, b) for a, b in zip(source, sentences, strict=True)], resamples=50)
    for name in ("src2trg_accuracy", "trg2src_accuracy", "mean_accuracy"):
        assert getattr(ours, name) == pytest.approx(theirs[name], abs=1e-9)


def test_a_repeated_sentence_counts_as_found(words):
    pairs = [TextPair("one", "one"), TextPair("one", "one"), TextPair("two", "two")]
    assert evaluate_translation(words, pairs, resamples=20).mean_accuracy == 1.0
    vectors = words.encode(["one", "one", "two"])
    assert score_translation(vectors, vectors, resamples=0).mean_accuracy == pytest.approx(2 / 3)


def test_no_pairs_and_unequal_sides_are_refused(words):
    with pytest.raises(InputError, match="no sentence pairs"):
        evaluate_translation(words, [])
    with pytest.raises(InputError, match="1 source vectors against 2"):
        score_translation(words.encode(["a"]), words.encode(["a", "b"]))
    with pytest.raises(InputError, match="no vectors to compare"):
        score_translation(words.encode([]), words.encode([]))


def test_the_error_equals_sentence_transformers(minilm, sentences):
    from sentence_transformers.sentence_transformer.evaluation import MSEEvaluator

    target = sentences[3:] + sentences[:3]
    theirs = MSEEvaluator(sentences, target, teacher_model=minilm)(minilm)["negative_mse"]
    ours = evaluate_mse(minilm, minilm, [TextPair(a, b) for a, b in zip(sentences, target, strict=True)])
    assert ours.negative_mse == pytest.approx(theirs, rel=1e-4)
    assert ours.source_mse == pytest.approx(0.0, abs=1e-10)
    assert ours.to_json()["n"] == 64


def test_vectors_of_different_size_are_refused(words):
    with pytest.raises(InputError, match="one shape"):
        score_mse(words.encode(["a"]), words.encode(["a", "b"]))


def test_no_pairs_are_refused(words):
    with pytest.raises(InputError, match="no sentence pairs to evaluate"):
        evaluate_mse(words, words, [])
