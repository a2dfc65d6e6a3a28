"""`munjang classify`: texts → labels, by the labels' names alone or by a classifier that was trained on examples.

`munjang classify FILE --labels …` is `munjang classify label FILE --labels …`: a first word that is no sub-command is a file.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, TypeAlias

import typer

from munjang.analyze.classify.apply import apply_classifier
from munjang.analyze.classify.fitting import fit_classifier
from munjang.analyze.classify.zero_shot import classify_by_entailment, classify_texts
from munjang.cli.group import DefaultCommandGroup
from munjang.cli.options import (
    Chosen,
    Columns,
    HouseTyper,
    JsonOption,
    LanguageOption,
    ModelChoice,
    OutputOption,
    Takes,
    TextsArgument,
    examples,
    report_language,
)
from munjang.errors import UsageError

if TYPE_CHECKING:
    from munjang.analyze.classify.classifier import TextClassifier
    from munjang.types import Compute, Encoder

FolderArgument: TypeAlias = Annotated[Path, typer.Argument(metavar="CLASSIFIER", help="The folder of a classifier.")]
LabelColumnOption: TypeAlias = Annotated[str | None, typer.Option("--label-column", help="The column with the label.")]
WriteOption: TypeAlias = Annotated[
    str | None, typer.Option("--write", metavar="KEY", help="Write the label into the library's metadata under this key.")
]
SeparatorOption: TypeAlias = Annotated[str, typer.Option("--separator", help="The separator between several labels of a text.")]
SEPARATOR = ";"
SkipUnlabelledOption: TypeAlias = Annotated[bool, typer.Option("--skip-unlabelled", help="Leave out rows without a text or a label.")]
HtmlOption: TypeAlias = Annotated[Path | None, typer.Option("--html", help="Write a report to this file.")]


class LabelByDefault(DefaultCommandGroup):
    """Takes a first word that is no sub-command for a file to label."""

    default: ClassVar[str] = "label"


app = HouseTyper(cls=LabelByDefault, add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False, no_args_is_help=True)


@app.callback(
    epilog=examples(
        'munjang classify news.csv --labels "경제,스포츠,정치" -o labelled.csv',
        "munjang classify fit examples.csv -o intents/",
        "munjang classify apply intents/ new.csv --precision 0.95 -o labelled.csv",
    )
)
def classify() -> None:
    """Label texts by the names of labels, or by examples.

    `munjang classify FILE --labels …` is short for `munjang classify label FILE --labels …`.
    """


@app.command(
    epilog=examples(
        'munjang classify label news.csv --labels "경제,스포츠,정치"',
        "munjang classify label news.csv --labels labels.csv -o labelled.csv",
        'munjang classify label library.db --labels "경제,스포츠" --write kind',
    )
)
def label(
    file: TextsArgument,
    *,
    labels: Annotated[
        str, typer.Option("--labels", help="Names with commas between them, or a file: a name, a description and words in each row.")
    ],
    output: OutputOption = None,
    write: WriteOption = None,
    options: Annotated[Chosen, Takes(classify_texts)],
    scorer: Annotated[
        str | None, typer.Option("--scorer", help="A cross-encoder trained on natural-language inference that judges every label.")
    ] = None,
    judging: Annotated[Chosen, Takes(classify_by_entailment, without=("multi",))],
    columns: Columns,
    chosen_model: ModelChoice,
    as_json: JsonOption = False,
) -> None:
    """Label texts without any example.

    A label may be described: a file with the columns name, description and words (with commas between them). -o writes the rows with their
    labels as .csv, .tsv or .jsonl; a run that was interrupted goes on where it stopped.
    """
    from munjang.cli.classify_run import label_with_names, label_with_scorer
    from munjang.cli.label_files import read_labels
    from munjang.cli.row_files import check_rows_output

    check_rows_output(output)
    named = read_labels(labels)
    if scorer is not None:
        label_with_scorer(file, named, scorer, columns, judging | {"multi": options["multi"]}, output=output, write=write, as_json=as_json)
    else:
        label_with_names(file, named, columns, chosen_model, options, output=output, write=write, as_json=as_json)


@app.command(
    epilog=examples(
        "munjang classify fit examples.csv -o intents/",
        "munjang classify fit examples.csv -o intents/ --label-column intent --curve 1,2,4,8 --html report.html",
        "munjang classify fit examples.csv -o intents/ --tune",
    )
)
def fit(
    file: TextsArgument,
    *,
    output: Annotated[Path, typer.Option("--output", "-o", help="Save the classifier to this folder.")],
    label_column: LabelColumnOption = None,
    options: Annotated[Chosen, Takes(fit_classifier)],
    tune: Annotated[bool, typer.Option("--tune", help="Also tune the model; keep it if held-out examples are labelled better.")] = False,
    separator: SeparatorOption = SEPARATOR,
    skip_unlabelled: SkipUnlabelledOption = False,
    curve: Annotated[
        str | None, typer.Option("--curve", help="Measure the quality with this many examples per label, such as 1,2,4,8.")
    ] = None,
    doubtful: Annotated[Path | None, typer.Option("--doubtful", help="Write the rows whose labels are doubtful to this file.")] = None,
    html: HtmlOption = None,
    language: LanguageOption = None,
    columns: Columns,
    chosen_model: ModelChoice,
    as_json: JsonOption = False,
) -> None:
    """Train a classifier on examples and save it; in seconds, on the vectors of a frozen model.

    Says how good it is on examples that were held out, and which of their labels are doubtful.
    """
    from munjang.cli.classify_fit import fit_and_save

    fit_and_save(
        file,
        output,
        columns,
        chosen_model,
        options,
        label_column=label_column,
        tune=tune,
        separator=separator,
        skip_unlabelled=skip_unlabelled,
        curve=parse_sizes(curve),
        doubtful=doubtful,
        html=check_html(html),
        language=report_language(language),
        as_json=as_json,
    )


@app.command(
    epilog=examples("munjang classify apply intents/ new.csv -o labelled.csv", "munjang classify apply intents/ new.csv --precision 0.95")
)
def apply(
    folder: FolderArgument,
    file: TextsArgument,
    *,
    output: OutputOption = None,
    write: WriteOption = None,
    options: Annotated[Chosen, Takes(apply_classifier)],
    columns: Columns,
    chosen_model: ModelChoice,
    as_json: JsonOption = False,
) -> None:
    """Label texts with a saved classifier.

    -o writes the rows with label, probability and runner-up as .csv, .tsv or .jsonl, in bounded memory; a run that was interrupted goes on
    where it stopped. With --precision, texts that are not sure enough get no label.
    """
    from munjang.analyze.classify.saving import load_classifier
    from munjang.cli.classify_run import label_with_classifier
    from munjang.cli.row_files import check_rows_output

    check_rows_output(output)
    made = load_classifier(folder)
    label_with_classifier(file, made, columns, chosen_model, options, output=output, write=write, as_json=as_json)


@app.command(
    epilog=examples(
        "munjang classify evaluate intents/ test.csv",
        "munjang classify evaluate intents/ test.csv --compare other/ --html report.html",
    )
)
def evaluate(
    folder: FolderArgument,
    file: TextsArgument,
    *,
    label_column: LabelColumnOption = None,
    compare: Annotated[Path | None, typer.Option("--compare", help="Another classifier, compared on the same texts.")] = None,
    options: Annotated[Chosen, Takes(apply_classifier)],
    separator: SeparatorOption = SEPARATOR,
    skip_unlabelled: SkipUnlabelledOption = False,
    html: HtmlOption = None,
    language: LanguageOption = None,
    columns: Columns,
    chosen_model: ModelChoice,
    as_json: JsonOption = False,
) -> None:
    """Measure a saved classifier on labelled texts: accuracy, macro-F1, confusion, calibration, with bootstrap intervals."""
    from munjang.cli.classify_evaluate import evaluate_folder

    evaluate_folder(
        folder,
        file,
        columns,
        chosen_model,
        options,
        label_column=label_column,
        compare=compare,
        separator=separator,
        skip_unlabelled=skip_unlabelled,
        html=check_html(html),
        language=report_language(language),
        as_json=as_json,
    )


def parse_sizes(curve: str | None) -> tuple[int, ...]:
    """Return the sizes of a learning curve.

    >>> parse_sizes("1,2,8")
    (1, 2, 8)
    """
    if curve is None:
        return ()
    try:
        sizes = tuple(int(part) for part in curve.split(",") if part.strip())
    except ValueError:
        sizes = ()
    if not sizes or min(sizes) < 1:
        raise UsageError(f"--curve {curve!r}: expected numbers of examples with commas between them, such as 1,2,4,8")
    return sizes


def check_html(html: Path | None) -> Path | None:
    """Return the name of a report, or refuse one that is no name of an HTML file."""
    if html is not None and html.suffix.lower() not in (".html", ".htm"):
        raise UsageError(f"{html}: expected a name that ends in .html")
    return html


def own_encoder(made: TextClassifier, name: str | None, compute: Compute | None) -> Encoder:
    """Load the encoder that a classifier was made with, computing as it did then, or the one named; another one is refused."""
    from munjang.analyze.classify.apply import check_same_encoder
    from munjang.cli.load_model import load_encoder

    if not made.encoder and name is None:
        raise UsageError("the classifier was made of vectors, not of a model's texts\n  name their model with --model")
    encoder: Any = load_encoder(name or made.encoder_name or None, compute=compute, made=made.encoder or None)
    check_same_encoder(made, encoder)
    return encoder  # type: ignore[no-any-return]
