"""`munjang ablate`: the paper's Table 6 on given data."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from munjang.cli.data_options import ScaleOption
from munjang.cli.options import Chosen, JsonOption, LanguageOption, Takes, examples, new_app, report_language
from munjang.cli.show import emit, note, print_table
from munjang.errors import UsageError
from munjang.models.registry import resolve
from munjang.train.ablate import CONCATENATIONS, POOLINGS, SCRATCH_WIDTH, format_score, run_ablation
from munjang.train.examples import DataSource
from munjang.train.progress import StepsOnly
from munjang.train.recipe import ModelRecipe, ScratchRecipe, StageRecipe

app = new_app()


@app.command(
    epilog=examples(
        "munjang ablate --nli snli.tsv --sts stsb-train.csv --test stsb-dev.csv --model my-model -o ablation",
        "munjang ablate --nli snli.tsv --sts sts.csv --test dev.csv --scratch-layers 2 --scratch-width 128 --seeds 3 -o ablation",
    )
)
def ablate(
    test: Annotated[Path, typer.Option(help="Scored pairs to measure every run on.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="A folder for ablation.json and ablation.html.")],
    nli: Annotated[Path | None, typer.Option(help="Labelled pairs, for the classification objective.")] = None,
    sts: Annotated[Path | None, typer.Option(help="Scored pairs, for the regression objective.")] = None,
    model: Annotated[
        str | None, typer.Option("--model", "-m", help="The model to train, with each pooling in turn. Default: the default model.")
    ] = None,
    scratch_layers: Annotated[int | None, typer.Option(min=1, help="Train from scratch, with this many layers.")] = None,
    scratch_width: Annotated[int, typer.Option(min=8, help="With --scratch-layers: the width.")] = SCRATCH_WIDTH,
    scale: ScaleOption = None,
    only: Annotated[Literal["pooling", "concatenation"] | None, typer.Option(help="Run only this half of the table.")] = None,
    *,
    options: Annotated[Chosen, Takes(run_ablation)],
    rows: Annotated[Chosen, Takes(DataSource, only=["limit"])],
    stage: Annotated[Chosen, Takes(StageRecipe, only=["epochs", "steps", "batch_size", "learning_rate"])],
    language: LanguageOption = None,
    as_json: JsonOption = False,
) -> None:
    """Compare poolings and objectives, as in the paper's Table 6.

    Trains with 3 poolings × 2 objectives and 7 concatenations, over several seeds, and prints one table.
    """
    if output.exists() and not output.is_dir():
        raise UsageError(f"{output}: is a file, expected a folder to write the table to")
    if model is not None and scratch_layers is not None:
        raise UsageError("--model and --scratch-layers together, expected one of them")
    scratch = None if scratch_layers is None else ScratchRecipe(layers=scratch_layers, width=scratch_width)
    with StepsOnly() as steps_shown:
        ablation = run_ablation(
            ModelRecipe(scratch=scratch) if scratch is not None else ModelRecipe(base=str(resolve(model).path)),
            DataSource(path=str(test), label_range=scale),
            nli=None if nli is None else DataSource(path=str(nli), **rows),
            sts=None if sts is None else DataSource(path=str(sts), label_range=scale, **rows),
            stage=stage,
            **options,
            poolings=() if only == "concatenation" else POOLINGS,
            concatenations=() if only == "pooling" else CONCATENATIONS,
            show=note,
            progress=steps_shown,
        )
    ablation.write(output, language=report_language(language))
    if as_json:
        emit(ablation.to_json())
        return
    table = [(row.part, row.objective, row.pooling, row.concatenation, format_score(row)) for row in ablation.rows]
    print_table(("part", "objective", "pooling", "concatenation", "Spearman × 100"), table, right=("Spearman × 100",))
    note(f"before training: {100 * ablation.untrained:.2f}; table in {output}/ablation.html and .json")
