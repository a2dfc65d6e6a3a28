"""Data and recipes that can teach nothing are refused with the file, what was found and what to do."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.train.test_cross_encoder import cross_folder, stage_loss, write_rows

from munjang.data.unlabelled import read_parallel_pairs, read_plain_texts
from munjang.errors import InputError, UsageError
from munjang.train.ablate import run_ablation
from munjang.train.distill.run import run_distillation
from munjang.train.examples import DataSource, TeacherRecipe, read_examples
from munjang.train.load_folder import load_encoder
from munjang.train.mine import mine_negatives
from munjang.train.recipe import ModelRecipe, StageRecipe, make_recipe
from munjang.train.sentence_task import prepare_stage


@pytest.fixture(scope="module")
def start(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return cross_folder(tmp_path_factory.mktemp("start"))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"model": None}, "recipe: the table [model] is missing"),
        ({"model": "all-MiniLM-L6-v2"}, "recipe: the table [model] is missing"),
        ({"output": None}, "recipe: output is missing, expected the folder that the model is saved to"),
        ({"stage": ["nli.tsv"]}, "recipe: stage 1 is 'nli.tsv', expected a table"),
        ({"stage": [{"data": ["nli.tsv"]}]}, "data 1 is 'nli.tsv', expected a table that names a file as path"),
        ({"stage": [{"data": [{"file": "nli.tsv"}]}]}, "unknown setting 'file'"),
        ({"stage": [{"data": [{"path": 3}]}]}, "path is missing, expected a data file"),
    ],
    ids=["no model", "a name", "no output", "a word for a stage", "a word for data", "no path", "a number for a path"],
)
def test_a_recipe_with_holes_is_refused(change: dict[str, Any], message: str) -> None:
    values = {"output": "out", "model": {"base": "all-MiniLM-L6-v2"}, "stage": [{"data": [{"path": "nli.tsv"}]}]} | change
    with pytest.raises(UsageError) as told:
        make_recipe({key: value for key, value in values.items() if value is not None})
    assert message in str(told.value)


def test_as_many_columns_are_named_as_a_row_has_texts(tmp_path: Path) -> None:
    path = write_rows(tmp_path / "pairs.tsv", ("a", "b", "c", "label"), [("x", "y", "z", "1")])
    with pytest.raises(UsageError, match=r"pairs\.tsv: texts names 1 columns, expected 2 for scored"):
        read_examples(DataSource(path, texts=("a",), label="label", kind="scored"), seed=1)


@pytest.mark.parametrize(
    ("line", "columns", "message"),
    [
        ('{"en": "rain"}', ("en", "ko"), "line 2: there is no column 'ko'; columns are en"),
        ('{"en": "rain", "ko": 7}', ("en", "ko"), "line 2: ko is '7', expected a sentence"),
        ('{"en": "", "ko": "비"}', ("en", "ko"), "line 2: en is empty, expected the source sentence"),
    ],
    ids=["no column", "a number", "no source"],
)
def test_a_row_without_its_sentences_is_named(tmp_path: Path, line: str, columns: tuple[str, ...], message: str) -> None:
    path = tmp_path / "p.jsonl"
    path.write_text(f'{{"en": "snow", "ko": "눈"}}\n{line}\n{{"en": "", "ko": ""}}\n', encoding="utf-8")
    with pytest.raises(InputError) as told:
        read_parallel_pairs(path, columns=columns)
    assert message in str(told.value)
    kept = read_parallel_pairs(path, columns=columns, skip_bad=True)
    assert [(pair.a, pair.b) for pair in kept.pairs] == [("snow", "눈")]
    assert [message in reason for reason in kept.skipped] == [True]


def test_plain_texts_that_are_no_texts_are_named_or_skipped(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_text('{"text": "snow in winter"}\n{"text": 7}\n{"text": " "}\n', encoding="utf-8")
    with pytest.raises(InputError, match="line 2: text is '7', expected a text"):
        read_plain_texts(path, columns=("text",))
    kept = read_plain_texts(path, columns=("text",), skip_bad=True)
    assert [text for text, _ in kept.texts] == ["snow in winter"]
    assert len(kept.skipped) == 1


def test_labels_that_are_not_there_are_missed(tiny_bert_folder: Path, tmp_path: Path) -> None:
    path = write_rows(tmp_path / "p.tsv", ("sentence1", "sentence2"), [("the rain", "비"), ("the snow", "눈")])
    stage = StageRecipe(data=(DataSource(path, kind="pairs"),), objective="regression")
    with pytest.raises(InputError, match=r"p\.tsv: has no labels, objective 'regression' needs one of kind 'score'"):
        prepare_stage(stage, load_encoder(tiny_bert_folder), number=0, seed=1)


def test_too_few_rows_for_a_batch_are_refused(tiny_bert_folder: Path, tmp_path: Path) -> None:
    path = write_rows(tmp_path / "p.tsv", ("sentence1", "sentence2"), [("the rain", "비")])
    stage = prepare_stage(
        StageRecipe(data=(DataSource(path, kind="pairs"),), objective="in_batch"), load_encoder(tiny_bert_folder), number=0, seed=1
    )
    with pytest.raises(InputError, match="the data gives no batch to learn from: too few rows, or the same texts in all of them"):
        _ = stage.total_steps


def test_files_of_one_kind_share_an_objective_and_old_epochs_come_back_the_same(tiny_bert_folder: Path, tmp_path: Path) -> None:
    rows = [(f"the rain {number}", f"비 {number}") for number in range(6)]
    paths = [write_rows(tmp_path / f"{name}.tsv", ("sentence1", "sentence2"), rows) for name in "ab"]
    recipe = StageRecipe(data=tuple(DataSource(path, kind="pairs") for path in paths), objective="in_batch", batch_size=3)
    stage = prepare_stage(recipe, load_encoder(tiny_bert_folder), number=0, seed=1)
    assert len(stage.objectives) == 1
    assert any(line.endswith("b.tsv: 6 rows, as above") for line in stage.messages)
    first = stage.epoch(0)
    assert len({str(stage.epoch(number)) for number in range(70)}) > 1
    assert len(stage._epochs) < 70, "a long training does not hold every epoch's plan"
    assert stage.epoch(0) == first


def test_pairs_whose_labels_never_differ_cannot_be_ordered(start: Path, tmp_path: Path) -> None:
    rows = [("the rain", "rain", 1), ("the sun", "sun", 0), ("the sun", "moon", 0)]
    source = DataSource(write_rows(tmp_path / "p.tsv", ("a", "b", "label"), rows), texts=("a", "b"), label="label")
    with pytest.raises(InputError, match="no first text stands in rows with different labels.*\n  use mse or bce"):
        stage_loss(start, source, "lambdaloss")


def test_answers_that_belong_to_every_query_leave_no_negatives(start: Path, tmp_path: Path) -> None:
    rows = [("question 1", "the answer"), ("question 2", "the answer")]
    source = DataSource(write_rows(tmp_path / "p.tsv", ("a", "b"), rows), texts=("a", "b"))
    with pytest.raises(InputError, match=r"p\.tsv: every answer belongs to every query, so there are no negatives"):
        stage_loss(start, source, None)


@pytest.mark.parametrize("name", ["listnet", "lambdaloss", "ranknet"])
def test_margins_order_no_documents(name: str, start: Path, tmp_path: Path) -> None:
    rows = [("the rain", "rain", "sun", "moon", 0.5, 1.5), ("the cat", "cat", "dog", "bird", 0.1, 0.9)]
    path = write_rows(tmp_path / "l.tsv", ("q", "p", "n1", "n2", "m1", "m2"), rows)
    source = DataSource(path, texts=("q", "p", "n1", "n2"), scores=("m1", "m2"))
    with pytest.raises(InputError, match=f"scores are margins, objective '{name}' needs a score for each document"):
        stage_loss(start, source, name)


def test_spearman_needs_scores(tiny_bert_folder: Path, tmp_path: Path) -> None:
    pairs = write_rows(tmp_path / "pairs.tsv", ("en", "ko"), [("the rain", "비"), ("the snow", "눈")])
    with pytest.raises(InputError, match=r"pairs\.tsv: expected pairs of sentences with scores, to measure Spearman on"):
        run_distillation(
            TeacherRecipe(str(tiny_bert_folder)),
            ModelRecipe(str(tiny_bert_folder), dropout=0.0, prompts=False),
            tmp_path / "out",
            data=[DataSource(pairs, kind="parallel")],
            dev_sts=[DataSource(pairs, kind="pairs", texts=("en", "ko"))],
        )
    assert not (tmp_path / "out").exists()


def test_nothing_to_mine_for_and_nothing_to_repeat_are_refused(tiny_bert_folder: Path) -> None:
    with pytest.raises(InputError, match="no pairs to mine for"):
        mine_negatives(load_encoder(tiny_bert_folder), [])
    with pytest.raises(UsageError, match="seeds is 0, expected at least 1"):
        run_ablation(ModelRecipe("x"), DataSource("t.tsv"), sts=DataSource("s.tsv"), seeds=0)
