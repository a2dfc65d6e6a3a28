"""Triplet accuracy against sentence-transformers' own evaluator."""

from __future__ import annotations

import pytest

from munjang.data.rows import Triplet
from munjang.errors import InputError
from munjang.evaluate.triplets import evaluate_triplets, score_triplets


def test_accuracy_equals_sentence_transformers(minilm, sentences):
    from sentence_transformers.sentence_transformer.evaluation import TripletEvaluator

    positive, negative = sentences[1:] + sentences[:1], sentences[9:] + sentences[:9]
    theirs = TripletEvaluator(sentences, positive, negative, similarity_fn_names=["cosine", "dot", "euclidean", "manhattan"])(minilm)
    ours = score_triplets(minilm.encode(sentences), minilm.encode(positive), minilm.encode(negative), resamples=0)
    for name, value in ours.scores.items():
        assert value == pytest.approx(theirs[name], abs=1e-6), name


def test_a_tie_is_wrong_and_a_margin_is_harder(words):
    tie = Triplet("red car", "blue car", "blue car")
    good = Triplet("red car", "red car", "green tree")
    assert evaluate_triplets(words, [tie, good], resamples=50).scores["cosine_accuracy"] == 0.5
    assert evaluate_triplets(words, [good], margin=5.0, resamples=50).scores["cosine_accuracy"] == 0.0


def test_no_triplets_are_refused(words):
    with pytest.raises(InputError, match="no triplets"):
        evaluate_triplets(words, [])
