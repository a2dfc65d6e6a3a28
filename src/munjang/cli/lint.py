"""`munjang lint`: one data file or two (train, test) → what in them would spoil a training or make a score untrue; exit 1 for errors."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Annotated

import typer

from munjang.cli.data_options import (
    ColumnOption,
    FileArgument,
    LabelOption,
    LayoutOption,
    ScaleOption,
    SplitOption,
    locate_file,
    read_options,
)
from munjang.cli.options import JsonOption, OutputOption, examples, new_app
from munjang.cli.scores import check_output, deliver
from munjang.cli.show import note, one_line
from munjang.errors import UsageError
from munjang.wording import count

if TYPE_CHECKING:
    from munjang.evaluate.lint import LintReport

ERRORS_FOUND = 1

app = new_app()


@app.command(
    epilog=examples(
        "munjang lint train.tsv",
        "munjang lint train.tsv test.tsv --json",
        "munjang lint mine.csv test.tsv --column a=first --column b=second --test-layout korsts",
    )
)
def lint(
    file: FileArgument,
    other: Annotated[str | None, typer.Argument(metavar="[FILE]", help="The test file, if the first file is for training.")] = None,
    layout: LayoutOption = None,
    column: ColumnOption = None,
    scale: ScaleOption = None,
    label: LabelOption = None,
    split: SplitOption = "train",
    test_layout: Annotated[str | None, typer.Option(help="The layout of the second file, if it differs.")] = None,
    test_column: Annotated[list[str] | None, typer.Option(metavar="ROLE=NAME", help="The role of a column in the second file.")] = None,
    test_scale: Annotated[tuple[float, float] | None, typer.Option(metavar="LOW HIGH", help="The range of its scores.")] = None,
    test_label: Annotated[
        list[str] | None, typer.Option(metavar="LABEL=same|different", help="The meaning of a label in the second file.")
    ] = None,
    output: OutputOption = None,
    as_json: JsonOption = False,
) -> None:
    """Find problems in a data file, or leaks between two.

    Finds labels out of range or inverted, a single label, duplicates, contradictions, and test rows that are in the training file.
    The second file is read like the first, unless a --test option says otherwise.
    The exit code is 1 if there are errors; warnings and remarks leave it at 0.
    """
    from munjang.evaluate.lint import lint_files

    if file == other == "-":
        raise UsageError('"-" can stand for one of the two files, not for both')
    check_output(output)
    options = read_options(layout=layout, columns=column, scale=scale, labels=label)
    apart = any(value is not None for value in (test_layout, test_column, test_scale, test_label))
    of_test = read_options(layout=test_layout, columns=test_column, scale=test_scale, labels=test_label) if apart else None
    if apart and other is None:
        raise UsageError("--test-layout, --test-column, --test-scale and --test-label are for a second file, and there is none")
    with ExitStack() as stack:
        path = stack.enter_context(locate_file(file, split=split))
        second = None if other is None else stack.enter_context(locate_file(other, split="test"))
        report = lint_files(path, second, options=options, other_options=of_test)
    deliver(report.to_json(), output=output, as_json=as_json)
    if not as_json:
        _print(report)
    if report.worst == "error":
        raise typer.Exit(ERRORS_FOUND)


def _print(report: LintReport) -> None:
    for name, layout, rows in zip(report.files, report.layouts, report.rows, strict=True):
        note(one_line(f"{name}: {count(rows, 'row')}; {layout}"))
    if not report.findings:
        print("nothing found")
    for finding in report.findings:
        print(f"{finding.severity}: {one_line(finding.message)} [{finding.check}]")
        for place in finding.examples:
            print(f"    {one_line(place)}")
        if finding.count > len(finding.examples) > 0:
            print(f"    … {finding.count:,} in all")
        print(f"  {finding.advice}")
