"""Objectives over plain text in the trainer: from a recipe, interrupted and resumed, and as the start of another training."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.train.conftest import sentence_pairs

from munjang.data.unlabelled import read_plain_texts
from munjang.errors import UsageError
from munjang.train import load, train
from munjang.train.adapt.run import adapt_model
from munjang.train.durable import hash_file
from munjang.train.examples import DataSource, read_examples
from munjang.train.recipe import ModelRecipe, make_recipe
from munjang.train.stage_run import Stepper

METHODS = ["mlm", "tsdae", "simcse"]


def values(base: Path, method: str, output: str, **stage: Any) -> dict[str, Any]:
    return {
        "output": output,
        "seed": 3,
        "checkpoint_every": 2,
        "model": {"base": str(base), "extend_vocabulary": 8},
        "stage": [{"objective": method, "steps": 6, "batch_size": 8, "learning_rate": 1e-3, "data": [{"path": "domain.txt"}], **stage}],
    }


@pytest.mark.parametrize("mini_batch", [None, 3], ids=["whole", "mini-batches"])
@pytest.mark.parametrize("method", METHODS)
def test_interrupted_and_resumed_it_ends_the_same(
    method: str, mini_batch: int | None, domain_file: Path, tiny_bert_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    more = {} if mini_batch is None else {"mini_batch": mini_batch}
    whole = train(make_recipe(values(tiny_bert_folder, method, "whole", **more), folder=domain_file.parent))
    broken = make_recipe(values(tiny_bert_folder, method, "broken", **more), folder=domain_file.parent)
    real = Stepper.run

    def dying(self: Stepper, step: int) -> tuple[float, float]:
        if step == 4:
            raise KeyboardInterrupt
        return real(self, step)

    with monkeypatch.context() as patch:
        patch.setattr(Stepper, "run", dying)
        with pytest.raises(KeyboardInterrupt):
            train(broken)
    again = train(broken, resume=True)
    assert [entry.loss for entry in again.log.steps] == [entry.loss for entry in whole.log.steps]
    for name in ("model.safetensors", "tokenizer.json"):
        assert hash_file(domain_file.parent / "whole" / name) == hash_file(domain_file.parent / "broken" / name)


@pytest.mark.parametrize("method", METHODS)
def test_the_loss_falls_and_only_the_encoder_is_saved(method: str, domain_file: Path, tiny_bert_folder: Path) -> None:
    recipe = values(tiny_bert_folder, method, "out", steps=30)
    recipe["model"].pop("extend_vocabulary")
    result = train(make_recipe(recipe, folder=domain_file.parent))
    losses = [entry.loss for entry in result.log.steps]
    assert np.mean(losses[-5:]) < np.mean(losses[:5])
    start = load(tiny_bert_folder)
    found, before = load(result.output).state_dict(), start.state_dict()
    assert found.keys() == before.keys()
    words = "backbone.embeddings.word_embeddings.weight"
    used = {piece for ids in start.tokens(domain_file.read_text(encoding="utf-8").splitlines()) for piece in ids}
    unused = [piece for piece in range(len(before[words])) if piece not in {*used, start.tokenizer.mask_token_id}]
    # pieces that the data does not hold keep their embeddings
    assert (found[words][unused] == before[words][unused]).all()
    card = (result.output / "README.md").read_text(encoding="utf-8")
    assert "domain.txt" in card


def test_any_objective_goes_on_from_an_adapted_folder(domain_file: Path, tiny_bert_folder: Path) -> None:
    folder = domain_file.parent
    train(make_recipe(values(tiny_bert_folder, "mlm", "adapted"), folder=folder))
    rows = ["sentence1\tsentence2\tscore", *(f"{a}\t{b}\t{score}" for a, b, score in sentence_pairs(24))]
    (folder / "pairs.tsv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    stage = {"objective": "regression", "steps": 2, "data": [{"path": "pairs.tsv", "label_range": [0, 5]}]}
    result = train(make_recipe({"output": "then", "model": {"base": "adapted"}, "stage": [stage]}, folder=folder))
    assert len(load(result.output).tokenizer) == len(load(folder / "adapted").tokenizer) > len(load(tiny_bert_folder).tokenizer)


def test_a_stage_of_plain_text_and_a_stage_of_pairs_make_one_recipe(domain_file: Path, tiny_bert_folder: Path) -> None:
    folder = domain_file.parent
    rows = ["sentence1\tsentence2", *(f"{a}\t{b}" for a, b, _ in sentence_pairs(24))]
    (folder / "pairs.tsv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    recipe = values(tiny_bert_folder, "tsdae", "both", steps=2)
    recipe["stage"].append({"objective": "in_batch", "steps": 2, "data": [{"path": "pairs.tsv"}]})
    assert len(train(make_recipe(recipe, folder=folder)).log.steps) == 4


def test_plain_text_without_an_objective_says_which_command_takes_it(domain_file: Path, tiny_bert_folder: Path) -> None:
    recipe = values(tiny_bert_folder, "mlm", "out")
    del recipe["stage"][0]["objective"]
    recipe["stage"][0]["data"][0]["kind"] = "plain"
    with pytest.raises(UsageError, match="munjang adapt"):
        train(make_recipe(recipe, folder=domain_file.parent))


def test_columns_rows_and_sentences_of_a_file(tmp_path: Path) -> None:
    rows = [{"title": "A law", "text": "It rained all day. We stayed in."}, {"title": "A law", "text": "Nothing else happened!"}]
    path = tmp_path / "texts.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    assert [text for text, _ in read_plain_texts(path).texts] == [row["text"] for row in rows]
    both = read_plain_texts(path, columns=("title", "text"))
    assert ([text for text, _ in both.texts], both.repeated) == (["A law", rows[0]["text"], rows[1]["text"]], 1)
    cut = read_examples(DataSource(str(path), kind="sentences"))
    assert [example.texts for example in cut.examples] == [("It rained all day.",), ("We stayed in.",), ("Nothing else happened!",)]


def test_simcse_gives_a_model_without_dropout_the_dropout_that_it_needs(domain_file: Path, tiny_bert_folder: Path, tmp_path: Path) -> None:
    base = tmp_path / "still"
    shutil.copytree(tiny_bert_folder, base)
    config = json.loads((base / "config.json").read_text(encoding="utf-8"))
    still = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    (base / "config.json").write_text(json.dumps(config | still), encoding="utf-8")
    files = (DataSource(path=str(domain_file), kind="plain"),)
    for method, asked, used in (("simcse", None, 0.1), ("simcse", 0.3, 0.3), ("mlm", None, None)):
        output = tmp_path / f"{method}-{used}"
        model = ModelRecipe(str(base), dropout=asked)
        made = adapt_model(files, output, model=model, method=method, stage={"steps": 1, "batch_size": 4})
        assert made.result.log.steps[0].loss > 0
        recipe = json.loads((output / "training" / "recipe.json").read_text(encoding="utf-8"))
        assert recipe["model"]["dropout"] == used
