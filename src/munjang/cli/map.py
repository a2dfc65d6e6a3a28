"""`munjang map`: a file → a page on which every text is a point, near ones near each other, coloured by cluster or column."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

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
    TextColumnOption,
    TextsArgument,
    examples,
    new_app,
    report_language,
)
from munjang.cli.row_files import Columns, TextRow
from munjang.cli.show import emit, print_facts
from munjang.cli.text_options import AnalyserOption, UserWordOption
from munjang.errors import InputError, UsageError, shown

if TYPE_CHECKING:
    from munjang.analyze.clusters import ClusterOptions
    from munjang.types import Vectors
from munjang.wording import Language

app = new_app()


@app.command(
    "map",
    epilog=examples(
        "munjang map news.csv -o map.html",
        "munjang map news.csv --colour section --layout pca -o map.html",
        "munjang map news.csv --method hdbscan -o map.html",
    ),
)
def draw(
    file: TextsArgument,
    output: Annotated[Path, typer.Option("--output", "-o", help="The page to write, .html.")],
    colour: Annotated[
        str | None,
        typer.Option("--colour", "--color", help="The column that gives points their colour, such as topic; without it, clusters."),
    ] = None,
    method: Annotated[Literal["kmeans", "agglomerative", "communities", "hdbscan"], typer.Option(help="How clusters are made.")] = "kmeans",
    k: Annotated[int | None, typer.Option("--clusters", "-k", min=1, help="For kmeans and agglomerative: how many clusters.")] = None,
    threshold: Annotated[float, typer.Option(help="For communities: the least cosine within a cluster.")] = 0.75,
    min_size: Annotated[int, typer.Option(min=1, help="For communities and hdbscan: the fewest texts of a cluster.")] = 10,
    layout: Annotated[
        Literal["auto", "pca", "tsne", "umap"], typer.Option(help="How places are found; auto is tsne up to 20,000 texts, pca beyond.")
    ] = "auto",
    seed: Annotated[int, typer.Option(min=0, help="Where chance starts; the same seed gives the same map.")] = 0,
    title: Annotated[str | None, typer.Option(help="The page's title; without it, the file's name.")] = None,
    language: LanguageOption = None,
    analyser: AnalyserOption = None,
    user_word: UserWordOption = None,
    model: ModelOption = None,
    text_column: TextColumnOption = None,
    id_column: Annotated[str | None, typer.Option(help="The column that holds ids.")] = None,
    format: FormatOption = None,
    encoding: EncodingOption = UTF8,
    no_quoting: NoQuotingOption = False,
    compute: LibraryComputeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Draw the texts of a file as points on a page, near ones near each other.

    The page is one file that loads nothing: pan, zoom, search, point at a text to read it.
    """
    from munjang.analyze.clusters import ClusterOptions, need_sklearn
    from munjang.analyze.layout import lay_out
    from munjang.cli.collection import encoder_for, read_collection, vectors_of
    from munjang.report.map_page import MapPoint, map_page
    from munjang.report.words import Word, say
    from munjang.text.unicode import clean
    from munjang.vectors.similarity import normalize
    from munjang.whole_file import write_whole

    if output.suffix.lower() not in (".html", ".htm"):
        raise UsageError(f"{output}: expected a name that ends in .html")
    if colour is None and method != "communities":
        need_sklearn("clustering")
    spoken = report_language(language)
    read = [read_collection(file, Columns(text_column, id_column, format, encoding, no_quoting))]
    rows = read[0].rows
    if colour is not None:
        _check_column(colour, rows)
    vectors = normalize(vectors_of(read, encoder_for(read, model, compute=compute))[0])
    if colour is None:
        options = ClusterOptions(method=method, k=k, threshold=threshold, min_size=min_size, seed=seed)
        groups = _clusters(vectors, rows, options, analyser, user_word or (), spoken)
    else:
        groups = [_value(row.values.get(colour)) for row in rows]
    points = [MapPoint(row.name(), clean(row.text), group) for row, group in zip(rows, groups, strict=True)]
    heading = title or (say(Word.MAP, spoken) if file == "-" else Path(file).name)
    word = Word.MAP_LEAD_CLUSTERS if colour is None else Word.MAP_LEAD_COLUMN
    lead = say(word, spoken, count=len(rows), column=colour or "")
    places = lay_out(vectors, method=layout, seed=seed)
    write_whole(output, map_page(places, points, title=heading, lead=lead, language=spoken))
    found = len({group for group in groups if group is not None})
    if as_json:
        emit({"texts": len(rows), "groups": found, "output": str(output)})
    else:
        print_facts([("texts", f"{len(rows):,}"), ("groups", f"{found:,}"), ("written to", str(output))])


def _clusters(
    vectors: Vectors, rows: Sequence[TextRow], options: ClusterOptions, analyser: str | None, words: Sequence[str], language: Language
) -> list[str | None]:
    """Return each row's cluster, named by its key phrases."""
    from munjang.analyze.cluster_names import cluster_phrases
    from munjang.analyze.clusters import cluster
    from munjang.report.words import Word, say
    from munjang.text.tagging import tagger

    labels = cluster(vectors, options).labels_N.tolist()
    names = cluster_phrases([row.text for row in rows], labels, top=3, by=tagger(analyser, user_words=words))
    written = {label: ", ".join(phrases) or say(Word.CLUSTER, language, number=label) for label, phrases in names.items()}
    repeated = len(set(written.values())) < len(written)
    return [None if label < 0 else f"{label} {written[label]}" if repeated else written[label] for label in labels]


def _check_column(column: str, rows: Sequence[TextRow]) -> None:
    known = list(dict.fromkeys(name for row in rows for name in row.values))
    if column not in known:
        raise InputError(f"there is no column {shown(column)} to colour by, expected one of {', '.join(map(shown, known[:20]))}")


def _value(value: object) -> str | None:
    return None if value is None or value == "" else str(value)
