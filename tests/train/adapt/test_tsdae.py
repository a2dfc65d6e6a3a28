"""TSDAE against sentence-transformers' DenoisingAutoEncoderLoss, and its laws."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.conftest import quiet
from torch import Tensor

from munjang.train.adapt import tsdae
from munjang.train.adapt.tsdae import Decoder, Tsdae, TsdaeSettings, delete_pieces
from munjang.train.encoder import TrainableEncoder
from munjang.train.load_folder import load_encoder

WHOLE = ["the rain is in the river", "비가 많이 온다", "a cat sleeping on the train to winter"]
LEFT = ["rain river", "비가", "a cat winter"]


def attached(encoder: TrainableEncoder, **options: Any) -> Tsdae:
    torch.manual_seed(3)
    made = Tsdae(TsdaeSettings(**options))
    made.attach(encoder, sorted({piece for ids in encoder.tokens(WHOLE) for piece in ids}))
    return made


def test_the_loss_is_that_of_sentence_transformers_with_its_decoder(
    tiny_folder: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tiny_folder("bert", modules=())
    with quiet():
        import sentence_transformers as st_library
        from sentence_transformers.sentence_transformer.losses import DenoisingAutoEncoderLoss

        model = st_library.SentenceTransformer(str(folder), device="cpu").eval()
        authority = DenoisingAutoEncoderLoss(model, decoder_name_or_path=str(folder), tie_encoder_decoder=False).eval()
    encoder = load_encoder(folder).eval()
    objective = attached(encoder, candidates="all").eval()
    copy_decoder(objective.decoder, authority.decoder, encoder)
    left = iter([torch.tensor(ids) for ids in encoder.tokens(LEFT)])
    monkeypatch.setattr(tsdae, "delete_pieces", lambda *_, **__: next(left))
    loss = objective(objective.encode(encoder, [encoder.tokens(WHOLE)]), None)
    with torch.no_grad(), quiet():
        features = [model.tokenize(LEFT), model.tokenize(WHOLE)]
        wanted = authority(features, torch.empty(0))
    assert float(loss.detach()) == pytest.approx(float(wanted), rel=1e-5)


def copy_decoder(own: Decoder, theirs: Any, encoder: TrainableEncoder) -> None:
    """Give our decoder the weights of theirs; its word embeddings are taken as the encoder's, as when they are tied."""
    words: Any = encoder.words
    bert, head = theirs.bert, theirs.cls.predictions
    with torch.no_grad():
        bert.embeddings.word_embeddings.weight.copy_(words.weight)
        head.decoder.weight.copy_(words.weight)
        own.positions.weight.copy_(bert.embeddings.position_embeddings.weight[: len(own.positions.weight)])
        own.positions.weight.add_(bert.embeddings.token_type_embeddings.weight[0])
        own.head.bias_V.copy_(head.decoder.bias)
    own.norm.load_state_dict(bert.embeddings.LayerNorm.state_dict())
    own.head.dense.load_state_dict(head.transform.dense.state_dict())
    own.head.norm.load_state_dict(head.transform.LayerNorm.state_dict())
    for mine, other in zip(own.layers, bert.encoder.layer, strict=True):
        layer: Any = mine
        attention, cross = other.attention, other.crossattention
        parts = [attention.self.query, attention.self.key, attention.self.value]
        layer.qkv.load_state_dict({name: torch.cat([getattr(part, name).detach() for part in parts]) for name in ("weight", "bias")})
        pairs = [(layer.out, attention.output.dense), (layer.norms[0], attention.output.LayerNorm)]
        pairs += [(layer.memory_value, cross.self.value), (layer.memory_out, cross.output.dense), (layer.norms[1], cross.output.LayerNorm)]
        pairs += [(layer.up, other.intermediate.dense), (layer.down, other.output.dense), (layer.norms[2], other.output.LayerNorm)]
        for target, source in pairs:
            target.load_state_dict(source.state_dict())


def test_the_decoder_knows_of_the_text_only_its_vector(tiny_bert_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    encoder = load_encoder(tiny_bert_folder)
    objective = attached(encoder)
    real = encoder.forward
    monkeypatch.setattr(encoder, "forward", lambda ids: real(ids).detach())
    objective(objective.encode(encoder, [encoder.tokens(WHOLE)]), None).backward()
    moved = {name for name, parameter in encoder.named_parameters() if parameter.grad is not None}
    # cut at the vector, nothing of the encoder learns but the word embeddings, which are the decoder's too
    assert moved == {"backbone.embeddings.word_embeddings.weight"}


def test_a_place_sees_the_pieces_before_it_and_not_those_after(tiny_bert_folder: Path) -> None:
    encoder = load_encoder(tiny_bert_folder)
    decoder = attached(encoder).decoder.eval()
    torch.manual_seed(1)
    words_NLE, vectors_ND = torch.randn(2, 6, 32), torch.randn(2, 32)
    before = decoder(words_NLE, vectors_ND)
    changed = words_NLE.clone()
    changed[:, 4:] = torch.randn(2, 2, 32)
    after = decoder(changed, vectors_ND)
    torch.testing.assert_close(after[:, :4], before[:, :4], rtol=0, atol=1e-6)
    assert (after[:, 4:] - before[:, 4:]).abs().max() > 1e-3
    assert (decoder(words_NLE, vectors_ND.flip(0)) - before).abs().amax(dim=(0, 2)).min() > 1e-3


@pytest.mark.parametrize("family", ["roberta", "distilbert", "electra", "mpnet"])
def test_every_family_has_a_decoder(family: str, tiny_folder: Callable[..., Path]) -> None:
    encoder = load_encoder(tiny_folder(family))
    objective = attached(encoder, layers=1)
    loss: Tensor = objective(objective.encode(encoder, [encoder.tokens(WHOLE)]), None)
    loss.backward()  # type: ignore[no-untyped-call]
    assert all(parameter.grad is not None for parameter in objective.parameters())


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(3, 50), min_size=1, max_size=40), st.floats(0, 0.99), st.integers(0, 99))
def test_deleting_keeps_order_special_tokens_and_one_piece(pieces: list[int], share: float, seed: int) -> None:
    torch.manual_seed(seed)
    left = delete_pieces(torch.tensor([1, *pieces, 2]), share=share, kept=frozenset({1, 2})).tolist()
    assert (left[0], left[-1]) == (1, 2)
    assert 1 <= len(left) - 2 <= len(pieces)
    rest = iter(pieces)
    assert all(piece in rest for piece in left[1:-1])


def test_the_share_that_is_deleted_is_the_one_asked_for() -> None:
    torch.manual_seed(2)
    assert len(delete_pieces(torch.arange(100_000), share=0.6)) == pytest.approx(40_000, rel=0.02)
