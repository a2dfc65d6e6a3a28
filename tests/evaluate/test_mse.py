"""Distillation error against sentence-transformers' own evaluator."""

from __future__ import annotations

import pytest

from munjang.data.rows import TextPair
from munjang.errors import InputError
from munjang.evaluate.mse import evaluate_mse, score_mse


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
