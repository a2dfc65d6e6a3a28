from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import pytest

from munjang.errors import UsageError
from munjang.train.ablate import run_ablation
from munjang.train.examples import DataSource
from munjang.train.recipe import ModelRecipe, ScratchRecipe

SMALL = ModelRecipe(scratch=ScratchRecipe(vocabulary=150, layers=1, width=16, heads=2, inner=16, positions=64))


def test_every_cell_is_run_over_the_seeds_and_written(pairs_file: Path) -> None:
    rows = [line.split("\t") for line in pairs_file.read_text(encoding="utf-8").splitlines()[1:]]
    nli = pairs_file.parent / "nli.jsonl"
    nli.write_text("\n".join(json.dumps({"a": a, "b": b, "c": "near" if float(s) > 3 else "far"}) for a, b, s in rows), encoding="utf-8")
    scored = DataSource(str(pairs_file), label_range=(0, 5))
    heard: list[str] = []
    table = run_ablation(
        SMALL,
        scored,
        nli=DataSource(str(nli), texts=("a", "b"), label="c"),
        sts=scored,
        seeds=2,
        stage={"steps": 2, "batch_size": 8},
        concatenations=(("u", "v"), ("u", "v", "|u-v|")),
        show=heard.append,
    )
    assert len(table.rows) == 3 * 2 + 2 == len(heard)
    assert all(len(row.scores) == 2 for row in table.rows)
    # mean pooling with the default concatenation is one training, shown in both halves
    same = [row for row in table.rows if row.objective == "classification" and row.pooling == "mean" and row.concatenation == "u, v, |u-v|"]
    assert same[0].scores == same[1].scores
    table.write(pairs_file.parent / "table")
    found = json.loads((pairs_file.parent / "table" / "ablation.json").read_text(encoding="utf-8"))
    assert found["rows"][0]["mean"] == pytest.approx(sum(found["rows"][0]["scores"]) / 2)
    assert "±" in (pairs_file.parent / "table" / "ablation.html").read_text(encoding="utf-8")


def test_a_plan_without_data_or_with_an_unknown_setting_is_refused(pairs_file: Path) -> None:
    scored = DataSource(str(pairs_file), label_range=(0, 5))
    with pytest.raises(UsageError, match="nothing to run"):
        run_ablation(SMALL, scored)
    with pytest.raises(UsageError, match="unknown setting 'epoch'"):
        run_ablation(SMALL, scored, sts=scored, seeds=1, stage={"epoch": 1})


def test_nobody_has_to_listen(pairs_file: Path) -> None:
    scored = DataSource(str(pairs_file), label_range=(0, 5))
    run = partial(run_ablation, SMALL, scored, sts=scored, seeds=1, stage={"steps": 1, "batch_size": 8}, poolings=("mean",))
    heard: list[str] = []
    assert run().rows == run(show=heard.append).rows
    assert len(heard) == 1
