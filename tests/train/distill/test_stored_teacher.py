"""A file of vectors teaches what the model that computed them teaches; other files and texts are refused by name."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.conftest import Dense

from munjang.cli.encode import vector_file
from munjang.errors import InputError, UsageError
from munjang.models.sentence_encoder import SentenceEncoder
from munjang.text.records import Record
from munjang.train import train
from munjang.train.distill.run import run_distillation
from munjang.train.examples import DataSource, TeacherRecipe
from munjang.train.recipe import ModelRecipe, make_recipe


def learn(parallel_file: Path, base: Path, teacher: str, output: str) -> list[float]:
    """Return the losses of three steps with a teacher."""
    data = [{"path": "parallel.tsv", "kind": "parallel", "where": ["split=train"]}]
    stage = {"teacher": teacher, "steps": 3, "batch_size": 8, "data": data}
    values = {"output": output, "model": {"base": str(base), "dropout": 0.0}, "stage": [stage]}
    return [step.loss for step in train(make_recipe(values, folder=parallel_file.parent)).log.steps]


@pytest.mark.parametrize("suffix", [".jsonl", ".parquet"])
def test_a_file_teaches_what_its_model_teaches(
    tiny_bert_folder: Path, tiny_folder: Callable[..., Path], parallel_file: Path, suffix: str
) -> None:
    pytest.importorskip("pyarrow")
    wide = tiny_folder("bert", modules=(Dense(48), "normalize"))
    texts = [line.split("\t")[2] for line in parallel_file.read_text(encoding="utf-8").splitlines()[1:]]
    with vector_file(parallel_file.with_name(f"vectors{suffix}"), keep_text=True) as writer:
        records = [Record(None, text, {}, "") for text in texts]
        writer.write(records, SentenceEncoder.load(wide).encode(texts))
    from_model = learn(parallel_file, tiny_bert_folder, str(wide), "one")
    assert learn(parallel_file, tiny_bert_folder, f"vectors{suffix}", "other") == pytest.approx(from_model, rel=1e-4)


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ([], "no rows"),
        ([{"text": "a cat"}], "expected a text and its vector"),
        ([{"text": "a cat", "vector": [1, "two"]}], "expected 2 numbers"),
        ([{"text": "a cat", "vector": [1, 2]}, {"text": "a dog", "vector": [1]}], "has 1 entries, expected 2"),
        ([{"text": "a cat", "vector": [0.5] * 32}], "has no vector of"),
    ],
)
def test_a_file_that_cannot_teach_is_refused(
    tiny_bert_folder: Path, parallel_file: Path, lines: list[dict[str, object]], expected: str
) -> None:
    parallel_file.with_name("vectors.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    with pytest.raises(InputError, match=expected):
        learn(parallel_file, tiny_bert_folder, "vectors.jsonl", "refused")
    assert not parallel_file.with_name("refused").exists()


def test_a_missing_file_a_prompt_and_the_distill_command_are_refused(tiny_bert_folder: Path, parallel_file: Path) -> None:
    with pytest.raises(InputError, match=r"vectors\.jsonl: no such file"):
        learn(parallel_file, tiny_bert_folder, "vectors.jsonl", "refused")
    with pytest.raises(UsageError, match="leave it out"):
        learn(parallel_file, tiny_bert_folder, {"model": "vectors.jsonl", "prompt": "query: "}, "refused")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="with a recipe and munjang train"):
        run_distillation(
            TeacherRecipe("vectors.parquet"), ModelRecipe(base=str(tiny_bert_folder)), "out", data=[DataSource(str(parallel_file))]
        )
