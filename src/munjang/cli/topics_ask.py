"""`munjang topics show|assign|find|report`: questions to saved topics."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from munjang.cli.options import (
    UTF8,
    EncodingOption,
    FormatOption,
    JsonOption,
    LanguageOption,
    LibraryComputeOption,
    ModelOption,
    NoQuotingOption,
    OutputOption,
    TextColumnOption,
    TextsArgument,
    examples,
    report_language,
)
from munjang.cli.row_files import Columns
from munjang.cli.topics_files import FolderArgument, IdColumnOption, VectorsOption
from munjang.errors import UsageError


def show(
    folder: FolderArgument,
    topic: Annotated[int | None, typer.Argument(metavar="TOPIC", help="One topic, by its number.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Show saved topics, or one of them with its typical documents."""
    from munjang.analyze.topics.saving import load_topics
    from munjang.cli.topics_show import show_model, show_topic

    model = load_topics(folder)
    if topic is None:
        show_model(model, as_json=as_json)
    else:
        show_topic(model, model.topic(topic), as_json=as_json)


def assign(
    folder: FolderArgument,
    file: TextsArgument,
    output: OutputOption = None,
    vectors: VectorsOption = None,
    model: ModelOption = None,
    text_column: TextColumnOption = None,
    id_column: IdColumnOption = None,
    format: FormatOption = None,
    encoding: EncodingOption = UTF8,
    no_quoting: NoQuotingOption = False,
    compute: LibraryComputeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Say which saved topic each text of a file belongs to; −1 is none.

    -o writes the rows with the topic as .csv, .tsv or .jsonl.
    """
    from munjang.analyze.topics.ask import assign_topics
    from munjang.analyze.topics.saving import load_topics
    from munjang.cli.collection import read_collection
    from munjang.cli.row_files import beside, check_rows_output, write_rows
    from munjang.cli.show import emit, print_facts, print_table
    from munjang.cli.topics_files import own_encoder, read_vectors

    check_rows_output(output)
    found = load_topics(folder)
    rows = read_collection(file, Columns(text_column, id_column, format, encoding, no_quoting)).rows
    texts = [row.text for row in rows]
    ready = None if vectors is None else read_vectors(vectors)
    encoder = None if ready is not None else own_encoder(found, model, compute)
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


def find(
    folder: FolderArgument,
    query: Annotated[str, typer.Argument(metavar="QUERY", help="What to look for.")],
    k: Annotated[int, typer.Option("--top", "-k", min=1, help="How many topics.")] = 5,
    model: ModelOption = None,
    compute: LibraryComputeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Find the saved topics that are nearest to a query."""
    from munjang.analyze.topics.ask import find_topics
    from munjang.analyze.topics.saving import load_topics
    from munjang.cli.show import emit, print_table
    from munjang.cli.topics_files import own_encoder

    if not query.strip():
        raise UsageError("the query is empty, expected something to look for")
    found = load_topics(folder)
    encoder = own_encoder(found, model, compute)
    best = [(found.topic(id), score) for id, score in find_topics(found, encoder.encode([query]), k=k)]
    if as_json:
        emit([{"id": topic.id, "name": topic.name, "score": round(score, 6), "size": topic.size} for topic, score in best])
    else:
        print_table(
            ["score", "topic", "name"],
            ([f"{score:.3f}", str(t.id), t.name] for t, score in best),
            right=["score", "topic"],
            empty="the model has no topics",
        )


def report(
    folder: FolderArgument,
    output: Annotated[Path, typer.Option("--output", "-o", help="The .html file to write.")],
    title: Annotated[str | None, typer.Option(help="The page's title; without it, Topics in the report's language.")] = None,
    language: LanguageOption = None,
    as_json: JsonOption = False,
) -> None:
    """Write the HTML report of saved topics: map, words, typical documents, hierarchy."""
    from munjang.analyze.topics.saving import load_topics
    from munjang.cli.show import emit
    from munjang.cli.topics_show import write_report
    from munjang.report.words import Word, say

    model = load_topics(folder)
    spoken = report_language(language)
    write_report(model, output, title or say(Word.TOPICS, spoken), language=spoken)
    emit({"output": str(output), "topics": len(model.topics)}) if as_json else print(output)


def register(app: typer.Typer) -> None:
    """Add these commands to `munjang topics`."""
    app.command(epilog=examples("munjang topics show model/", "munjang topics show model/ 3 --json"))(show)
    app.command(epilog=examples("munjang topics assign model/ more.csv -o assigned.csv"))(assign)
    app.command(epilog=examples('munjang topics find model/ "public transport"'))(find)
    app.command(epilog=examples("munjang topics report model/ -o topics.html --language ko"))(report)
