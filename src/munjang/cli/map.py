"""`munjang map`: a file → a page on which every text is a point, near ones near each other, coloured by cluster or column."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from munjang.analyze.clusters import cluster, require_sklearn
from munjang.analyze.keywords import find_cluster_phrases
from munjang.analyze.layout import lay_out
from munjang.atomic import atomic_write
from munjang.cli.collection import encoder_for, read_collection, vectors_of
from munjang.cli.options import (
    Chosen,
    Columns,
    JsonOption,
    LanguageOption,
    ModelChoice,
    Takes,
    TextsArgument,
    examples,
    new_app,
    report_language,
)
from munjang.cli.row_files import PAGES, TextRow, check_rows_output
from munjang.cli.show import emit, print_facts
from munjang.cli.text_analysis import TextAnalysis
from munjang.errors import InputError, quote
from munjang.options import options_for
from munjang.report.words import Word, say
from munjang.text.unicode import clean
from munjang.vectors.similarity import normalize
from munjang.wording import Language

if TYPE_CHECKING:
    from munjang.text.tagging import Tagger
    from munjang.types import Vectors

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
    *,
    output: Annotated[Path, typer.Option("--output", "-o", help="The page to write, .html.")],
    colour: Annotated[
        str | None,
        typer.Option("--colour", "--color", help="The column that sets the colours, such as topic. Default: clusters."),
    ] = None,
    options: Annotated[Chosen, Takes(cluster, find_cluster_phrases, lay_out)],
    title: Annotated[str | None, typer.Option(help="The page's title. Default: the file's name.")] = None,
    language: LanguageOption = None,
    analysis: TextAnalysis,
    columns: Columns,
    chosen_model: ModelChoice,
    as_json: JsonOption = False,
) -> None:
    """Draw texts as an interactive map, similar ones close together.

    The page is one self-contained file: pan, zoom, search, hover over a point to read its text.
    """
    from munjang.report.text_map import MapPoint, map_page

    check_rows_output(output, suffixes=PAGES)
    if colour is None and options["method"] != "communities":
        require_sklearn("clustering")
    spoken = report_language(language)
    read = [read_collection(file, columns)]
    rows = read[0].rows
    if colour is not None:
        _check_column(colour, rows)
    vectors = normalize(vectors_of(read, encoder_for(read, chosen_model.model, compute=chosen_model.compute))[0])
    if colour is None:
        groups = _name_clusters(vectors, rows, options, analysis.tagger(read[0]), spoken)
    else:
        groups = [_value(row.values.get(colour)) for row in rows]
    points = [MapPoint(row.name(), clean(row.text), group) for row, group in zip(rows, groups, strict=True)]
    heading = title or (say(Word.MAP, spoken) if file == "-" else Path(file).name)
    word = Word.MAP_LEAD_CLUSTERS if colour is None else Word.MAP_LEAD_COLUMN
    lead = say(word, spoken, count=len(rows), column=colour or "")
    places = lay_out(vectors, **options_for(lay_out, options))
    atomic_write(output, map_page(places, points, title=heading, lead=lead, language=spoken))
    found = len({group for group in groups if group is not None})
    if as_json:
        emit({"texts": len(rows), "groups": found, "output": str(output)})
    else:
        print_facts([("texts", f"{len(rows):,}"), ("groups", f"{found:,}"), ("written to", str(output))])


def _name_clusters(vectors: Vectors, rows: Sequence[TextRow], options: Chosen, by: Tagger, language: Language) -> list[str | None]:
    """Return each row's cluster, named by its key phrases."""
    labels = cluster(vectors, **options_for(cluster, options)).labels_N.tolist()
    names = find_cluster_phrases([row.text for row in rows], labels, **options_for(find_cluster_phrases, options), by=by)
    written = {label: ", ".join(phrases) or say(Word.CLUSTER, language, number=label) for label, phrases in names.items()}
    repeated = len(set(written.values())) < len(written)
    return [None if label < 0 else f"{label} {written[label]}" if repeated else written[label] for label in labels]


def _check_column(column: str, rows: Sequence[TextRow]) -> None:
    known = list(dict.fromkeys(name for row in rows for name in row.values))
    if column not in known:
        raise InputError(f"there is no column {quote(column)} to colour by, expected one of {', '.join(map(quote, known[:20]))}")


def _value(value: object) -> str | None:
    return None if value is None or value == "" else str(value)
