"""Which words a vocabulary lacks: frequent, split into many pieces, each counted once."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests.conftest import TEXTS
from tests.train.adapt.conftest import domain_texts

from munjang.errors import InputError
from munjang.models.sentence_encoder import SentenceEncoder
from munjang.train.adapt.vocabulary import DomainWord, choose_words, count_stems, extend_vocabulary, find_domain_words
from munjang.train.build import make_backbone, make_tokenizer
from munjang.train.encoder import TextSettings, TrainableEncoder
from munjang.train.load_folder import load_encoder
from munjang.train.recipe import ScratchRecipe
from munjang.train.sentence_task import save_encoder


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
    found = find_domain_words(texts, backend("the", "and"), most=10)
    assert [(word.word, word.count) for word in found] == [("enzyme", 10), ("receptor", 6)]
    assert len(found[0].pieces) == 6


def test_a_korean_stem_before_several_endings_is_a_word() -> None:
    texts = ["법률안은 법률안이 법률안의 법률안에"] * 3
    assert [word.word for word in find_domain_words(texts, backend(), most=1)] == ["법률안"]


def test_an_unknown_word_is_worth_adding() -> None:
    found = find_domain_words(["☃ ελπίς a"] * 7, backend("a"), most=5)
    assert [word.word for word in found] == ["ελπίς"]


def test_whole_words_only_leaves_stems_out() -> None:
    texts = ["법률안은 법률안이 법률안의"] * 5
    assert {word.word for word in find_domain_words(texts, backend(), most=9, whole=True)} == {"법률안은", "법률안이", "법률안의"}


def test_a_word_inside_a_chosen_one_counts_only_where_it_stands_alone() -> None:
    long, short = DomainWord("법률안", 10, (1, 2, 3)), DomainWord("법률", 10, (1, 2))
    assert choose_words([long, short], most=2) == [long]
    often = DomainWord("법률", 40, (1, 2))
    assert choose_words([long, often], most=2) == [often, long]


def test_stems_need_three_endings() -> None:
    assert count_stems({"위원회": 1, "위원장": 2}) == {}
    assert count_stems({"위원회": 1, "위원장": 2, "위원": 4}) == {"위원": 7}


@given(
    st.dictionaries(st.text("ab", min_size=2, max_size=6), st.tuples(st.integers(1, 50), st.integers(1, 6)), max_size=12), st.integers(1, 6)
)
def test_more_words_are_the_same_words_and_some_more(found: dict[str, tuple[int, int]], most: int) -> None:
    words = [DomainWord(word, count, tuple(range(pieces))) for word, (count, pieces) in found.items()]
    fewer, more = choose_words(words, most=most), choose_words(words, most=most + 1)
    assert more[: len(fewer)] == fewer
    assert len(fewer) <= most


DOMAIN = domain_texts(40)
NEW = ("histogram", "endothelial", "tissue")
WITHOUT = [*TEXTS, "a histo gram", "endothel", "The liver bleeds: 25 %", "이 문장에는 새 낱말이 없다"]


def copied(words: torch.nn.Module) -> torch.Tensor:
    weight: Any = words.weight
    return weight.detach().clone()  # type: ignore[no-any-return]


@pytest.mark.parametrize("family", ["bert", "roberta", "distilbert", "electra", "mpnet"])
def test_texts_without_the_new_words_keep_their_vectors(family: str, tiny_folder: Callable[..., Path]) -> None:
    encoder = load_encoder(tiny_folder(family))
    before = encoder.encode(WITHOUT)
    made = {piece.word for piece in extend_vocabulary(encoder, DOMAIN, words=12)}
    assert made >= set(NEW)
    kept = [place for place, text in enumerate(WITHOUT) if not any(word in text.lower() for word in made)]
    assert len(kept) >= len(TEXTS)
    np.testing.assert_allclose(encoder.encode(WITHOUT)[kept], before[kept], atol=1e-6)


def test_a_new_piece_starts_as_the_mean_of_its_old_pieces(tiny_bert_folder: Path) -> None:
    encoder = load_encoder(tiny_bert_folder)
    old_VD, split = copied(encoder.words), {word: encoder.tokens([word])[0][1:-1] for word in NEW}
    made = {piece.word: piece for piece in extend_vocabulary(encoder, DOMAIN, words=12)}
    new_VD = copied(encoder.words)
    assert torch.equal(new_VD[: len(old_VD)], old_VD)
    for word in NEW:
        assert encoder.tokens([word])[0][1:-1] == [made[word].id]
        torch.testing.assert_close(new_VD[made[word].id], old_VD[split[word]].mean(dim=0))


@pytest.mark.filterwarnings("ignore::munjang.models.long_text.TruncationWarning")
def test_every_reader_gives_the_same_vectors(tiny_bert_folder: Path, tmp_path: Path, authority: Callable[..., np.ndarray]) -> None:
    encoder = load_encoder(tiny_bert_folder)
    extend_vocabulary(encoder, DOMAIN, words=12)
    save_encoder(encoder, tmp_path / "extended")
    texts = [*WITHOUT, *DOMAIN[:5], "Histogram, and endothelial cells"]
    wanted = encoder.encode(texts)
    np.testing.assert_allclose(authority(tmp_path / "extended", texts), wanted, atol=1e-5)
    np.testing.assert_allclose(SentenceEncoder.load(tmp_path / "extended").encode(texts), wanted, atol=1e-5)
    np.testing.assert_allclose(load_encoder(tmp_path / "extended").encode(texts), wanted, atol=1e-6)


def unigram_encoder() -> TrainableEncoder:
    sizes = ScratchRecipe(tokenizer="unigram", vocabulary=120, layers=1, width=32, heads=2, inner=48, positions=64, lowercase=True)
    tokenizer = make_tokenizer(sizes, [*TEXTS[:6], "abcdefghijklmnopqrstuvwxyz 0123456789 :."], max_length=64)
    torch.manual_seed(2)
    return TrainableEncoder(make_backbone(sizes, len(tokenizer)), tokenizer, modes=("mean",), text=TextSettings(64))


@pytest.mark.filterwarnings("ignore::munjang.models.long_text.TruncationWarning")
def test_a_unigram_vocabulary_grows_by_pieces_that_win(tmp_path: Path, authority: Callable[..., np.ndarray]) -> None:
    encoder = unigram_encoder()
    before = encoder.encode(TEXTS)
    made = {piece.word: piece.id for piece in extend_vocabulary(encoder, DOMAIN, words=12)}
    assert set(made) >= {"histogram", "endothelial"}
    assert made["histogram"] in encoder.tokens(["The histogram of bone"])[0]
    kept = [place for place, text in enumerate(TEXTS) if not any(word in text for word in made)]
    assert len(kept) > 4
    np.testing.assert_allclose(encoder.encode(TEXTS)[kept], before[kept], atol=1e-6)
    save_encoder(encoder, tmp_path / "extended")
    texts = [*TEXTS, *DOMAIN[:5]]
    np.testing.assert_allclose(authority(tmp_path / "extended", texts), encoder.encode(texts), atol=1e-5)
    np.testing.assert_allclose(SentenceEncoder.load(tmp_path / "extended").encode(texts), encoder.encode(texts), atol=1e-5)


def test_a_unigram_tokenizer_of_xlm_roberta_survives_saving(tmp_path: Path) -> None:
    from transformers import AutoTokenizer, XLMRobertaTokenizer

    pieces = [("<s>", 0.0), ("<pad>", 0.0), ("</s>", 0.0), ("<unk>", 0.0), ("▁", -2.0), ("▁the", -3.0)]
    letters = [(letter, -5.0 - place / 10) for place, letter in enumerate("abcdefghijklmnopqrstuvwxyz")]
    tokenizer = XLMRobertaTokenizer(vocab=[*pieces, *letters, ("<mask>", 0.0)])
    sizes = ScratchRecipe(layers=1, width=32, heads=2, inner=48, positions=64)
    encoder = TrainableEncoder(make_backbone(sizes, len(tokenizer)), tokenizer, modes=("mean",), text=TextSettings(64))
    made = extend_vocabulary(encoder, [text.lower() for text in DOMAIN], words=5)
    assert made
    tokenizer.save_pretrained(tmp_path)
    again = AutoTokenizer.from_pretrained(tmp_path)
    assert again(DOMAIN[0])["input_ids"] == tokenizer(DOMAIN[0])["input_ids"]
    assert {piece.id for piece in made} <= set(again(" ".join(piece.word for piece in made))["input_ids"])
    assert again.mask_token_id == tokenizer.mask_token_id


def byte_bpe_encoder() -> TrainableEncoder:
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
    from transformers import PreTrainedTokenizerFast

    made = Tokenizer(models.BPE())
    made.pre_tokenizer, made.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    special = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    made.train_from_iterator(
        TEXTS, trainers.BpeTrainer(vocab_size=300, special_tokens=special, initial_alphabet=alphabet, show_progress=False)
    )
    made.post_processor = processors.TemplateProcessing(single="<s> $A </s>", special_tokens=[("<s>", 0), ("</s>", 2)])
    names = {"bos_token": "<s>", "eos_token": "</s>", "pad_token": "<pad>", "unk_token": "<unk>", "mask_token": "<mask>"}
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=made, **names)
    sizes = ScratchRecipe(layers=1, width=32, heads=2, inner=48, positions=128)
    torch.manual_seed(2)
    return TrainableEncoder(make_backbone(sizes, len(tokenizer)), tokenizer, modes=("mean",), text=TextSettings(128))


def test_another_kind_of_tokenizer_gets_added_tokens(tmp_path: Path, authority: Callable[..., np.ndarray]) -> None:
    encoder = byte_bpe_encoder()
    before = encoder.encode(TEXTS)
    lengths = [len(ids) for ids in encoder.tokens(DOMAIN)]
    made = {piece.word: piece.id for piece in extend_vocabulary(encoder, DOMAIN, words=12)}
    assert set(made) >= {"histogram", "endothelial"}
    assert made["histogram"] in encoder.tokens(["a histogram of bone"])[0]
    assert made["histogram"] not in encoder.tokens(["a histograms of bone"])[0]
    assert all(len(ids) < length for ids, length in zip(encoder.tokens(DOMAIN), lengths, strict=True))
    kept = [place for place, text in enumerate(TEXTS) if not set(text.split()) & set(made)]
    np.testing.assert_allclose(encoder.encode(TEXTS)[kept], before[kept], atol=1e-6)
    save_encoder(encoder, tmp_path / "extended")
    np.testing.assert_allclose(authority(tmp_path / "extended", DOMAIN[:5]), encoder.encode(DOMAIN[:5]), atol=1e-5)
    np.testing.assert_allclose(SentenceEncoder.load(tmp_path / "extended").encode(DOMAIN[:5]), encoder.encode(DOMAIN[:5]), atol=1e-5)


def test_a_text_without_anything_to_add_is_refused(tiny_bert_folder: Path) -> None:
    with pytest.raises(InputError, match="nothing to add"):
        extend_vocabulary(load_encoder(tiny_bert_folder), ["the rain"], words=5)
