"""`munjang evaluate mse`: sentence pairs, a teacher and a student → how far the student's vectors are from the teacher's."""

from __future__ import annotations

from typing import Annotated

import typer

from munjang.cli.data_options import (
    ColumnOption,
    FileArgument,
    LayoutOption,
    SkipBadOption,
    SplitOption,
    TranslationsArgument,
    facts_of,
    read_options,
    read_translations,
)
from munjang.cli.options import ComputeOption, JsonOption, ModelOption, OutputOption, examples
from munjang.cli.scores import check_output, deliver
from munjang.cli.show import print_facts
from munjang.errors import UsageError


def add_to(app: typer.Typer) -> None:
    """Register the command."""
    app.command(
        epilog=examples(
            "munjang evaluate mse pairs.tsv --teacher big-model --model my-student",
            "munjang evaluate mse news.en news.ko --teacher english-model --model my-student",
        )
    )(mse)


def mse(
    file: FileArgument,
    teacher: Annotated[str, typer.Option(help="The teacher's name or folder.")],
    other: TranslationsArgument = None,
    model: ModelOption = None,
    layout: LayoutOption = None,
    column: ColumnOption = None,
    split: SplitOption = "test",
    skip_bad: SkipBadOption = False,
    compute: ComputeOption = "float32",
    output: OutputOption = None,
    as_json: JsonOption = False,
) -> None:
    """Measure how closely a student reproduces a teacher's vectors.

    The mean squared error between the teacher's vector of the first sentence and the student's vectors of the first and of the second
    (its translation). 0 is perfect; negative_mse is −100 times the second, as sentence-transformers writes it.
    """
    from munjang.cli.load_model import load_encoder, load_other_model
    from munjang.evaluate.mse import evaluate_mse

    check_output(output)
    data = read_translations(file, other, split=split, options=read_options(layout=layout, columns=column, skip_bad=skip_bad))
    known, learnt = load_other_model(teacher, compute=compute).with_prompt(progress=True), load_encoder(model, compute=compute)
    if known.dimension != learnt.dimension:
        raise UsageError(
            f"{known.name} has {known.dimension} dimensions and {learnt.name} {learnt.dimension}, expected the same\n"
            "  only a student that learnt its teacher's own vectors can be compared with it"
        )
    found = evaluate_mse(known, learnt, data.rows)
    deliver({**found.to_json(), "teacher": known.name, "model": learnt.name, **facts_of(data)}, output=output, as_json=as_json)
    if not as_json:
        rows = (("source", found.source_mse), ("target", found.target_mse), ("negative_mse", found.negative_mse))
        print_facts([("pairs", f"{found.n:,}"), *((name, f"{value:.6g}") for name, value in rows)])
