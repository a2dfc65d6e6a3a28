"""`munjang lint`: one data file or two (train, test) → what in them would spoil a training or make a score untrue; exit 1 for errors."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Annotated

import typer

from munjang.cli.data_options import ColumnOption, FileArgument, LabelOption, LayoutOption, ScaleOption, SplitOption, located, read_options
from munjang.cli.options import JsonOption, OutputOption, examples, new_app
from munjang.cli.scores import check_output, deliver
from munjang.cli.show import note, one_line
from munjang.errors import UsageError

if TYPE_CHECKING:
    from munjang.evaluate.lint import LintReport

ERRORS_FOUND = 1

app = new_app()


@app.command(epilog=examples("munjang lint train.tsv", "munjang lint train.tsv test.tsv --json"))
def lint(
    file: FileArgument,
    other: Annotated[str | None, typer.Argument(metavar="[FILE]", help="The test file, where the first is for training.")] = None,
    layout: LayoutOption = None,
    column: ColumnOption = None,
    scale: ScaleOption = None,
    label: LabelOption = None,
    split: SplitOption = "train",
    output: OutputOption = None,
    as_json: JsonOption = False,
) -> None:
    """Find what is wrong in a data file, or between a training and a test file.

    Labels out of range or inverted, one label only, duplicates, contradictions, test rows that are in the training file.
    Exit code 1 if there are errors; warnings and remarks leave it at 0.
    """
    from munjang.evaluate.lint import lint_files

    if file == other == "-":
        raise UsageError('"-" can stand for one of the two files, not for both')
    check_output(output)
    options = read_options(layout=layout, columns=column, scale=scale, labels=label)
    with ExitStack() as stack:
        path = stack.enter_context(located(file, split=split))
        second = None if other is None else stack.enter_context(located(other, split="test"))
        report = lint_files(path, second, options=options)
    deliver(report.to_json(), output=output, as_json=as_json)
    if not as_json:
        _print(report)
    if report.worst == "error":
        raise typer.Exit(ERRORS_FOUND)


def _print(report: LintReport) -> None:
    for name, layout, rows in zip(report.files, report.layouts, report.rows, strict=True):
        note(one_line(f"{name}: {rows:,} rows; {layout}"))
    if not report.findings:
        print("nothing found")
    for finding in report.findings:
        print(f"{finding.severity}: {one_line(finding.message)} [{finding.check}]")
        for place in finding.examples:
            print(f"    {one_line(place)}")
        if finding.count > len(finding.examples) > 0:
            print(f"    … {finding.count:,} in all")
        print(f"  {finding.advice}")
