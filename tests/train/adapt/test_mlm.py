"""Masked language modelling against transformers' own models, and its laws."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.conftest import Tiny, make_config, quiet, randomise, write_tokenizer
from torch import Tensor

from munjang.errors import UsageError
from munjang.train.adapt import mlm
from munjang.train.adapt.mlm import Masked, Mlm, MlmSettings, find_word_starts, mask_pieces
from munjang.train.encoder import TrainableEncoder
from munjang.train.load_folder import load_encoder

TEXTS = ["the rain is in the river", "비가 많이 온다", "a cat sleeping on the train to winter", "dog"]
FAMILIES = ["bert", "roberta", "xlm-roberta", "distilbert", "electra", "mpnet"]


def used_by(encoder: TrainableEncoder) -> list[int]:
    return sorted({piece for ids in encoder.tokens(TEXTS) for piece in ids})


def attached(encoder: TrainableEncoder, **settings: Any) -> Mlm:
    torch.manual_seed(3)
    made = Mlm(MlmSettings(**settings))
    made.attach(encoder, used_by(encoder))
    return made


def loss_of(objective: Mlm, encoder: TrainableEncoder, texts: list[str] | None = None) -> Tensor:
    torch.manual_seed(8)
    loss: Tensor = objective(objective.encode(encoder, [encoder.tokens(texts or TEXTS)]), None)
    return loss


@pytest.fixture
def recorded(monkeypatch: pytest.MonkeyPatch) -> list[Masked]:
    found: list[Masked] = []

    def recording(*arguments: Any, **options: Any) -> Masked:
        found.append(mask_pieces(*arguments, **options))
        return found[-1]

    monkeypatch.setattr(mlm, "mask_pieces", recording)
    return found


@pytest.mark.parametrize("family", FAMILIES)
def test_the_loss_is_that_of_transformers_with_the_head_of_the_folder(family: str, tmp_path: Path, recorded: list[Masked]) -> None:
    with quiet():
        import transformers

        size = write_tokenizer(tmp_path, family, 24)
        authority = transformers.AutoModelForMaskedLM.from_config(make_config(Tiny(family), size)).eval()
        randomise(authority)
        authority.tie_weights()
        authority.save_pretrained(tmp_path)
    encoder = load_encoder(tmp_path).eval()
    objective = attached(encoder, share=0.4, candidates="all")
    assert not objective.head.is_fresh
    loss = loss_of(objective, encoder)
    ids = encoder.tokens(TEXTS)
    lengths = [len(text) for text in ids]
    seen, chosen = torch.split(recorded[0].ids_T, lengths), torch.split(recorded[0].chosen_T, lengths)
    table = torch.nn.utils.rnn.pad_sequence(list(seen), batch_first=True, padding_value=encoder.tokenizer.pad_token_id)
    mask = torch.nn.utils.rnn.pad_sequence([torch.ones(length, dtype=torch.long) for length in lengths], batch_first=True)
    labels = [torch.where(here, torch.tensor(text), torch.tensor(-100)) for text, here in zip(ids, chosen, strict=True)]
    padded = torch.nn.utils.rnn.pad_sequence(labels, batch_first=True, padding_value=-100)
    wanted = authority(input_ids=table, attention_mask=mask, labels=padded).loss
    assert float(loss.detach()) == pytest.approx(float(wanted.detach()), rel=1e-5)
    # the embeddings are tied: both ways into the table give one gradient
    loss.backward()
    wanted.backward()
    words: Any = encoder.words
    torch.testing.assert_close(words.weight.grad, authority.get_input_embeddings().weight.grad, rtol=1e-3, atol=1e-5)


def test_a_folder_without_a_head_gets_a_fresh_one_with_no_table_of_its_own(tiny_bert_folder: Path) -> None:
    encoder = load_encoder(tiny_bert_folder)
    objective = attached(encoder)
    assert objective.head.is_fresh
    assert {name for name, _ in objective.named_parameters()} == {
        "head.bias_V",
        "head.dense.weight",
        "head.dense.bias",
        "head.norm.weight",
        "head.norm.bias",
    }


def test_only_hidden_pieces_have_a_gradient(tiny_bert_folder: Path, recorded: list[Masked], monkeypatch: pytest.MonkeyPatch) -> None:
    encoder = load_encoder(tiny_bert_folder)
    objective = attached(encoder, share=0.5)
    kept: list[tuple[Tensor, Any]] = []

    def hidden(ids: Any, real: Callable[..., Any] = encoder.hidden) -> Any:
        rows_TD, packed = real(ids)
        kept.append((rows_TD.detach().requires_grad_(), packed))
        return kept[-1]

    monkeypatch.setattr(encoder, "hidden", hidden)
    loss_of(objective, encoder).backward()  # type: ignore[no-untyped-call]
    rows_TD, packed = kept[0]
    lengths = [len(ids) for ids in encoder.tokens(TEXTS)]
    chosen = torch.split(recorded[0].chosen_T, lengths)
    in_order = torch.cat([chosen[place] for place in packed.order_N.argsort().tolist()])
    assert rows_TD.grad is not None
    assert torch.equal(rows_TD.grad.abs().sum(dim=1) > 0, in_order)


def test_a_guess_among_the_data_is_the_guess_among_all_without_the_others(tiny_bert_folder: Path) -> None:
    encoder = load_encoder(tiny_bert_folder).eval()
    among_data, among_all = attached(encoder, share=0.5), attached(encoder, share=0.5, candidates="all")
    assert len(among_data.candidates_A) == len({*used_by(encoder), encoder.tokenizer.mask_token_id})
    # fewer wrong answers, so less to lose; random pieces come from other lists, so only those in both are hidden alike
    assert loss_of(among_data, encoder) < loss_of(among_all, encoder)


def test_a_text_that_hides_nothing_has_no_loss(tiny_bert_folder: Path) -> None:
    encoder = load_encoder(tiny_bert_folder)
    assert loss_of(attached(encoder, share=1e-9), encoder) == 0.0


def test_a_tokenizer_without_a_mask_is_refused(tiny_bert_folder: Path) -> None:
    encoder = load_encoder(tiny_bert_folder)
    encoder.tokenizer.mask_token = None
    with pytest.raises(UsageError, match="no mask token"):
        attached(encoder)


def test_a_share_out_of_range_is_refused() -> None:
    with pytest.raises(UsageError, match="share is 1"):
        Mlm.build({"share": 1.0}, dimension=8, num_labels=None)


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
    assert tuple(find_word_starts(_Vocabulary(*pieces), len(pieces)).tolist()) == starts
