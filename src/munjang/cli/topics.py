"""`munjang topics`: a file of texts → its topics, saved; and what can be asked of saved topics.

`munjang topics FILE` is `munjang topics fit FILE`: a first word that is no sub-command is a file.
"""

from __future__ import annotations

from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from typer.core import TyperGroup

from munjang.cli.options import (
    UTF8,
    EncodingOption,
    FormatOption,
    HouseTyper,
    JsonOption,
    LanguageOption,
    LibraryComputeOption,
    ModelOption,
    NoQuotingOption,
    TextColumnOption,
    TextsArgument,
    examples,
    report_language,
)
from munjang.cli.row_files import Columns
from munjang.cli.topics_files import IdColumnOption, VectorsOption
from munjang.errors import UsageError, shown

HELP = ("--help", "-h")


class FitByDefault(TyperGroup):
    """Takes a first word that is no sub-command for a file to fit."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Put `fit` before the arguments where no sub-command stands."""
        if args and args[0] not in self.commands and args[0] not in HELP:
            near = get_close_matches(args[0], self.commands, n=1, cutoff=0.7)
            if near and not Path(args[0]).exists():
                raise UsageError(f"{shown(args[0])} is neither a sub-command nor a file\n  did you mean {near[0]!r}?")
            args = ["fit", *args]
        return super().parse_args(ctx, args)


app = HouseTyper(cls=FitByDefault, add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False, no_args_is_help=True)


@app.callback(epilog=examples("munjang topics news.csv -o model/ --html topics.html", "munjang topics assign model/ more.csv"))
def topics() -> None:
    """Find what a file of texts is about, and ask saved topics.

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
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Save the topics in this folder.")] = None,
    count: Annotated[int | None, typer.Option("--topics", min=1, help="No more topics than this; else as many as there are.")] = None,
    method: Annotated[Literal["graph", "kmeans", "hdbscan", "contextual"], typer.Option(help="How documents are grouped.")] = "graph",
    reduction: Annotated[Literal["pca", "umap", "none"], typer.Option(help="What comes before the grouping.")] = "pca",
    outliers: Annotated[float, typer.Option(min=0, max=1, help="The largest share of documents without a topic.")] = 0.1,
    min_size: Annotated[int, typer.Option(min=1, help="The fewest documents of a topic.")] = 10,
    words: Annotated[int, typer.Option(min=1, max=1000, help="Words that describe a topic.")] = 10,
    diversity: Annotated[float, typer.Option(min=0, max=1, help="0: the strongest words; towards 1: more different ones.")] = 0.2,
    seed_words: Annotated[list[str] | None, typer.Option(help="Words of a topic that you want, with commas; again for another.")] = None,
    label: Annotated[list[str] | None, typer.Option(help="A topic that you want, in words of your own; again for another.")] = None,
    time_column: Annotated[str | None, typer.Option(help="The column that holds a date, a year or a number.")] = None,
    class_column: Annotated[str | None, typer.Option(help="The column that holds a class of each text.")] = None,
    html: Annotated[Path | None, typer.Option(help="Write a report to this file.")] = None,
    language: LanguageOption = None,
    seed: Annotated[int, typer.Option(help="Another seed gives other random starts.")] = 0,
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
    """Find the topics of a file of texts, and save them."""
    from dataclasses import replace

    from munjang.analyze.topics.fitting import fit_topics
    from munjang.analyze.topics.saving import save_topics
    from munjang.analyze.topics.settings import TopicSettings
    from munjang.analyze.topics.trends import topics_over_time, topics_per_class
    from munjang.cli.collection import load_beside, read_collection
    from munjang.cli.topics_files import column_values, read_vectors
    from munjang.cli.topics_show import show_model, write_report
    from munjang.report.words import Word, say

    if html is not None and html.suffix.lower() not in (".html", ".htm"):
        raise UsageError(f"{html}: expected a name that ends in .html")
    settings = TopicSettings(
        method=method,
        topics=count,
        reduction=reduction,
        outliers=outliers,
        min_size=min_size,
        words=words,
        diversity=diversity,
        guides=tuple(tuple(word.strip() for word in group.split(",") if word.strip()) for group in seed_words or ()),
        labels=tuple(label or ()),
        seed=seed,
    )
    read = read_collection(file, Columns(text_column, id_column, format, encoding, no_quoting))
    rows = read.rows
    times = None if time_column is None else column_values(rows, time_column, file)
    classes = None if class_column is None else column_values(rows, class_column, file)
    ready = None if vectors is None else read_vectors(vectors)
    encoder = load_beside(read, model, compute=compute) if ready is None or settings.labels else None
    found = fit_topics([row.text for row in rows], vectors=ready, encoder=encoder, settings=settings)
    found = replace(found, encoder_name=model or (read.settings.model if encoder is not None and read.settings is not None else ""))
    over_time = None if times is None else topics_over_time(found, times)
    per_class = None if classes is None else topics_per_class(found, classes)
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


def _with_the_rest() -> None:
    """Register the sub-commands of other files."""
    from munjang.cli import topics_ask, topics_change

    topics_ask.register(app)
    topics_change.register(app)


_with_the_rest()
