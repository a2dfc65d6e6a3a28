"""The pass without padding is the same model as transformers' own padded one."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import transformers
from hypothesis import given, settings
from hypothesis import strategies as st

from munjang.engine.modules import POOLINGS
from munjang.train.encoder import TextSettings, TrainableEncoder
from munjang.train.packing import pack

SMALL = {"vocab_size": 60, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 48}
FAMILIES: dict[str, Any] = {
    "bert": lambda: transformers.BertModel(transformers.BertConfig(**SMALL, max_position_embeddings=40)),
    "electra": lambda: transformers.ElectraModel(transformers.ElectraConfig(**SMALL, embedding_size=16, max_position_embeddings=40)),
    "roberta": lambda: transformers.RobertaModel(transformers.RobertaConfig(**SMALL, max_position_embeddings=42, pad_token_id=1)),
    "xlm-roberta": lambda: transformers.XLMRobertaModel(transformers.XLMRobertaConfig(**SMALL, max_position_embeddings=42, pad_token_id=1)),
    "distilbert": lambda: transformers.DistilBertModel(
        transformers.DistilBertConfig(vocab_size=60, dim=32, n_layers=2, n_heads=4, hidden_dim=48, max_position_embeddings=40)
    ),
    "mpnet": lambda: transformers.MPNetModel(transformers.MPNetConfig(**SMALL, max_position_embeddings=42)),
    "albert": lambda: transformers.AlbertModel(
        transformers.AlbertConfig(
            **SMALL, embedding_size=16, max_position_embeddings=40, hidden_dropout_prob=0, attention_probs_dropout_prob=0
        )
    ),
}


class _Pads:
    pad_token_id = 1


def _encoder(family: str, modes: tuple[str, ...] = ("mean",)) -> TrainableEncoder:
    torch.manual_seed(3)
    model = FAMILIES[family]()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            # fresh biases are zero and fresh norms one, which would hide a missing term
            if parameter.ndim == 1:
                parameter.add_(torch.randn_like(parameter) * 0.1, alpha=1 if "weight" in name or "bias" in name else 0)
    return TrainableEncoder(model, _Pads(), modes=modes, text=TextSettings(40)).eval()  # type: ignore[arg-type]


def _ids(lengths: list[int]) -> list[list[int]]:
    chance = torch.Generator().manual_seed(5)
    return [torch.randint(3, 60, (length,), generator=chance).tolist() for length in lengths]


def _padded(encoder: TrainableEncoder, ids: list[list[int]], mode: str) -> torch.Tensor:
    longest = max(map(len, ids))
    table = torch.tensor([[*row, *[1] * (longest - len(row))] for row in ids])
    mask = torch.tensor([[1] * len(row) + [0] * (longest - len(row)) for row in ids])
    hidden = encoder.backbone(input_ids=table, attention_mask=mask).last_hidden_state
    from sentence_transformers.sentence_transformer.modules import Pooling

    pooling = Pooling(32, pooling_mode={"mean_sqrt_len": "mean_sqrt_len_tokens"}.get(mode, mode))  # type: ignore[arg-type]
    return pooling({"token_embeddings": hidden, "attention_mask": mask})["sentence_embedding"]


@pytest.mark.parametrize("family", FAMILIES)
def test_vectors_and_gradients_equal_the_padded_pass(family: str) -> None:
    encoder = _encoder(family)
    assert encoder.is_packed == (family != "albert")
    ids = _ids([3, 17, 9, 9, 30, 1, 24, 12, 9])
    weights = torch.randn(len(ids), 32, generator=torch.Generator().manual_seed(1))
    gradients = []
    made = []
    for vectors in (encoder(ids), _padded(encoder, ids, "mean")):
        encoder.zero_grad()
        (vectors * weights).sum().backward()
        made.append(vectors.detach())
        gradients.append({name: p.grad.clone() for name, p in encoder.named_parameters() if p.grad is not None})
    assert torch.allclose(made[0], made[1], atol=1e-6)
    assert gradients[0].keys() == gradients[1].keys()
    for name, gradient in gradients[0].items():
        assert torch.allclose(gradient, gradients[1][name], atol=1e-5), name


@pytest.mark.parametrize("mode", POOLINGS)
def test_each_pooling_is_that_of_sentence_transformers(mode: str) -> None:
    encoder = _encoder("bert", (mode,))
    ids = _ids([3, 17, 9, 9, 30, 1])
    assert torch.allclose(encoder(ids), _padded(encoder, ids, mode), atol=1e-6)


@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(1, 40), min_size=1, max_size=30))
def test_a_plan_holds_every_token_once_and_in_its_place(lengths: list[int]) -> None:
    ids = _ids(lengths)
    packed = pack(ids)
    assert sum(bucket.tokens for bucket in packed.buckets) == sum(lengths)
    texts = packed.ids_T.split(packed.lengths_N.tolist())
    assert [texts[place].tolist() for place in packed.order_N.tolist()] == ids


def test_a_vector_does_not_depend_on_the_texts_beside_it() -> None:
    encoder = _encoder("bert")
    ids = _ids([30, 4, 18])
    alone = torch.cat([encoder([row]) for row in ids])
    assert torch.allclose(encoder(ids), alone, atol=1e-6)


def test_dropout_is_on_in_training_and_off_outside() -> None:
    encoder = _encoder("bert")
    ids = _ids([30, 4, 18])
    assert torch.equal(encoder(ids), encoder(ids))
    encoder.train()
    assert not torch.equal(encoder(ids), encoder(ids))


@pytest.mark.parametrize("family", ["bert", "albert"])
def test_training_only_the_rows_in_use_gives_the_same_step(family: str) -> None:
    ids = _ids([5, 9, 12, 3])
    stepped = []
    for compact in (False, True):
        encoder = _encoder(family)
        if compact:
            encoder.train_rows(torch.tensor(sorted({piece for row in ids for piece in row})))
        encoder.train()
        optimizer = torch.optim.AdamW([p for p in encoder.parameters() if p.requires_grad], lr=1e-2, weight_decay=0.0)
        for step in range(3):
            torch.manual_seed(step)
            encoder(ids).square().sum().backward()
            optimizer.step()
            optimizer.zero_grad()
        unseen = encoder.eval()([[1, 2, 0]])
        encoder.train_all_rows()
        assert torch.equal(unseen, encoder([[1, 2, 0]]))
        stepped.append(encoder.state_dict())
    assert stepped[0].keys() == stepped[1].keys()
    assert all(torch.equal(stepped[0][name], stepped[1][name]) for name in stepped[0])


def test_an_empty_text_is_refused() -> None:
    with pytest.raises(ValueError, match="one token"):
        pack([[1], []])
