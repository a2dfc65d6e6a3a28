"""Near repeats by character n-grams: nothing false is reported, little true is missed."""

from __future__ import annotations

import itertools

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from munjang.evaluate.shingles import find_near_duplicates, make_signatures


def _jaccard(a: str, b: str, n: int = 4) -> float:
    x, y = ({t[i : i + n] for i in range(max(1, len(t) - n + 1))} for t in (a, b))
    return len(x & y) / len(x | y)


@settings(deadline=None, max_examples=50)
@given(st.lists(st.text("abc 가나", max_size=30), max_size=8), st.lists(st.text("abc 가나", max_size=30), max_size=8))
def test_what_is_reported_is_truly_that_near_and_equal_texts_are_always_found(left, right):
    found, cut = find_near_duplicates(left, right)
    assert not cut
    for near in found:
        assert near.jaccard == _jaccard(left[near.left], right[near.right]) >= 0.8
    assert {j for j, text in enumerate(right) if text in left} <= {near.right for near in found}


def test_a_changed_letter_in_a_sentence_is_still_found():
    random = np.random.default_rng(0)
    left = ["".join(random.choice(list("abcdefghij 가나다라"), size=80)) for _ in range(300)]
    right = [text[:40] + "X" + text[41:] for text in left]
    found, _ = find_near_duplicates(left, right)
    assert len(found) >= 295
    assert all(near.left == near.right for near in found)


def test_a_signature_does_not_depend_on_the_other_texts():
    texts = ["one sentence here", "x", "", "다른 문장입니다", "and another one"]
    together = make_signatures(texts)
    assert all((make_signatures([text])[0] == row).all() for text, row in zip(texts, together, strict=True))


def test_the_search_stops_at_its_bound_and_says_so():
    same = ["all the same text"] * 50
    found, cut = find_near_duplicates(same, same, max_candidates=100)
    assert cut
    assert len(found) <= 50
    assert len(list(itertools.chain(found))) > 0


def test_a_text_that_repeats_itself_is_not_near_to_its_one_part():
    once = "비가 오는 날에는 "
    assert find_near_duplicates([once], [once * 9])[0] == []
    assert [near.jaccard for near in find_near_duplicates([once * 9], [once * 9])[0]] == [1.0]


def test_signatures_are_the_same_however_many_texts_are_made_at_once(monkeypatch):
    texts = [f"sentence number {number} of many" for number in range(50)]
    together = make_signatures(texts)
    monkeypatch.setattr("munjang.evaluate.shingles._CHUNK_CHARACTERS", 100)
    assert (make_signatures(texts) == together).all()
