"""Which words a vocabulary lacks: frequent, split into many pieces, each counted once."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from munjang.train.adapt.domain_words import DomainWord, domain_words, most_saving, stem_counts


def backend(*words: str) -> Any:
    """A WordPiece tokenizer with these words and single letters."""
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers

    letters = [*"abcdefghijklmnopqrstuvwxyz", *"법률안은이의에관한특별회위원"]
    pieces = ["[UNK]", *words, *letters, *("##" + letter for letter in letters)]
    made = Tokenizer(models.WordPiece({piece: number for number, piece in enumerate(dict.fromkeys(pieces))}, unk_token="[UNK]"))
    made.normalizer, made.pre_tokenizer = normalizers.BertNormalizer(lowercase=True, strip_accents=False), pre_tokenizers.BertPreTokenizer()
    return made


def test_frequent_words_of_many_pieces_come_first_and_known_or_rare_ones_never() -> None:
    texts = ["the enzyme, and THE receptor"] * 6 + ["enzyme"] * 4 + ["rarity 2024"]
    found = domain_words(texts, backend("the", "and"), most=10)
    assert [(word.word, word.count) for word in found] == [("enzyme", 10), ("receptor", 6)]
    assert len(found[0].pieces) == 6


def test_a_korean_stem_before_several_endings_is_a_word() -> None:
    texts = ["법률안은 법률안이 법률안의 법률안에"] * 3
    assert [word.word for word in domain_words(texts, backend(), most=1)] == ["법률안"]


def test_an_unknown_word_is_worth_adding() -> None:
    found = domain_words(["☃ ελπίς a"] * 7, backend("a"), most=5)
    assert [word.word for word in found] == ["ελπίς"]


def test_whole_words_only_leaves_stems_out() -> None:
    texts = ["법률안은 법률안이 법률안의"] * 5
    assert {word.word for word in domain_words(texts, backend(), most=9, whole=True)} == {"법률안은", "법률안이", "법률안의"}


def test_a_word_inside_a_chosen_one_counts_only_where_it_stands_alone() -> None:
    long, short = DomainWord("법률안", 10, (1, 2, 3)), DomainWord("법률", 10, (1, 2))
    assert most_saving([long, short], most=2) == [long]
    often = DomainWord("법률", 40, (1, 2))
    assert most_saving([long, often], most=2) == [often, long]


def test_stems_need_three_endings() -> None:
    assert stem_counts({"위원회": 1, "위원장": 2}) == {}
    assert stem_counts({"위원회": 1, "위원장": 2, "위원": 4}) == {"위원": 7}


@given(
    st.dictionaries(st.text("ab", min_size=2, max_size=6), st.tuples(st.integers(1, 50), st.integers(1, 6)), max_size=12), st.integers(1, 6)
)
def test_more_words_are_the_same_words_and_some_more(found: dict[str, tuple[int, int]], most: int) -> None:
    words = [DomainWord(word, count, tuple(range(pieces))) for word, (count, pieces) in found.items()]
    fewer, more = most_saving(words, most=most), most_saving(words, most=most + 1)
    assert more[: len(fewer)] == fewer
    assert len(fewer) <= most
