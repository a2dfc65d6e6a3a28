"""`munjang adapt`: a model and a domain's plain text → a model that knows the domain, with scores before and after."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from munjang.cli.data_options import ScaleOption
from munjang.cli.options import (
    Chosen,
    JsonOption,
    LanguageOption,
    ModelOption,
    Takes,
    chosen_engine,
    chosen_pooling,
    examples,
    new_app,
    report_language,
)
from munjang.cli.show import emit, print_facts, print_table
from munjang.errors import UsageError
from munjang.models.registry import resolve
from munjang.train.adapt.run import DROPOUTS, Adaptation, adapt_model
from munjang.train.examples import DataSource
from munjang.train.progress import Live
from munjang.train.recipe import ModelRecipe, StageRecipe, TopKeys

STAGE_KEYS = ("epochs", "steps", "batch_size", "learning_rate", "evaluate_every")
BY_METHOD = dict.fromkeys(("batch_size", "learning_rate"), "depends on the method")
DROPOUT = f"{DROPOUTS['simcse']:g} for simcse, else the model's own"

app = new_app()


@app.command(
    epilog=examples(
        "munjang adapt bills.txt --method tsdae --dev dev.tsv -o adapted",
        "munjang adapt bills.tsv --text-column title --text-column text --sentences --method mlm --extend-vocabulary 2000 -o adapted",
        "munjang adapt bills.txt --method tsdae --dev dev.tsv -o adapted --resume",
    )
)
def adapt(
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", help="Texts from the domain: txt, CSV, TSV, JSON Lines or Parquet.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="The output folder.")],
    model: ModelOption = None,
    *,
    options: Annotated[Chosen, Takes(adapt_model)],
    text_column: Annotated[list[str] | None, typer.Option("--text-column", help="A column with text; may be repeated.")] = None,
    where: Annotated[
        list[str] | None, typer.Option(metavar="COLUMN=VALUE", help="Only rows with this value, such as kind=report; != for all others.")
    ] = None,
    sentences: Annotated[bool, typer.Option("--sentences", help="Split texts into sentences.")] = False,
    rows: Annotated[Chosen, Takes(DataSource)],
    share: Annotated[float | None, typer.Option(help="The fraction of tokens that are hidden (mlm, 0.15) or deleted (tsdae, 0.6).")] = None,
    whole_words: Annotated[bool, typer.Option("--whole-words", help="Hide whole words (mlm only).")] = False,
    trained: Annotated[Chosen, Takes(ModelRecipe, only=["max_length", "dropout", "extend_vocabulary"], worded={"dropout": DROPOUT})],
    stage: Annotated[Chosen, Takes(StageRecipe, only=STAGE_KEYS, worded=BY_METHOD)],
    run: Annotated[Chosen, Takes(TopKeys)],
    dev: Annotated[
        list[Path] | None,
        typer.Option("--dev", help="Scored pairs, pairs or triplets to measure on; the first file decides which weights are kept."),
    ] = None,
    scale: ScaleOption = None,
    resume: Annotated[bool, typer.Option("--resume", help="Resume an interrupted run.")] = False,
    language: LanguageOption = None,
    as_json: JsonOption = False,
) -> None:
    """Adapt a model to a domain, from plain text alone.

    The result is an ordinary model folder, which a recipe can train further on labelled data. --dev prints scores before and after.
    """
    if chosen_engine() == "fast":
        raise UsageError("--engine fast runs models, it does not train them\n  leave --engine out")
    settings = _objective_settings(options["method"], share=share, whole_words=whole_words)
    kind: Literal["plain", "sentences"] = "sentences" if sentences else "plain"
    columns, conditions = tuple(text_column or ()), tuple(where or ())
    with Live() as live:
        made = adapt_model(
            [DataSource(path=str(file), kind=kind, texts=columns, where=conditions, **rows) for file in files],
            output,
            model=ModelRecipe(base=str(resolve(model).path), pooling=chosen_pooling(), **trained),
            stage={"settings": settings, **stage},
            **options,
            **run,
            dev=[DataSource(path=str(file), label_range=scale) for file in dev or ()],
            resume=resume,
            progress=live,
            language=report_language(language),
        )
    if made.result.is_first:
        _show(made, as_json=as_json)


def _objective_settings(method: str, *, share: float | None, whole_words: bool) -> dict[str, object]:
    """Return the objective's settings; an option of another method is refused."""
    if share is not None and method == "simcse":
        raise UsageError("--share is for mlm and tsdae, simcse hides and deletes nothing")
    if whole_words and method != "mlm":
        raise UsageError(f"--whole-words is for mlm, the method is {method}")
    given: dict[str, object] = {"share": share, "whole_words": whole_words or None}
    return {name: value for name, value in given.items() if value is not None}


def _show(made: Adaptation, *, as_json: bool) -> None:
    if as_json:
        emit(made.to_json())
        return
    rows = [
        (entry.file, name, f"{100 * entry.before[name]:.2f}", f"{100 * value:.2f}", f"{100 * (value - entry.before[name]):+.2f}")
        for entry in made.measured
        for name, value in entry.after.items()
        if name == entry.metric
    ]
    if rows:
        print_table(("file", "measure × 100", "before", "after", "change"), rows, right=("before", "after", "change"))
    result = made.result
    facts = [("model", str(result.output)), ("steps", f"{len(result.log.steps):,}"), ("report", str(result.output / "report.html"))]
    print_facts([*facts, *([("warning", result.warning)] if result.warning else [])])
