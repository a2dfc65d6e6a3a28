"""Objectives over token rows: MaxSim beside the sentence vector, and a teacher's tokens."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from munjang.errors import InputError, UsageError
from munjang.models.sentence_encoder import SentenceEncoder
from munjang.train import train
from munjang.train.encoder import TrainableEncoder
from munjang.train.load_folder import EncoderOptions, load_encoder
from munjang.train.objectives.base import Objective
from munjang.train.objectives.registry import make_objective
from munjang.train.recipe import make_recipe
from munjang.vectors.maxsim import TokenCodes, fit_codebook, maxsim

ASKED = ["where is the dog", "a red car", "cats"]
THERE = ["the dog runs in the park", "a car that is red stops", "two cats sleep", "the sea is blue", "it rains", "he reads a book"]


def attached(name: str, settings: dict[str, object], encoder: TrainableEncoder) -> Objective:
    made = make_objective(name, settings, dimension=encoder.dimension)
    made.attach(encoder, [])
    return made


def columns_of(encoder: TrainableEncoder, *texts: list[str]) -> list[list[list[int]]]:
    return [encoder.tokens(column) for column in texts]


@pytest.mark.parametrize("one_bit", [False, True])
def test_the_loss_is_that_of_cosines_and_of_the_librarys_maxsim(tiny_bert_folder: Path, one_bit: bool) -> None:
    encoder = load_encoder(tiny_bert_folder, EncoderOptions(dropout=0.0)).eval()
    objective = attached("late_interaction", {"late_weight": 0.5, "scale": 7, "late_scale": 9, "one_bit": one_bit}, encoder)
    columns = objective.encode(encoder, columns_of(encoder, ASKED, THERE[:3], THERE[3:]))
    found = float(objective(columns, None).detach())

    engine = SentenceEncoder.load(tiny_bert_folder)
    asked, there = (engine.encode_with_tokens(texts, keep=np.array, skip=("special", "prompt")) for texts in (ASKED, THERE))
    units = [rows / np.linalg.norm(rows, axis=1, keepdims=True) for rows in (*asked[1], *there[1])]
    codebook = fit_codebook(np.concatenate(units), "1bit")
    if one_bit:
        codes = TokenCodes.join([codebook.quantize(rows) for rows in there[1]], codebook)
        late = np.stack([maxsim(rows, codes, codebook) for rows in asked[1]])
    else:
        centred = [rows - codebook.centre_D for rows in units]
        centred = [rows / np.linalg.norm(rows, axis=1, keepdims=True) for rows in centred]
        late = np.array([[(q @ t.T).max(axis=1).mean() for t in centred[len(ASKED) :]] for q in centred[: len(ASKED)]])
    vectors = [rows / np.linalg.norm(rows, axis=1, keepdims=True) for rows in (asked[0], there[0])]
    own = torch.arange(len(ASKED))
    by_text = torch.nn.functional.cross_entropy(torch.tensor(7 * vectors[0] @ vectors[1].T), own)
    by_tokens = torch.nn.functional.cross_entropy(torch.tensor(9 * late), own)
    assert found == pytest.approx(float(by_text) + 0.5 * float(by_tokens), abs=2e-3 if one_bit else 1e-4)


@pytest.mark.parametrize("one_bit", [False, True])
def test_long_texts_count_with_their_first_tokens_and_every_weight_learns(tiny_bert_folder: Path, one_bit: bool) -> None:
    encoder = load_encoder(tiny_bert_folder, EncoderOptions(dropout=0.0))
    short = attached("late_interaction", {"tokens": 2, "one_bit": one_bit}, encoder)
    columns = short.encode(encoder, columns_of(encoder, ASKED, THERE[:3]))
    assert {tuple(column.shape) for column in columns} == {(3, encoder.dimension + 2 * 32)}
    short(columns, None).backward()
    assert all(bool((weight.grad.abs() > 0).any()) for name, weight in encoder.named_parameters() if name.endswith("output.dense.weight"))


def _values(base: Path, **stage: Any) -> dict[str, Any]:
    return {"output": "out", "model": {"base": str(base), "dropout": 0.0}, "stage": [{"batch_size": 8, "steps": 6, **stage}]}


def test_a_recipe_trains_both_ways_of_searching(tiny_bert_folder: Path, parallel_file: Path) -> None:
    data = [{"path": "parallel.tsv", "kind": "parallel", "where": ["split=train"], "objective": "late_interaction"}]
    values = _values(tiny_bert_folder, data=data, learning_rate=1e-3, epochs=3)
    values["stage"][0] |= {"steps": 30, "mini_batch": 3}
    losses = [step.loss for step in train(make_recipe(values, folder=parallel_file.parent)).log.steps]
    assert np.mean(losses[-5:]) < 0.8 * np.mean(losses[:5])


def test_a_student_equal_to_its_teacher_has_nothing_to_learn_and_one_with_fewer_layers_comes_nearer(
    tiny_folder: Callable[..., Path], parallel_file: Path
) -> None:
    teacher = tiny_folder("bert")
    data = [{"path": "parallel.tsv", "kind": "plain", "texts": ["en"], "objective": "token_distillation"}]
    values = _values(teacher, data=data, teacher=str(teacher), learning_rate=1e-9)
    same = train(make_recipe(values, folder=parallel_file.parent))
    assert max(step.loss for step in same.log.steps) < 1e-5
    fewer = _values(teacher, data=data, teacher=str(teacher), learning_rate=1e-3)
    fewer["output"], fewer["model"]["layers"] = "fewer", [0]
    fewer["stage"][0] |= {"steps": 40, "epochs": 10}
    losses = [step.loss for step in train(make_recipe(fewer, folder=parallel_file.parent)).log.steps]
    assert np.mean(losses[-5:]) < 0.8 * np.mean(losses[:5])


def test_the_parts_of_the_loss_are_the_share_of_the_spread_and_the_distance_of_vectors(tiny_folder: Callable[..., Path]) -> None:
    encoder = load_encoder(tiny_folder("bert"), EncoderOptions(dropout=0.0, layers=(0,))).eval()
    teacher = load_encoder(tiny_folder("bert"), EncoderOptions(dropout=0.0)).eval()
    objective = attached("token_distillation", {"token_weight": 3}, encoder)
    objective.attach_teacher(teacher, encoder)
    found = objective(objective.encode(encoder, columns_of(encoder, THERE)), None)
    own, taught = ([each.hidden([ids])[0] for ids in each.tokens(THERE)] for each in (encoder, teacher))
    missed = (torch.cat(own) - torch.cat(taught)).square().sum()
    spread = (torch.cat(taught) - torch.cat(taught).mean(dim=0)).square().sum()
    apart = (torch.tensor(encoder.encode(THERE)) - torch.tensor(teacher.encode(THERE))).square().sum(dim=1).mean()
    torch.testing.assert_close(found, 3 * missed / spread + apart, rtol=1e-4, atol=1e-5)


def test_teachers_of_tokens_that_do_not_fit_are_refused(
    tiny_folder: Callable[..., Path], tiny_bert_folder: Path, parallel_file: Path
) -> None:
    def refused(teacher: object, kind: type[Exception], message: str) -> None:
        data = [{"path": "parallel.tsv", "kind": "plain", "texts": ["en"], "objective": "token_distillation"}]
        values = _values(tiny_bert_folder, data=data, **({"teacher": teacher} if teacher else {}))
        with pytest.raises(kind, match=message):
            train(make_recipe(values, folder=parallel_file.parent))

    refused(None, InputError, "the stage has none")
    refused({"model": str(tiny_bert_folder), "prompt": "query: "}, UsageError, "no prompt")
    refused("vectors.parquet", UsageError, "no file of vectors")
    refused(str(tiny_folder("xlm-roberta")), UsageError, "another vocabulary")
