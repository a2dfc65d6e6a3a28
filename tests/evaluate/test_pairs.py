"""Binary pairs against sentence-transformers' own evaluator."""

from __future__ import annotations

import numpy as np
import pytest

from munjang.data.rows import LabelledPair
from munjang.errors import InputError
from munjang.evaluate.pairs import evaluate_pairs, score_pair_vectors


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
