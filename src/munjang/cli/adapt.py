"""`munjang adapt`: a model and a domain's plain text → a model that knows the domain, with scores before and after."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from munjang.cli.data_options import ScaleOption, SkipBadOption
from munjang.cli.options import JsonOption, LanguageOption, ModelOption, chosen_pooling, examples, new_app, report_language
from munjang.cli.show import emit, print_facts, print_table
from munjang.errors import UsageError

if TYPE_CHECKING:
    from munjang.train.adapt.run import Adaptation

app = new_app()


@app.command(
    epilog=examples(
        "munjang adapt bills.txt --method tsdae --dev dev.tsv -o adapted",
        "munjang adapt bills.tsv --text-column title --text-column text --sentences --method mlm --extend-vocabulary 2000 -o adapted",
        "munjang adapt bills.txt --method tsdae --dev dev.tsv -o adapted --resume",
    )
)
def adapt(
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", help="Texts of the domain: txt, CSV, TSV, JSON lines or Parquet.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="Where the adapted model goes.")],
    model: ModelOption = None,
    method: Annotated[
        Literal["mlm", "tsdae", "simcse"], typer.Option(help="Guess hidden words, write texts from their vectors, or find oneself again.")
    ] = "tsdae",
    text_column: Annotated[list[str] | None, typer.Option("--text-column", help="A column that holds text; say it again for more.")] = None,
    where: Annotated[list[str] | None, typer.Option(metavar="COLUMN=VALUE", help="Only rows with this value; != for all others.")] = None,
    sentences: Annotated[bool, typer.Option("--sentences", help="Cut texts into sentences.")] = False,
    skip_bad: SkipBadOption = False,
    limit: Annotated[int | None, typer.Option(min=1, help="Texts of each file to use, drawn at random.")] = None,
    extend_vocabulary: Annotated[int | None, typer.Option(min=1, help="Add up to so many of the domain's words to the vocabulary.")] = None,
    share: Annotated[float | None, typer.Option(help="Of the pieces that are hidden (mlm, 0.15) or deleted (tsdae, 0.6).")] = None,
    whole_words: Annotated[bool, typer.Option("--whole-words", help="Hide whole words (mlm).")] = False,
    max_length: Annotated[int | None, typer.Option(min=3, help="Cut texts at so many tokens; the model keeps it.")] = None,
    dropout: Annotated[
        float | None, typer.Option(min=0.0, max=0.9, help="Of the model while it learns; without it 0.1 for simcse, else the model's own.")
    ] = None,
    epochs: Annotated[int, typer.Option(min=1, help="Times through the text.")] = 1,
    steps: Annotated[int | None, typer.Option(min=1, help="Stop after so many steps.")] = None,
    batch_size: Annotated[int | None, typer.Option(min=1, help="Texts of a step; without it, the method's own.")] = None,
    learning_rate: Annotated[float | None, typer.Option(help="The highest learning rate; without it, the method's own.")] = None,
    seed: Annotated[int, typer.Option(min=0, max=2**32 - 1, help="For everything that is drawn.")] = 42,
    dev: Annotated[
        list[Path] | None, typer.Option("--dev", help="Scored pairs, pairs or triplets to measure on; the first decides.")
    ] = None,
    scale: ScaleOption = None,
    evaluate_every: Annotated[int | None, typer.Option(min=1, help="Measure every so many steps and keep the best weights.")] = None,
    checkpoint_every: Annotated[int, typer.Option(min=1, help="Steps between checkpoints.")] = 500,
    resume: Annotated[bool, typer.Option("--resume", help="Go on where an interrupted run stopped.")] = False,
    language: LanguageOption = None,
    as_json: JsonOption = False,
) -> None:
    """Make a model at home in a domain, from plain text alone.

    What comes out is an ordinary model folder: a recipe can go on from it with labelled data. With --dev it prints scores before and after.
    """
    from munjang.train import missing_extra

    try:
        from munjang.train.adapt.run import AdaptPlan, adapt_model
        from munjang.train.examples import DataSource
        from munjang.train.progress import Live
    except ImportError as error:
        raise missing_extra(error) from error
    settings = _settings(method, share=share, whole_words=whole_words)
    kind: Literal["plain", "sentences"] = "sentences" if sentences else "plain"
    columns, conditions = tuple(text_column or ()), tuple(where or ())
    plan = AdaptPlan(
        files=tuple(
            DataSource(path=str(file), kind=kind, texts=columns, skip_bad=skip_bad, limit=limit, where=conditions) for file in files
        ),
        output=str(output),
        model=model,
        pooling=chosen_pooling(),
        method=method,
        settings=settings,
        extend_vocabulary=extend_vocabulary,
        max_length=max_length,
        dropout=dropout,
        epochs=epochs,
        steps=steps,
        batch_size=batch_size,
        learning_rate=learning_rate,
        seed=seed,
        checkpoint_every=checkpoint_every,
        evaluate_every=evaluate_every,
        dev=tuple(DataSource(path=str(file), label_range=scale) for file in dev or ()),
    )
    with Live() as live:
        made = adapt_model(plan, resume=resume, progress=live, language=report_language(language))
    if made.result.is_first:
        _show(made, as_json=as_json)


def _settings(method: str, *, share: float | None, whole_words: bool) -> dict[str, object]:
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
