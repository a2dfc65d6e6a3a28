"""Heads and decoders of models that bring none, or one that does not fit."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from munjang.errors import InputError
from munjang.train.adapt.mlm import Mlm, MlmSettings, find_word_starts
from munjang.train.adapt.run import adapt_model
from munjang.train.adapt.tsdae import Tsdae, TsdaeSettings
from munjang.train.adapt.vocabulary import DomainWord, add_words, count_words
from munjang.train.encoder import TrainableEncoder
from munjang.train.load_folder import load_encoder
from munjang.train.recipe import ModelRecipe

TEXTS = ["the rain is in the river", "비가 많이 온다"]


def attached(kind: type[Mlm] | type[Tsdae], encoder: TrainableEncoder) -> Any:
    torch.manual_seed(3)
    made = Mlm(MlmSettings()) if kind is Mlm else Tsdae(TsdaeSettings())
    made.attach(encoder, sorted({piece for ids in encoder.tokens(TEXTS) for piece in ids}))
    return made


@pytest.mark.parametrize("kind", [Mlm, Tsdae])
def test_a_process_without_rows_sends_none_that_a_gradient_can_flow_through(kind: type[Mlm] | type[Tsdae], tiny_bert_folder: Path) -> None:
    encoder = load_encoder(tiny_bert_folder)
    objective = attached(kind, encoder)
    [column] = objective.encode(encoder, [[]])
    [full] = objective.encode(encoder, [encoder.tokens(TEXTS)])
    assert (len(column), column.shape[1:]) == (0, full.shape[1:])
    assert column.requires_grad


def test_a_head_of_another_width_is_not_taken(tiny_bert_folder: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(tiny_bert_folder, tmp_path / "other")
    tensors = load_file(folder / "model.safetensors")
    name = "cls.predictions.transform"
    wrong = {f"{name}.dense.weight": torch.ones(8, 8), f"{name}.dense.bias": torch.ones(8)}
    wrong |= {f"{name}.LayerNorm.weight": torch.ones(8), f"{name}.LayerNorm.bias": torch.ones(8), "cls.predictions.bias": torch.ones(9)}
    save_file(tensors | wrong, folder / "model.safetensors", metadata={"format": "pt"})
    assert attached(Mlm, load_encoder(folder)).head.is_fresh


def test_weights_in_parts_give_a_fresh_head(tiny_bert_folder: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(tiny_bert_folder, tmp_path / "parts")
    tensors = load_file(folder / "model.safetensors")
    names = sorted(tensors)
    for number, part in enumerate((names[:10], names[10:]), 1):
        save_file({each: tensors[each] for each in part}, folder / f"model-{number:05}-of-00002.safetensors", metadata={"format": "pt"})
    index = {each: f"model-{1 if each in names[:10] else 2:05}-of-00002.safetensors" for each in names}
    (folder / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": index}), encoding="utf-8")
    (folder / "model.safetensors").unlink()
    encoder = load_encoder(folder)
    assert attached(Mlm, encoder).head.is_fresh
    assert encoder.encode(TEXTS) == pytest.approx(load_encoder(tiny_bert_folder).encode(TEXTS), abs=1e-6)


def test_a_family_without_known_parts_gets_a_decoder_that_starts_from_nothing(
    tiny_bert_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copied = attached(Tsdae, load_encoder(tiny_bert_folder)).decoder
    monkeypatch.setattr("munjang.train.encoder.find_parts", lambda _: None)
    encoder = load_encoder(tiny_bert_folder)
    assert not encoder.is_packed
    fresh = attached(Tsdae, encoder).decoder
    norm = load_file(tiny_bert_folder / "model.safetensors")["embeddings.LayerNorm.weight"]
    torch.testing.assert_close(copied.norm.weight.detach(), norm)
    torch.testing.assert_close(fresh.norm.weight.detach(), torch.ones_like(norm))


def test_words_in_brackets_are_no_words_where_a_space_must_stand_before() -> None:
    assert count_words(["cat (dog) cat"]) == {"cat": 2, "dog": 1}
    assert count_words(["cat (dog) cat"], spaced=True) == {"cat": 2}


def test_a_scored_piece_that_is_there_already_is_not_added_again(tiny_tokenizer: Any) -> None:
    unigram = _unigram()
    before = len(unigram)
    words = [DomainWord("rain", 5, (1,)), DomainWord("histogram", 5, (2, 3))]
    made = add_words(unigram, words, total=20)
    assert [piece.word for piece in made] == ["histogram"]
    assert len(unigram) == before + 1


def _unigram() -> Any:
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    pieces = [("[UNK]", 0.0), ("▁rain", -2.0), ("▁", -3.0), *((letter, -5.0) for letter in "abcdefghijklmnopqrstuvwxyz")]
    backend = Tokenizer(models.Unigram(pieces, unk_id=0))
    backend.pre_tokenizer = pre_tokenizers.Metaspace()
    return PreTrainedTokenizerFast(tokenizer_object=backend, unk_token="[UNK]")


def test_pieces_beyond_the_table_are_passed_over(tiny_bert_folder: Path) -> None:
    tokenizer = load_encoder(tiny_bert_folder).tokenizer
    whole = find_word_starts(tokenizer, len(tokenizer))
    assert torch.equal(find_word_starts(tokenizer, 20), whole[:20])


def test_nothing_to_learn_from_is_refused(tiny_bert_folder: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no file of text to learn from"):
        adapt_model([], tmp_path / "out", model=ModelRecipe(str(tiny_bert_folder)))
