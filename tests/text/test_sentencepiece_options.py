"""Rare options of SentencePiece and rare vocabularies, against the library SentencePiece itself."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from tests.text.test_tokenizer import CORPUS, ODD_TEXTS, sentencepiece_ids, train_sentencepiece, write_json

from munjang.errors import FolderError
from munjang.text.sentencepiece import Kind, Piece, Spelling, build, order_as_in_file, parse_sentencepiece
from munjang.text.tokenizer import load_tokenizer


@pytest.mark.parametrize(
    "options",
    [
        {"model_type": "bpe", "user_defined_symbols": "o,(,%"},
        {"remove_extra_whitespaces": False, "add_dummy_prefix": False, "normalization_rule_name": "identity"},
    ],
    ids=["single letters that stand alone", "spaces as they are, none before"],
)
def test_rare_options_give_the_ids_of_sentencepiece(tmp_path, options):
    train_sentencepiece(tmp_path / "m", "m.model", **options)
    texts = [*ODD_TEXTS, "100% (of o)", "book o o book", "  two  spaces  "]
    expected = sentencepiece_ids(tmp_path / "m", texts, lambda _, number: number)
    ours = load_tokenizer(tmp_path / "m").encode_plain(texts)
    differing = [text for text, mine, theirs in zip(texts, ours, expected, strict=True) if mine != theirs]
    assert len(differing) <= 1, differing  # pieces that score the same
    assert [sorted(ids) for ids in ours] == [sorted(ids) for ids in expected]


def test_the_albert_family_keeps_no_comma_on_a_number(tmp_path):
    folder = tmp_path / "albert"
    train_sentencepiece(folder, "spiece.model", user_defined_symbols="[CLS],[SEP]", vocab_size=300)
    model = parse_sentencepiece((folder / "spiece.model").read_bytes(), where="spiece.model")
    vocabulary = order_as_in_file(replace(model, pieces=(*model.pieces, Piece("▁1,", 0.0, Kind.NORMAL))))
    plain, albert = (build(model, vocabulary, spelling=spelling, where="m") for spelling in (Spelling(), Spelling(plain_quotes=True)))
    assert plain.encode("1,000").tokens[0] == "▁1,"
    assert "▁1," not in albert.encode("1,000").tokens
    assert "".join(albert.encode("1,000").tokens) == "▁1,000"


def test_a_camembert_without_its_tokenizer_json_is_refused_with_what_helps(tmp_path):
    train_sentencepiece(tmp_path / "camembert", "sentencepiece.bpe.model")
    write_json(tmp_path / "camembert/config.json", {"model_type": "camembert"})
    write_json(tmp_path / "camembert/tokenizer_config.json", {"tokenizer_class": "CamembertTokenizer"})
    words = r"sentencepiece.bpe.model: CamemBERT's numbering is only known from its tokenizer.json\n  save the tokenizer with transformers"
    with pytest.raises(FolderError, match=words):
        load_tokenizer(tmp_path / "camembert")


def test_a_vocabulary_without_marks_around_a_text_puts_none_there(tmp_path):
    letters = sorted({letter for text in CORPUS for letter in text.lower() if not letter.isspace()})
    tokens = ["[PAD]", "[UNK]", *letters, *(f"##{letter}" for letter in letters)]
    (tmp_path / "vocab.txt").write_text("\n".join(tokens) + "\n", encoding="utf-8")
    ours = load_tokenizer(tmp_path)
    assert ours.tokens(ours.encode(["a cat"])[0]) == ["a", "c", "##a", "##t"]
    assert ours.encode(["a cat"]) == ours.encode_plain(["a cat"])


def test_a_vocabulary_that_cannot_write_the_letter_a_is_refused(tmp_path):
    model = {"type": "BPE", "vocab": {"[CLS]": 0, "[SEP]": 1, "b": 2}, "merges": []}
    (tmp_path / "tokenizer.json").write_text(json.dumps({"version": "1.0", "added_tokens": [], "model": model}))
    with pytest.raises(FolderError, match="tokenizer.json: the letter a has no token, so the special tokens around a text"):
        load_tokenizer(tmp_path)
