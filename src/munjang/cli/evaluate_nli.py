"""`munjang evaluate nli`: labelled pairs, and a cross-encoder or a file of predicted labels → accuracy and the confusion table."""

from __future__ import annotations

from typing import Annotated

import typer

from munjang.cli.data_options import (
    ColumnOption,
    FileArgument,
    LayoutOption,
    ResamplesOption,
    SkipBadOption,
    SplitOption,
    facts_of,
    located,
    read_options,
    tell,
)
from munjang.cli.options import ComputeOption, CrossModelOption, JsonOption, OutputOption, examples
from munjang.cli.scores import check_output, deliver, print_nli
from munjang.errors import InputError, UsageError
from munjang.wording import count

NEEDS_CLASSIFIER = (
    "a sentence encoder gives vectors, not labels: nli needs a cross-encoder with a label for each class (--model)\n"
    '  train one with kind = "cross" in a recipe (munjang train), or score labels predicted elsewhere with --predictions FILE'
)


def add_to(app: typer.Typer) -> None:
    """Register the command."""
    app.command(
        epilog=examples(
            "munjang evaluate nli dev.tsv --model my-cross-encoder",
            "munjang evaluate nli dev.tsv --model theirs --labels contradiction,entailment,neutral",
            "munjang evaluate nli dev.tsv --predictions predicted.txt",
        )
    )(nli)


def nli(
    file: FileArgument,
    predictions: Annotated[str | None, typer.Option(help="Labels predicted elsewhere, one per line, in the file's order.")] = None,
    model: CrossModelOption = None,
    labels: Annotated[
        str | None, typer.Option(metavar="A,B,C", help="The model's labels in order, if its folder does not name them.")
    ] = None,
    layout: LayoutOption = None,
    column: ColumnOption = None,
    split: SplitOption = "test",
    skip_bad: SkipBadOption = False,
    resamples: ResamplesOption = 10_000,
    compute: ComputeOption = "float32",
    output: OutputOption = None,
    as_json: JsonOption = False,
) -> None:
    """Score predicted inference labels.

    Reports accuracy, macro F1 and the confusion matrix. A cross-encoder predicts them, or a file holds them.
    Rows without a gold label ("-") are left out and have no line in the predictions.
    """
    from munjang.cli.load_model import load_scorer
    from munjang.data.read import read_labelled_pairs
    from munjang.evaluate.nli import evaluate_nli, score_nli

    if (predictions is None) == (model is None):
        raise UsageError(NEEDS_CLASSIFIER if model is None else "--model and --predictions together, expected one of them")
    check_output(output)
    with located(file, split=split) as path:
        data = read_labelled_pairs(path, read_options(layout=layout, columns=column, skip_bad=skip_bad))
    tell(data)
    named: dict[str, str] = {}
    if predictions is not None:
        predicted = _predicted(predictions, len(data), data.source)
        found = score_nli(predicted, [row.label for row in data.rows], resamples=resamples)
    else:
        scorer = load_scorer(model, compute=compute)
        if scorer is None:
            raise UsageError(NEEDS_CLASSIFIER)
        named = {"model": scorer.name}
        names = tuple(name.strip() for name in labels.split(",")) if labels else scorer.model.labels
        found = evaluate_nli(scorer, data.rows, labels=names, resamples=resamples)
    deliver({**found.to_json(), **named, **facts_of(data)}, output=output, as_json=as_json)
    if not as_json:
        print_nli(found)


def _predicted(file: str, rows: int, source: str) -> list[str]:
    from munjang.data.files import read_text

    predicted = [line.strip() for line in read_text(file).strip().splitlines()]
    if len(predicted) != rows or not predicted:
        raise InputError(f"{file}: {count(len(predicted), 'prediction')}, expected {rows:,}, one for each labelled row of {source}")
    return predicted
