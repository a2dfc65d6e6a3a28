from __future__ import annotations

from collections.abc import Mapping

import pytest

from munjang.errors import UsageError
from munjang.train.objectives.registry import make_objective, make_score_loss
from munjang.train.objectives.score_losses import LambdaLoss


@pytest.mark.parametrize(
    ("name", "values", "message"),
    [
        ("triplet", {"margn": 1}, "did you mean margin"),
        ("triplet", {"margin": "big"}, "margin is 'big', expected a number"),
        ("triplet", {"margin": True}, "expected a number"),
        ("triplet", {"margin": 0}, "more than 0"),
        ("triplet", {"distance": "hamming"}, "one of cosine, euclidean, manhattan"),
        ("classification", {"parts": "u"}, "expected a list"),
        ("classification", {"parts": []}, "parts is empty"),
        ("classification", {"parts": ["u", "u"]}, "one part twice"),
        ("classification", {"parts": ["u", "w"]}, "expected one of u, v"),
        ("in_batch", {"scale": 20, "temperature": 0.05}, "expected one of them"),
        ("in_batch", {"scale": -1}, "more than 0"),
        ("in_batch", {"symmetric": 1}, "true or false"),
        ("regression", {"scale": 1}, "none to set"),
        ("matryoshka", {}, "dims is missing"),
        ("matryoshka", {"dims": [8, 16]}, "16, the model's vectors have 8"),
        ("matryoshka", {"dims": [8.5]}, "a whole number"),
        ("matryoshka", {"dims": [8, 4], "weights": [1]}, "1 weights for 2 dims"),
        ("matryoshka", {"dims": [8], "around": "matryoshka"}, "itself"),
        ("matryoshka", {"dims": [8], "around": "cosentt"}, "did you mean cosent"),
        ("matryoshka", {"dims": [8], "inner": {"scle": 1}}, "did you mean scale"),
        ("matryoshka", {"dims": [8], "inner": 3}, "expected a table"),
    ],
)
def test_a_wrong_setting_is_named_with_what_was_expected(name: str, values: Mapping[str, object], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        make_objective(name, values, dimension=8, num_labels=3)


def test_one_class_is_refused_by_the_classifier() -> None:
    with pytest.raises(UsageError, match="found 1 classes, expected two or more"):
        make_objective("classification", {}, dimension=8, num_labels=1)


def test_the_order_of_parts_in_a_recipe_does_not_change_the_head() -> None:
    written = make_objective("classification", {"parts": ["|u-v|", "u"]}, dimension=8, num_labels=2)
    assert "(u, |u-v|)" in written.describe()


def test_score_losses_are_made_from_settings_too() -> None:
    assert make_score_loss("lambdaloss", {"weighting": "lambdarank", "k": 3, "sigma": 2}) == LambdaLoss(
        weighting="lambdarank", k=3, sigma=2.0
    )
    with pytest.raises(UsageError, match="did you mean listnet"):
        make_score_loss("list_net", {})
    with pytest.raises(UsageError, match="loss 'bce': unknown setting 'pos_weight'"):
        make_score_loss("bce", {"pos_weight": 2})
