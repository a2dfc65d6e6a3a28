"""The encoder in training: its rarer folders, its edges, and what of it learns."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from hypothesis import given
from hypothesis import strategies as st
from tests.conftest import TEXTS, Dense, quiet
from tests.static_model import write_static

from munjang.errors import DamagedFile, FolderError, UsageError
from munjang.models.sentence_encoder import SentenceEncoder
from munjang.train import processes, train
from munjang.train.build import build_encoder
from munjang.train.checkpoint import Checkpoints
from munjang.train.durable import write_folder
from munjang.train.encoder import _plan_batches
from munjang.train.examples import DataSource
from munjang.train.load_folder import CrossOptions, count_positions, keep_layers, load_cross_encoder, load_encoder, make_cross_model
from munjang.train.optimizer import freeze, make_optimizer
from munjang.train.packing import find_parts, pack
from munjang.train.recipe import StageRecipe, make_recipe
from munjang.train.sampling import _avoid_duplicates
from munjang.train.sentence_task import save_encoder

DATA = (DataSource("data.tsv"),)
SHORT = TEXTS[:4]


def test_a_layer_norm_behind_the_pooling_is_loaded_trained_and_saved(
    tiny_folder: Callable[..., Path], tmp_path: Path, authority: Callable[..., np.ndarray]
) -> None:
    folder = tiny_folder(modules=("layernorm",))
    encoder = load_encoder(folder)
    np.testing.assert_allclose(encoder.encode(SHORT), authority(folder, SHORT), atol=1e-5)
    assert any(name.startswith("tail.") and parameter.requires_grad for name, parameter in encoder.named_parameters())
    save_encoder(encoder, tmp_path / "saved")
    np.testing.assert_allclose(SentenceEncoder.load(tmp_path / "saved").encode(SHORT), encoder.encode(SHORT), atol=1e-5)
    np.testing.assert_allclose(authority(tmp_path / "saved", SHORT), encoder.encode(SHORT), atol=1e-5)


def test_a_module_without_its_weights_is_named(tiny_folder: Callable[..., Path], tmp_path: Path) -> None:
    folder = shutil.copytree(tiny_folder(modules=(Dense(16),)), tmp_path / "holes")
    (folder / "2_Dense" / "model.safetensors").unlink()
    with pytest.raises(FolderError, match=r"2_Dense"):
        load_encoder(folder)


def test_static_word_vectors_are_not_trained(tmp_path: Path) -> None:
    folder = write_static(tmp_path / "static")
    for load in (load_encoder, lambda path: load_cross_encoder(path, ["LABEL_0"])):
        with pytest.raises(FolderError, match="holds static word vectors, expected a transformer to train"):
            load(folder)


def test_a_model_without_a_table_of_positions_has_room_for_any_text() -> None:
    assert count_positions(SimpleNamespace(config=SimpleNamespace(model_type="t5"))) == 2**31
    config = SimpleNamespace(model_type="roberta", max_position_embeddings=514, pad_token_id=1)
    assert count_positions(SimpleNamespace(config=config)) == 512


def test_layers_are_chosen_only_where_they_can_be_found() -> None:
    with quiet():
        config = transformers.T5Config(d_model=8, d_ff=8, num_layers=2, num_heads=1, d_kv=8, vocab_size=20)
        model = transformers.T5EncoderModel(config)
    with pytest.raises(UsageError, match="layers: a t5 model does not keep its layers where they can be chosen from"):
        keep_layers(model, [0])


def test_no_texts_give_no_rows_and_the_fingerprint_follows_the_weights(tiny_bert_folder: Path) -> None:
    encoder = load_encoder(tiny_bert_folder)
    assert encoder.tokens([]) == []
    assert encoder.encode([]).shape == (0, 32)
    before = encoder.fingerprint
    assert before == load_encoder(tiny_bert_folder).fingerprint
    with torch.no_grad():
        next(encoder.parameters())[0, 0] += 1
    assert encoder.fingerprint != before


@given(st.lists(st.lists(st.just(1), min_size=1, max_size=9), max_size=30), st.integers(1, 20))
def test_batches_keep_to_their_tokens_and_lose_no_text(ids: list[list[int]], budget: int) -> None:
    batches = list(_plan_batches(ids, budget))
    assert sorted(index for batch in batches for index in batch) == list(range(len(ids)))
    assert all(len(batch) == 1 or sum(len(ids[index]) for index in batch) <= budget for batch in batches)


def test_more_layers_cannot_be_frozen_than_there_are_nor_everything(tiny_bert_folder: Path) -> None:
    encoder = load_encoder(tiny_bert_folder)
    with pytest.raises(UsageError, match="freeze_layers is 7, the model has 2 layers"):
        freeze(encoder, StageRecipe(data=DATA, freeze_layers=7))
    stage = StageRecipe(data=DATA, freeze_layers=2, freeze_embeddings=True)
    freeze(encoder, stage)
    for name, parameter in encoder.named_parameters():
        if "pooler" in name:
            parameter.requires_grad_(False)
    with pytest.raises(UsageError, match="every parameter is frozen, so nothing can learn"):
        make_optimizer({"encoder": encoder}, stage)


def test_relative_positions_are_not_packed(tiny_bert_folder: Path) -> None:
    backbone: Any = load_encoder(tiny_bert_folder).backbone
    assert find_parts(backbone) is not None
    backbone.config.position_embedding_type = "relative_key"
    assert find_parts(backbone) is None


def test_packed_texts_move_to_another_device_whole() -> None:
    packed = pack([[1, 5, 2], [1, 2]], [[0, 0, 0], [0, 1]])
    assert packed.to(packed.ids_T.device) is packed
    moved = packed.to(torch.device("meta"))
    for name in ("ids_T", "positions_T", "lengths_N", "order_N", "types_T"):
        assert getattr(moved, name).device.type == "meta"
        assert getattr(moved, name).shape == getattr(packed, name).shape
    assert [bucket.length for bucket in moved.buckets] == [bucket.length for bucket in packed.buckets]


def test_rows_that_waited_fill_a_batch_and_no_more() -> None:
    keys = [{1, 2, 3}, {1}, {2}, {3}]
    assert list(_avoid_duplicates([0, 1, 2, 3], keys, 2)) == [[0], [1, 2], [3]]


def test_bf16_is_refused_where_the_machine_would_imitate_it(monkeypatch: pytest.MonkeyPatch) -> None:
    device = torch.device("cpu")
    monkeypatch.setattr(torch.cpu, "_is_avx512_bf16_supported", lambda: False)
    monkeypatch.setattr(torch.cpu, "_is_amx_tile_supported", lambda: False)
    with pytest.raises(UsageError, match="precision is 'bf16', this machine has no bf16 arithmetic\n  use precision = \"float32\""):
        processes.autocast("bf16", device)
    monkeypatch.setattr(torch.cpu, "_is_amx_tile_supported", lambda: True)
    assert processes.has_bf16(device)
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda: False)
    assert not processes.has_bf16(torch.device("cuda"))


def test_a_head_that_cannot_be_stored_is_refused(tiny_folder: Callable[..., Path]) -> None:
    with pytest.raises(UsageError, match="head is 'sbert', which a model of type distilbert cannot be stored with\n  leave head out"):
        load_cross_encoder(tiny_folder("distilbert"), ["LABEL_0"], CrossOptions(head="sbert"))


def test_weights_that_do_not_fit_a_head_are_refused(tiny_bert_folder: Path) -> None:
    backbone: Any = load_encoder(tiny_bert_folder).backbone
    backbone.register_parameter("stray", torch.nn.Parameter(torch.zeros(1)))
    with pytest.raises(FolderError, match=r"the encoder's weights do not fit \w+: \['stray'"):
        make_cross_model(backbone, ["LABEL_0"], CrossOptions(head="own"))


def test_a_dense_layer_alone_leaves_lengths_as_they_are(pairs_file: Path, recipe_values: dict[str, Any]) -> None:
    recipe_values["model"] |= {"dense": 12, "normalize": False}
    vectors = build_encoder(make_recipe(recipe_values, folder=pairs_file.parent)).encode(["the cat", "a river"])
    assert vectors.shape == (2, 12)
    assert not np.allclose(np.linalg.norm(vectors, axis=1), 1)


def test_weight_decay_reaches_pieces_that_the_data_does_not_hold(
    pairs_file: Path, recipe_values: dict[str, Any], tiny_bert_folder: Path
) -> None:
    from safetensors.numpy import load_file

    name = "embeddings.word_embeddings.weight"
    before = load_file(tiny_bert_folder / "model.safetensors")[name]
    recipe_values["model"] = {"base": str(tiny_bert_folder)}
    after = {}
    for decay in (0.0, 0.5):
        recipe_values["stage"][0] |= {"steps": 2, "weight_decay": decay}
        result = train(make_recipe(recipe_values | {"output": f"out-{decay}"}, folder=pairs_file.parent))
        after[decay] = load_file(result.output / "model.safetensors")[name]
    used = np.any(after[0.0] != before, axis=1)
    assert 0 < used.sum() < len(used)
    assert np.all(np.abs(after[0.5][~used]) < np.abs(before[~used]))


def test_where_there_is_no_snapshot_there_is_none_and_lost_weights_are_named(tmp_path: Path) -> None:
    assert Checkpoints(tmp_path / "nowhere").load_latest() is None
    assert Checkpoints(tmp_path).load_latest() is None
    with pytest.raises(DamagedFile, match=r"best-00-00000004\.safetensors: missing, expected the weights of the best evaluation"):
        Checkpoints(tmp_path).load_best(0, 4)


def test_an_older_folder_is_replaced(tmp_path: Path) -> None:
    target = tmp_path / "out"
    for name in ("old", "new"):
        write_folder(target, lambda draft, name=name: (draft / name).write_text("x") and None)  # type: ignore[misc]
    assert sorted(path.name for path in target.iterdir()) == ["manifest.json", "new"]
