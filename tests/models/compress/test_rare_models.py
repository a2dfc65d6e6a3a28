"""Static models, odd tokenizers and wrong numbers: made smaller like the others, or refused with the reason."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.conftest import write_json
from tests.static_model import write_static

from munjang.errors import FolderError, MunjangError, UsageError
from munjang.models.compress import vocabulary
from munjang.models.compress.parts import keep_layers, keep_layers_of, read_parts, write_parts
from munjang.models.compress.vocabulary import PruneOptions, cut_tokenizer, list_pieces, prune_parts, prune_vocabulary
from munjang.models.sentence_encoder import SentenceEncoder
from munjang.text.tokenizer import Tokenizer

TEXTS = ["the rain sleeping cat", "비가 온다", "눈이 온다, the cat!"]
TEMPLATE = {
    "type": "TemplateProcessing",
    "single": [{"SpecialToken": {"id": "[CLS]", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
    "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
    "special_tokens": {"[CLS]": {"id": "[CLS]", "ids": [1], "tokens": ["[CLS]"]}},
}
BYTES = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": False, "use_regex": False}
ROLES: dict[str, Any] = {"sep": ["[SEP]", 2], "cls": ["[CLS]", 1]}


@pytest.fixture(scope="module")
def static(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_static(tmp_path_factory.mktemp("static"))


@pytest.fixture
def changed(tiny_bert_folder: Path, tmp_path: Path) -> Callable[[str, dict[str, Any]], Path]:
    """Return a function that copies the tiny model with other keys in one of its JSON files."""

    def copy(name: str, keys: dict[str, Any]) -> Path:
        folder = shutil.copytree(tiny_bert_folder, tmp_path / "changed")
        write_json(folder / name, json.loads((folder / name).read_text(encoding="utf-8")) | keys)
        return folder

    return copy


def test_a_static_model_keeps_its_vectors_when_it_is_pruned(static: Path, tmp_path: Path) -> None:
    prune_vocabulary(static, tmp_path / "small", TEXTS, options=PruneOptions(scripts=("ko",)))
    before, after = SentenceEncoder.load(static), SentenceEncoder.load(tmp_path / "small")
    assert after.tokenizer.vocabulary_size < before.tokenizer.vocabulary_size
    np.testing.assert_allclose(after.encode(TEXTS), before.encode(TEXTS), atol=1e-6)


def test_a_static_model_has_a_width_and_no_configuration(static: Path) -> None:
    parts = read_parts(static)
    assert parts.width == 16
    assert parts.with_config({"vocab_size": 3}) is parts


def test_a_static_model_has_no_layers(static: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="a static model has no layers to choose from"):
        keep_layers(static, tmp_path / "small", layers=[0])
    assert not (tmp_path / "small").exists()


@pytest.mark.parametrize("name", ["mapping", "weights"])
def test_a_static_model_whose_pieces_share_rows_is_not_pruned(static: Path, name: str) -> None:
    parts = read_parts(static)
    with pytest.raises(FolderError, match="a static model whose pieces share rows or have weights cannot be pruned"):
        prune_parts(replace(parts, tensors={**parts.tensors, name: np.zeros(3)}), TEXTS, options=PruneOptions())


def test_weights_without_word_embeddings_are_named(tiny_bert_folder: Path, static: Path, tmp_path: Path) -> None:
    for folder in (tiny_bert_folder, static):
        with pytest.raises(FolderError, match="the weights hold no word embeddings"):
            _ = replace(read_parts(folder), tensors={"other": np.zeros((2, 2))}).word_table


def test_a_family_that_is_not_known_is_named(tiny_bert_folder: Path) -> None:
    parts = read_parts(tiny_bert_folder)
    with pytest.raises(FolderError, match=r"config\.json: model_type 'gpt2' is unknown; known are bert, "):
        keep_layers_of(parts.with_config({"model_type": "gpt2", "num_hidden_layers": 2}), [0])


def test_a_number_left_over_from_another_vocabulary_is_dropped(changed: Callable[..., Path], tmp_path: Path) -> None:
    folder = changed("config.json", {"bos_token_id": 99_999, "sep_token_id": 2})
    prune_vocabulary(folder, tmp_path / "small", TEXTS, options=PruneOptions())
    config = json.loads((tmp_path / "small" / "config.json").read_text(encoding="utf-8"))
    assert "bos_token_id" not in config
    pieces = json.loads((tmp_path / "small" / "tokenizer.json").read_text(encoding="utf-8"))["model"]["vocab"]
    assert config["sep_token_id"] == pieces["[SEP]"]


def test_all_texts_are_counted_though_only_the_first_are_compared(tiny_bert_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vocabulary, "CHECKED", 1)
    _, report = prune_parts(read_parts(tiny_bert_folder), TEXTS, options=PruneOptions())
    assert (report.texts, report.texts_unchanged) == (3, 3)


def test_a_cut_that_would_differ_writes_nothing(tiny_bert_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def lossy(files: Any, new_number: Any) -> Any:
        made = cut_tokenizer(files, new_number)
        made.data["model"]["vocab"] = {text: n for text, n in made.data["model"]["vocab"].items() if text != "rain"}
        return made

    monkeypatch.setattr(vocabulary, "cut_tokenizer", lossy)
    with pytest.raises(MunjangError, match="1 of 3 texts whose tokens are all kept are tokenized differently; nothing was written"):
        prune_vocabulary(tiny_bert_folder, tmp_path / "small", TEXTS, options=PruneOptions())
    assert not (tmp_path / "small").exists()


def test_a_count_below_one_is_refused_and_a_size_beyond_the_pieces_keeps_what_fits(tiny_bert_folder: Path) -> None:
    parts = read_parts(tiny_bert_folder)
    with pytest.raises(UsageError, match="minimum_count=0, expected 1 or more"):
        prune_parts(parts, TEXTS, options=PruneOptions(minimum_count=0))
    _, report = prune_parts(parts, TEXTS, options=PruneOptions(scripts=("ko",), size=report_size(parts)))
    assert report.pieces_after < report.pieces_before, "pieces of other scripts are not taken to fill the room"


def report_size(parts: Any) -> int:
    return int(parts.tensors[parts.word_table].shape[0])


@pytest.mark.parametrize(
    "processor",
    [
        {"type": "BertProcessing", **ROLES},
        {"type": "RobertaProcessing", **ROLES, "trim_offsets": True, "add_prefix_space": False},
        {"type": "Sequence", "processors": [BYTES, TEMPLATE]},
        None,
    ],
    ids=["bert", "roberta", "sequence", "none"],
)
def test_every_post_processor_puts_the_same_tokens_around_a_text_as_before(processor: Any, changed: Callable[..., Path]) -> None:
    parts = read_parts(changed("tokenizer.json", {"post_processor": processor}))
    smaller, _ = prune_parts(parts, TEXTS, options=PruneOptions(scripts=("en",)))
    before, after = Tokenizer(parts.tokenizer), Tokenizer(smaller.tokenizer)
    assert after.vocabulary_size < before.vocabulary_size
    for text in TEXTS:
        assert after.encode_with_offsets(text).tokens == before.encode_with_offsets(text).tokens
        assert after.encode_with_offsets(text).offsets == before.encode_with_offsets(text).offsets


def test_a_post_processor_that_is_not_known_is_named(tiny_bert_folder: Path) -> None:
    files = read_parts(tiny_bert_folder).tokenizer
    odd = replace(files, data={**files.data, "post_processor": {"type": "Nobody"}})
    numbers = {number: number for number in files.data["model"]["vocab"].values()}
    with pytest.raises(FolderError, match="the tokenizer's post-processor 'Nobody' is not one that can be renumbered"):
        cut_tokenizer(odd, numbers)


def test_a_padding_far_behind_holds_no_other_pieces(tiny_bert_folder: Path) -> None:
    files = read_parts(tiny_bert_folder).tokenizer
    added = {int(token["id"]) for token in files.data["added_tokens"]}
    assert list_pieces(files, special=frozenset(), padding=5_000).always == added
    assert list_pieces(files, special=frozenset(), padding=30).always == added | set(range(31))


def test_a_static_model_survives_a_round_in_half(static: Path, tmp_path: Path) -> None:
    write_parts(read_parts(static), tmp_path / "half", half=True)
    ours = SentenceEncoder.load(tmp_path / "half").encode(TEXTS)
    np.testing.assert_allclose(ours, SentenceEncoder.load(static).encode(TEXTS), atol=2e-3)
    assert not (tmp_path / "half" / "config.json").exists()
