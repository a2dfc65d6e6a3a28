"""BERT's 80 / 10 / 10: rates, what is never touched, and words that are hidden whole."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from munjang.train.adapt.masking import mask_pieces, word_starts

MASK = 4
DRAWN = torch.arange(10, 1000)


def test_the_rates_are_those_of_bert() -> None:
    torch.manual_seed(1)
    ids_T = torch.randint(10, 1000, (200_000,))
    made = mask_pieces(ids_T, special_T=torch.zeros_like(ids_T, dtype=torch.bool), share=0.15, mask=MASK, drawn_A=DRAWN)
    chosen = int(made.chosen_T.sum())
    assert chosen / len(ids_T) == pytest.approx(0.15, abs=0.005)
    masked = int((made.ids_T == MASK).sum())
    kept = int((made.ids_T == ids_T)[made.chosen_T].sum())
    assert masked / chosen == pytest.approx(0.8, abs=0.01)
    # a random piece is the piece itself once in a thousand
    assert kept / chosen == pytest.approx(0.1, abs=0.01)
    assert (chosen - masked - kept) / chosen == pytest.approx(0.1, abs=0.01)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 30), st.booleans()), min_size=1, max_size=60), st.floats(0.01, 0.99), st.integers(0, 99))
def test_what_is_not_chosen_stays_and_special_tokens_are_never_chosen(pieces: list[tuple[int, bool]], share: float, seed: int) -> None:
    torch.manual_seed(seed)
    ids_T, special_T = torch.tensor([piece for piece, _ in pieces]), torch.tensor([special for _, special in pieces])
    made = mask_pieces(ids_T, special_T=special_T, share=share, mask=MASK, drawn_A=DRAWN)
    assert torch.equal(made.ids_T[~made.chosen_T], ids_T[~made.chosen_T])
    assert not (made.chosen_T & special_T).any()


@settings(max_examples=40, deadline=None)
@given(st.lists(st.booleans(), min_size=2, max_size=80), st.integers(0, 99))
def test_with_whole_words_all_pieces_of_a_word_are_chosen_or_none(starts: list[bool], seed: int) -> None:
    torch.manual_seed(seed)
    starts_T = torch.tensor(starts)
    ids_T = torch.arange(10, 10 + len(starts))
    special_T = torch.zeros_like(starts_T)
    special_T[0] = special_T[-1] = True
    made = mask_pieces(ids_T, special_T=special_T, share=0.4, mask=MASK, drawn_A=DRAWN, starts_T=starts_T)
    for place in range(2, len(starts) - 1):
        if not starts[place]:
            assert made.chosen_T[place] == made.chosen_T[place - 1] or special_T[place - 1]


class _Vocabulary:
    def __init__(self, *pieces: str) -> None:
        self.pieces = pieces

    def get_vocab(self) -> dict[str, int]:
        return {piece: number for number, piece in enumerate(self.pieces)}


@pytest.mark.parametrize(
    ("pieces", "starts"),
    [
        (("[CLS]", "rain", "##ing"), (True, True, False)),
        (("<s>", "▁rain", "▁a", "ing"), (False, True, True, False)),
        (("<s>", "Ġrain", "Ġa", "ing"), (False, True, True, False)),
    ],
    ids=["wordpiece", "unigram", "byte-bpe"],
)
def test_each_kind_of_vocabulary_marks_where_words_begin(pieces: tuple[str, ...], starts: tuple[bool, ...]) -> None:
    assert tuple(word_starts(_Vocabulary(*pieces), len(pieces)).tolist()) == starts
