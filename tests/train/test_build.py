"""A tokenizer from nothing is the same every time."""

from __future__ import annotations

from typing import Literal

import pytest

from munjang.errors import UsageError
from munjang.train.build import make_tokenizer
from munjang.train.recipe import ScratchRecipe

TEXTS = [
    f"{a} {b} the {c}, part {n}" for n in range(20) for a in ("a cat", "one dog") for b in ("sees", "hears") for c in ("stone", "bridge")
]


@pytest.mark.parametrize("kind", ["wordpiece", "unigram"])
def test_the_same_texts_give_the_same_tokenizer(kind: Literal["wordpiece", "unigram"]) -> None:
    made = [make_tokenizer(ScratchRecipe(tokenizer=kind, vocabulary=90), TEXTS, max_length=32) for _ in range(3)]
    assert len({tokenizer.backend_tokenizer.to_str() for tokenizer in made}) == 1
    ids = made[0]("A cat sees the bridge")["input_ids"]
    assert made[0].convert_ids_to_tokens([ids[0], ids[-1]]) == ["[CLS]", "[SEP]"]
    assert made[0].unk_token_id not in ids


def test_sizes_that_do_not_fit_are_refused() -> None:
    with pytest.raises(UsageError, match="heads do not divide"):
        ScratchRecipe(width=30, heads=4)
