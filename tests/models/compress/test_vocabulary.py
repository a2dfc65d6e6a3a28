"""Pruning: vectors of kept text stay, everything can still be cut, and sentence-transformers agrees."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from munjang.errors import FolderError, UsageError
from munjang.models.compress.parts import read_parts
from munjang.models.compress.vocabulary import PruneOptions, prune_parts, prune_vocabulary
from munjang.models.sentence_encoder import SentenceEncoder
from munjang.text.tokenizer import Tokenizer, load_tokenizer

GIVEN = ["the rain sleeping cat", "비가 온다", "눈이 온다, the cat!", "cat 3"]
FAMILIES = ("bert", "electra", "roberta", "distilbert", "mpnet")


def pruned(folder: Path, target: Path, texts: list[str] = GIVEN, **options: object) -> Path:
    prune_vocabulary(folder, target, texts, options=PruneOptions(**options))  # type: ignore[arg-type]
    return target


def test_vectors_of_the_given_texts_do_not_change(unigram_folder: Path, tmp_path: Path) -> None:
    small = pruned(unigram_folder, tmp_path / "small")
    before, after = SentenceEncoder.load(unigram_folder), SentenceEncoder.load(small)
    assert after.tokenizer.vocabulary_size < before.tokenizer.vocabulary_size
    np.testing.assert_allclose(after.encode(GIVEN), before.encode(GIVEN), atol=1e-6)


@pytest.mark.parametrize("family", FAMILIES)
def test_wordpiece_models_of_every_family_keep_their_vectors(family: str, tiny_folder: Callable[..., Path], tmp_path: Path) -> None:
    folder = tiny_folder(family)
    texts = [*GIVEN, "unknown ☃☂ signs", "서울에서 부산까지"]
    small = pruned(folder, tmp_path / "small", texts, scripts=("ko",))
    before, after = SentenceEncoder.load(folder), SentenceEncoder.load(small)
    assert after.tokenizer.vocabulary_size < before.tokenizer.vocabulary_size
    np.testing.assert_allclose(after.encode(texts), before.encode(texts), atol=1e-6)


@pytest.mark.parametrize("prompt", ["", "cat: "])
def test_sentence_transformers_gives_the_same_vectors(
    prompt: str, unigram_folder: Path, tmp_path: Path, authority: Callable[..., np.ndarray]
) -> None:
    small = pruned(unigram_folder, tmp_path / "small")
    texts = [*GIVEN, "zebra 나비", "ж ☂ 中国"]
    ours = SentenceEncoder.load(small).encode(texts, prompt=prompt)
    np.testing.assert_allclose(ours, authority(small, texts, prompt=prompt), atol=1e-5)
    np.testing.assert_allclose(authority(small, GIVEN), authority(unigram_folder, GIVEN), atol=1e-5)


def test_sentence_transformers_reads_a_pruned_wordpiece_model(
    tiny_bert_folder: Path, tmp_path: Path, authority: Callable[..., np.ndarray]
) -> None:
    small = pruned(tiny_bert_folder, tmp_path / "small", scripts=())
    texts = [*GIVEN, "고양이가 창가에서"]
    np.testing.assert_allclose(SentenceEncoder.load(small).encode(texts), authority(small, texts), atol=1e-5)


def test_only_wanted_pieces_stay_and_single_characters_of_the_scripts_do(unigram_folder: Path, tmp_path: Path) -> None:
    small = load_tokenizer(pruned(unigram_folder, tmp_path / "small", ["the"]))
    kept = set(small.tokens(range(small.vocabulary_size)))
    assert {"<s>", "<pad>", "</s>", "<unk>", "<mask>", "▁", "▁the", "z", "가", ",", "☃", "3"} <= kept
    assert not {"русский", "▁да", "中国", "▁비가", "ж"} & kept


def test_special_tokens_are_renumbered_everywhere(unigram_folder: Path, tmp_path: Path) -> None:
    small = pruned(unigram_folder, tmp_path / "small")
    data = json.loads((small / "tokenizer.json").read_text(encoding="utf-8"))
    mask = next(token["id"] for token in data["added_tokens"] if token["content"] == "<mask>")
    assert mask == len(data["model"]["vocab"]) - 1
    config = json.loads((small / "config.json").read_text(encoding="utf-8"))
    assert config["vocab_size"] == len(data["model"]["vocab"])
    assert (config["bos_token_id"], config["pad_token_id"], config["eos_token_id"]) == (0, 1, 2)
    assert "added_tokens_decoder" not in json.loads((small / "tokenizer_config.json").read_text(encoding="utf-8"))


def test_a_size_is_met_exactly_and_filled_in_the_order_of_the_scripts(unigram_folder: Path) -> None:
    parts = read_parts(unigram_folder)
    least = prune_parts(parts, ["the"], options=PruneOptions())[1].pieces_after
    more, report = prune_parts(parts, ["the"], options=PruneOptions(size=least + 3))
    assert report.pieces_after == least + 3
    assert report.filled == 3
    added = {piece for piece, _ in more.tokenizer.data["model"]["vocab"]} & {"▁비가", "▁온다", "눈이", "▁고양이", "▁rain"}
    assert added == {"▁비가", "▁온다", "눈이"}


def test_a_small_size_drops_the_least_used_first(unigram_folder: Path) -> None:
    parts = read_parts(unigram_folder)
    least = prune_parts(parts, ["3"], options=PruneOptions())[1].pieces_after
    texts = ["the the the", "the rain rain", "sleep"]
    smaller, report = prune_parts(parts, texts, options=PruneOptions(size=least + 2))
    kept = {piece for piece, _ in smaller.tokenizer.data["model"]["vocab"]}
    assert {"▁the", "▁rain"} <= kept
    assert "▁sleep" not in kept
    assert (report.dropped_used, report.texts_unchanged) == (1, 2)
    assert report.tokens - report.tokens_kept == 1


def test_minimum_count_leaves_out_rare_pieces(unigram_folder: Path) -> None:
    smaller, _ = prune_parts(read_parts(unigram_folder), ["rain rain", "sleep"], options=PruneOptions(minimum_count=2))
    kept = {piece for piece, _ in smaller.tokenizer.data["model"]["vocab"]}
    assert "▁rain" in kept
    assert "▁sleep" not in kept


def test_a_size_below_the_single_characters_is_refused(unigram_folder: Path) -> None:
    with pytest.raises(UsageError, match="too small"):
        prune_parts(read_parts(unigram_folder), GIVEN, options=PruneOptions(size=5))


def test_no_texts_are_refused(unigram_folder: Path) -> None:
    with pytest.raises(UsageError, match="no texts"):
        prune_parts(read_parts(unigram_folder), [], options=PruneOptions())


def test_bpe_is_refused_with_what_can_be_done_instead(tiny_bert_folder: Path, tmp_path: Path) -> None:
    folder = tmp_path / "bpe"
    shutil.copytree(tiny_bert_folder, folder)
    data = json.loads((folder / "tokenizer.json").read_text(encoding="utf-8"))
    data["model"] = {"type": "BPE", "vocab": data["model"]["vocab"], "merges": []}
    (folder / "tokenizer.json").write_text(json.dumps(data), encoding="utf-8")
    with pytest.raises(UsageError, match="'BPE' vocabulary cannot be pruned"):
        prune_vocabulary(folder, tmp_path / "small", GIVEN)
    assert not (tmp_path / "small").exists()


def test_a_tokenizer_with_more_pieces_than_rows_is_refused(unigram_folder: Path, tmp_path: Path) -> None:
    folder = tmp_path / "grown"
    shutil.copytree(unigram_folder, folder)
    data = json.loads((folder / "tokenizer.json").read_text(encoding="utf-8"))
    data["model"]["vocab"] += [[f"word{number}", -5.0] for number in range(1_000)]
    (folder / "tokenizer.json").write_text(json.dumps(data), encoding="utf-8")
    with pytest.raises(FolderError, match="word embeddings"):
        prune_vocabulary(folder, tmp_path / "small", GIVEN)


TEXT = st.text(alphabet="catsleping the비가온다눈이 ☃ж中国русский,!", max_size=24)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(given_texts=st.lists(TEXT, min_size=1, max_size=5), other=TEXT)
def test_text_whose_pieces_are_all_kept_is_cut_as_before(unigram_folder: Path, given_texts: list[str], other: str) -> None:
    parts = read_parts(unigram_folder)
    small, _ = prune_parts(parts, given_texts, options=PruneOptions())
    old, new = Tokenizer(parts.tokenizer), Tokenizer(small.tokenizer)
    kept = set(new.tokens(range(new.vocabulary_size)))
    for text in (*given_texts, other):
        before, after = old.tokens(old.encode([text])[0]), new.tokens(new.encode([text])[0])
        assert after[0] == "<s>"
        assert after[-1] == "</s>"
        if kept.issuperset(before):
            assert after == before


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(given_texts=st.lists(st.text(alphabet="thecatsleprainingdogedwinter 비가온다눈☃", max_size=24), min_size=1, max_size=4))
def test_wordpiece_cuts_the_given_texts_as_before_unknown_words_too(tiny_bert_folder: Path, given_texts: list[str]) -> None:
    parts = read_parts(tiny_bert_folder)
    small, report = prune_parts(parts, given_texts, options=PruneOptions(scripts=()))
    old, new = Tokenizer(parts.tokenizer), Tokenizer(small.tokenizer)
    assert report.texts_unchanged == len(given_texts)
    assert [new.tokens(ids) for ids in new.encode(given_texts)] == [old.tokens(ids) for ids in old.encode(given_texts)]
