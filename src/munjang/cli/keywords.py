"""`munjang keywords`: a file → the phrases of each text that say what it is about, in a table, in the texts themselves, or on a page."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from munjang.analyze.keywords import Keyword, extract_keywords
from munjang.atomic import atomic_write
from munjang.cli.collection import load_beside, read_collection
from munjang.cli.options import (
    Chosen,
    Columns,
    JsonOption,
    LanguageOption,
    ModelChoice,
    OutputOption,
    Takes,
    TextsArgument,
    examples,
    new_app,
    report_language,
)
from munjang.cli.row_files import PAGES, TextRow, check_rows_output, write_rows
from munjang.cli.show import console, emit, one_line, print_facts, print_table
from munjang.cli.text_analysis import TextAnalysis
from munjang.text.unicode import clean

if TYPE_CHECKING:
    from munjang.wording import Language

    Found = Sequence[tuple[TextRow, tuple[Keyword, ...]]]

app = new_app()


@app.command(
    epilog=examples(
        "munjang keywords news.csv --top 5",
        "munjang keywords news.csv --html keywords.html",
        "munjang keywords - --max-words 2 --json < letter.txt",
    )
)
def keywords(
    file: TextsArgument,
    *,
    options: Annotated[Chosen, Takes(extract_keywords)],
    highlight: Annotated[bool, typer.Option("--highlight", help="Print the texts with their keywords highlighted.")] = False,
    html: Annotated[Path | None, typer.Option(help="Write an HTML page with the keywords highlighted.")] = None,
    language: LanguageOption = None,
    output: OutputOption = None,
    analysis: TextAnalysis,
    columns: Columns,
    chosen_model: ModelChoice,
    as_json: JsonOption = False,
) -> None:
    """Extract the key phrases of each text.

    Phrases are quoted from the text; Korean ones without particles and endings. -o writes .csv, .tsv or .jsonl.
    """
    check_rows_output(output)
    check_rows_output(html, suffixes=PAGES)
    read = read_collection(file, columns)
    by = analysis.tagger(read)
    rows, texts, encoder = read.rows, read.texts, load_beside(read, chosen_model.model, compute=chosen_model.compute)
    vectors = encoder.encode(texts)  # apart from the phrases, so that a note on long texts counts texts
    found = list(zip(rows, extract_keywords(texts, encoder, **options, vectors=vectors, by=by), strict=True))
    _write(found, output, html, report_language(language))
    if as_json:  # places count in the text as it was read by the model
        emit([{**row.facts(), "text": clean(row.text), "keywords": [_facts(word) for word in words]} for row, words in found])
        return
    if highlight:
        _print_marked(found)
    elif output is None and html is None:
        lines = ([row.name(), ", ".join(f"{w.text} {w.score:.2f}" for w in words) or "no keywords"] for row, words in found)
        print_table(["row", "keywords"], lines, empty="no texts to find keywords in")
    different = {word.text for _, words in found for word in words}
    written = [("written to", str(path)) for path in (output, html) if path is not None]
    print_facts([("texts", f"{len(rows):,}"), ("keywords", f"{len(different):,}"), *written])


def _facts(word: Keyword) -> dict[str, object]:
    return {"text": word.text, "score": round(word.score, 6), "places": [list(place) for place in word.places]}


def _write(found: Found, output: Path | None, html: Path | None, language: Language) -> None:
    if output is not None:
        listed = [(row, rank, word) for row, words in found for rank, word in enumerate(words, start=1)]
        write_rows(output, [{"row": r.name(), "rank": rank, "keyword": w.text, "score": round(w.score, 6)} for r, rank, w in listed])
    if html is not None:
        from munjang.report.analysis_pages import Marked, keywords_page

        marked = [Marked(row.name(), clean(row.text), [(word.text, word.score) for word in words], _places(words)) for row, words in found]
        atomic_write(html, keywords_page(marked, language=language))


def _places(words: Sequence[Keyword]) -> list[tuple[int, int, float]]:
    return [(start, end, word.score) for word in words for start, end in word.places]


def _print_marked(found: Found) -> None:
    from rich.text import Text

    from munjang.report.analysis_pages import drop_overlaps

    screen = console()
    for row, words in found:
        line, at, text = Text(f"{one_line(row.name())}  ", style="dim"), 0, clean(row.text)
        for start, end, _ in drop_overlaps(_places(words)):
            line.append(_inline(text[at:start]), style="not dim")
            line.append(_inline(text[start:end]), style="not dim bold reverse")
            at = end
        line.append(_inline(text[at:]), style="not dim")
        screen.print(line)
        screen.print(Text("   " + ", ".join(f"{one_line(word.text)} {word.score:.2f}" for word in words), style="italic"))


def _inline(part: str) -> str:
    """Return a part of a line with the spaces at its ends kept."""
    inner = one_line(part)
    if not inner:
        return " " if part else ""
    return (" " if part[0].isspace() else "") + inner + (" " if part[-1].isspace() else "")
