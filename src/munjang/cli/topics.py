"""`munjang topics`: a file of texts → its topics, saved; and what can be asked of saved topics.

`munjang topics FILE` is `munjang topics fit FILE`: a first word that is no sub-command is a file.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import numpy as np
import typer

from munjang.analyze.topics.assign import assign_topics, find_topics
from munjang.analyze.topics.describe import topics_over_time, topics_per_class
from munjang.analyze.topics.edit import merge_topics, reduce_topics, rename_topic, set_outliers, split_topic, update_topics
from munjang.analyze.topics.fitting import fit_topics
from munjang.analyze.topics.model import TopicModel
from munjang.analyze.topics.saving import load_topics, save_topics
from munjang.analyze.topics.streaming import fit_topics_stream
from munjang.bulk.output import is_output
from munjang.cli.collection import load_beside, read_collection
from munjang.cli.group import DefaultCommandGroup
from munjang.cli.library_files import COMPUTES
from munjang.cli.load_model import load_encoder
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
from munjang.cli.row_files import PAGES, TextRow, beside, check_rows_output, write_rows
from munjang.cli.show import emit, print_facts, print_table
from munjang.cli.text_analysis import TextAnalysis
from munjang.cli.topics_of_folder import fit_folder, show_assigned_folder
from munjang.cli.topics_show import show_model, show_topic, write_report
from munjang.errors import InputError, UsageError
from munjang.report.words import Word, say
from munjang.text.records import describe_missing_column
from munjang.types import Compute, Encoder

if TYPE_CHECKING:
    from munjang.analyze.topics.describe import Slices
    from munjang.types import Vectors
    from munjang.wording import Language

FolderArgument: TypeAlias = Annotated[Path, typer.Argument(metavar="MODEL", help="The folder of a topic model.")]
VectorsOption: TypeAlias = Annotated[
    Path | None, typer.Option("--vectors", help="A .npy file with one vector per row. Default: encode the texts.")
]
ElsewhereOption: TypeAlias = Annotated[
    Path | None, typer.Option("--output", "-o", help="Save to this folder. Default: the model's own folder.")
]

app = HouseTyper(cls=DefaultCommandGroup, add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False, no_args_is_help=True)


@app.callback(epilog=examples("munjang topics news.csv -o model/ --html topics.html", "munjang topics assign model/ more.csv"))
def topics() -> None:
    """Find the topics of a collection, and query a saved topic model.

    `munjang topics FILE` is short for `munjang topics fit FILE`.
    """


@app.command(
    epilog=examples(
        "munjang topics fit news.csv -o model/ --html topics.html",
        "munjang topics news.csv --topics 20 --time-column date",
        "munjang topics news.csv --seed-words 선거,투표 --seed-words 세금,예산",
    )
)
def fit(
    file: TextsArgument,
    *,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Save the topics to this folder.")] = None,
    options: Annotated[Chosen, Takes(fit_topics)],
    folder_options: Annotated[Chosen, Takes(fit_topics_stream)],
    time_column: Annotated[str | None, typer.Option(help="The column with a date, a year or a number.")] = None,
    class_column: Annotated[str | None, typer.Option(help="The column with each text's class.")] = None,
    html: Annotated[Path | None, typer.Option(help="Write a report to this file.")] = None,
    language: LanguageOption = None,
    vectors: VectorsOption = None,
    analysis: TextAnalysis,
    columns: Columns,
    chosen_model: ModelChoice,
    as_json: JsonOption = False,
) -> None:
    """Find the topics of a collection and save them.

    A folder written by `munjang bulk --keep-text` may be larger than memory: topics are found in a sample and counted in all of it.
    """
    check_rows_output(html, suffixes=PAGES)
    if is_output(file):
        if time_column or class_column or vectors:
            raise UsageError(f"{file}: is a folder of munjang bulk, which goes without --time-column, --class-column and --vectors")
        found = fit_folder(file, options, **folder_options, by=analysis.tagger(), chosen_model=chosen_model)
        _keep(found, file, output, html, language, as_json=as_json)
        return
    read = read_collection(file, columns)
    rows = read.rows
    times = None if time_column is None else column_values(rows, time_column, file)
    classes = None if class_column is None else column_values(rows, class_column, file)
    ready = None if vectors is None else read_vectors(vectors)
    encoder = load_beside(read, chosen_model.model, compute=chosen_model.compute) if ready is None or options["labels"] else None
    found = fit_topics([row.text for row in rows], encoder, **options, vectors=ready, by=analysis.tagger(read))
    own = read.settings.model if encoder is not None and read.settings is not None else ""
    found = replace(found, encoder_name=chosen_model.model or own)
    over_time = None if times is None else topics_over_time(found, times)
    per_class = None if classes is None else topics_per_class(found, classes)
    _keep(found, file, output, html, language, over_time, per_class, as_json=as_json)


def _keep(
    found: TopicModel,
    file: str,
    output: Path | None,
    html: Path | None,
    language: Language | None,
    over_time: Slices | None = None,
    per_class: Slices | None = None,
    *,
    as_json: bool,
) -> None:
    """Save and show what was found, and write its page."""
    if output is not None:
        save_topics(found, output)
    if html is not None:
        spoken = report_language(language)
        title = say(Word.TOPICS_OF, spoken, file=Path(file).name)
        write_report(found, html, title, over_time=over_time, per_class=per_class, language=spoken)
    show_model(
        found,
        as_json=as_json,
        saved=None if output is None else str(output),
        **({"over_time": over_time.facts()} if as_json and over_time else {}),
        **({"per_class": per_class.facts()} if as_json and per_class else {}),
    )


@app.command(epilog=examples("munjang topics show model/", "munjang topics show model/ 3 --json"))
def show(
    folder: FolderArgument,
    topic: Annotated[int | None, typer.Argument(metavar="TOPIC", help="The number of one topic.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Show saved topics, or one of them with its typical documents."""
    model = load_topics(folder)
    if topic is None:
        show_model(model, as_json=as_json)
    else:
        show_topic(model, model.topic(topic), as_json=as_json)


@app.command(epilog=examples("munjang topics assign model/ more.csv -o assigned.csv"))
def assign(
    folder: FolderArgument,
    file: TextsArgument,
    *,
    output: OutputOption = None,
    vectors: VectorsOption = None,
    columns: Columns,
    chosen_model: ModelChoice,
    as_json: JsonOption = False,
) -> None:
    """Assign each text of a file to a saved topic; −1 is none.

    -o writes the rows with the topic as .csv, .tsv or .jsonl.
    """
    check_rows_output(output)
    found = load_topics(folder)
    if is_output(file):
        show_assigned_folder(found, file, output, as_json=as_json)
        return
    rows = read_collection(file, columns).rows
    texts = [row.text for row in rows]
    ready = None if vectors is None else read_vectors(vectors)
    encoder = None if ready is not None else own_encoder(found, chosen_model.model, chosen_model.compute)
    answer = assign_topics(found, texts, vectors=ready, encoder=encoder)
    names = {topic.id: topic.name for topic in found.topics}
    said = [
        {"topic": int(label), "name": names.get(int(label), ""), "score": round(float(score), 6)}
        for label, score in zip(answer.labels, answer.scores, strict=True)
    ]
    if output is not None:
        write_rows(output, beside(rows, said))
    if as_json:
        emit([{**row.facts(), **each} for row, each in zip(rows, said, strict=True)])
        return
    if output is None:
        lines = ([row.name(), str(each["topic"]), str(each["name"]), row.text[:80]] for row, each in zip(rows, said, strict=True))
        print_table(["row", "topic", "name", "text"], lines, right=["topic"], empty="no texts to put into topics")
    none = int((answer.labels < 0).sum())
    print_facts([("texts", f"{len(rows):,}"), ("without a topic", f"{none:,}"), *([("written", str(output))] if output else [])])


@app.command(epilog=examples('munjang topics find model/ "public transport"'))
def find(
    folder: FolderArgument,
    query: Annotated[str, typer.Argument(metavar="QUERY", help="What to look for.")],
    *,
    options: Annotated[Chosen, Takes(find_topics)],
    chosen_model: ModelChoice,
    as_json: JsonOption = False,
) -> None:
    """Find the saved topics closest to a query."""
    if not query.strip():
        raise UsageError("the query is empty, expected something to look for")
    found = load_topics(folder)
    encoder = own_encoder(found, chosen_model.model, chosen_model.compute)
    best = [(found.topic(id), score) for id, score in find_topics(found, encoder.encode([query]), **options)]
    if as_json:
        emit([{"id": topic.id, "name": topic.name, "score": round(score, 6), "size": topic.size} for topic, score in best])
    else:
        print_table(
            ["score", "topic", "name"],
            ([f"{score:.3f}", str(t.id), t.name] for t, score in best),
            right=["score", "topic"],
            empty="the model has no topics",
        )


@app.command(epilog=examples("munjang topics report model/ -o topics.html --language ko"))
def report(
    folder: FolderArgument,
    output: Annotated[Path, typer.Option("--output", "-o", help="The .html file to write.")],
    title: Annotated[str | None, typer.Option(help="The page's title. Default: Topics, in the report's language.")] = None,
    language: LanguageOption = None,
    as_json: JsonOption = False,
) -> None:
    """Write the HTML report of saved topics: map, words, typical documents, hierarchy."""
    model = load_topics(folder)
    spoken = report_language(language)
    write_report(model, output, title or say(Word.TOPICS, spoken), language=spoken)
    emit({"output": str(output), "topics": len(model.topics)}) if as_json else print(output)


def read_vectors(path: Path) -> Vectors:
    """Read a .npy file of numbers; anything that would run code is refused."""

    try:
        rows = np.load(path, allow_pickle=False, mmap_mode="r")
    except (ValueError, EOFError) as error:
        raise InputError(f"{path}: is no .npy file of numbers ({type(error).__name__})\n  write one with munjang encode -o") from None
    if rows.ndim != 2 or rows.dtype.kind not in "fiu":
        raise InputError(f"{path}: holds {rows.dtype} of shape {rows.shape}, expected a table of numbers, one row for each text")
    return np.asarray(rows, dtype=np.float32)


def own_encoder(model: TopicModel, name: str | None, compute: Compute | None) -> Encoder:
    """Load the encoder that a topic model was made with, computing as it did then, or the one named; another one is refused."""
    if not model.encoder and name is None:
        raise UsageError("the topics were found on vectors from a file\n  name their model with --model")
    encoder = load_encoder(name or model.encoder_name or None, compute=compute, made=model.encoder or None)
    if not model.encoder or encoder.fingerprint == model.encoder:
        return encoder
    then = next((each for each in COMPUTES if encoder.fingerprint_as(each) == model.encoder), None)
    if then is not None:
        raise UsageError(
            f"the topics were found with {encoder.name} and compute {then}, found compute {encoder.compute}\n"
            "  leave --compute out, or fit the topics again"
        )
    raise UsageError(
        f"the topics were found with another model than {encoder.name} ({encoder.fingerprint[:12]}): {model.encoder[:12]}\n"
        "  name that model with --model, and its --pooling if one was given, or fit the topics again"
    )


def column_values(rows: Sequence[TextRow], column: str, file: str) -> list[Any]:
    """Return a column of all rows."""
    for row in rows:
        if column not in row.values:
            raise describe_missing_column(column, row.values, where=f"{file} row {row.number}")
    return [row.values[column] for row in rows]


@app.command(epilog=examples("munjang topics merge model/ 3 7", "munjang topics merge model/ --to 10 -o fewer/"))
def merge(
    folder: FolderArgument,
    topics: Annotated[list[int] | None, typer.Argument(metavar="TOPIC…", help="The numbers of the topics to merge.")] = None,
    to: Annotated[int | None, typer.Option(min=1, help="Merge the closest topics until there are this many.")] = None,
    output: ElsewhereOption = None,
    as_json: JsonOption = False,
) -> None:
    """Merge saved topics, or the closest ones until there are few enough."""
    if bool(topics) == (to is not None):
        raise UsageError("merge takes the numbers of topics, or --to: expected one of them")
    model = load_topics(folder)
    changed = merge_topics(model, [topics]) if topics else reduce_topics(model, to or 1)
    _save(changed, folder, output, as_json)


@app.command(epilog=examples("munjang topics split model/ 0 --parts 3"))
def split(
    folder: FolderArgument,
    topic: Annotated[int, typer.Argument(metavar="TOPIC", help="The number of the topic to split.")],
    *,
    options: Annotated[Chosen, Takes(split_topic)],
    output: ElsewhereOption = None,
    as_json: JsonOption = False,
) -> None:
    """Split a saved topic."""
    _save(split_topic(load_topics(folder), topic, **options), folder, output, as_json)


@app.command(epilog=examples("munjang topics outliers model/ 0"))
def outliers(
    folder: FolderArgument,
    share: Annotated[float, typer.Argument(metavar="SHARE", min=0, max=1, help="The largest fraction of documents without a topic.")],
    output: ElsewhereOption = None,
    as_json: JsonOption = False,
) -> None:
    """Change the fraction of documents without a topic; 0 gives every document one."""
    _save(set_outliers(load_topics(folder), share), folder, output, as_json)


@app.command(epilog=examples('munjang topics rename model/ 0 "elections"'))
def rename(
    folder: FolderArgument,
    topic: Annotated[int, typer.Argument(metavar="TOPIC", help="The topic's number.")],
    name: Annotated[str, typer.Argument(metavar="NAME", help="The new name.")],
    output: ElsewhereOption = None,
    as_json: JsonOption = False,
) -> None:
    """Rename a saved topic."""
    _save(rename_topic(load_topics(folder), topic, name), folder, output, as_json)


@app.command(epilog=examples("munjang topics update model/ more.csv"))
def update(
    folder: FolderArgument,
    file: TextsArgument,
    *,
    output: ElsewhereOption = None,
    vectors: VectorsOption = None,
    columns: Columns,
    chosen_model: ModelChoice,
    as_json: JsonOption = False,
) -> None:
    """Add documents to saved topics; those that fit none form new topics."""
    found = load_topics(folder)
    read = read_collection(file, columns)
    ready = None if vectors is None else read_vectors(vectors)
    encoder = None if ready is not None else own_encoder(found, chosen_model.model, chosen_model.compute)
    _save(update_topics(found, read.texts, vectors=ready, encoder=encoder), folder, output, as_json)


def _save(model: TopicModel, folder: Path, output: Path | None, as_json: bool) -> None:
    save_topics(model, output or folder)
    show_model(model, as_json=as_json, saved=str(output or folder))
